/// One property of a packet of MQTT 5.0: an identifier and a value of the type that belongs to it.
public struct MQTTProperty: Sendable, Hashable {
    /// The value of a property, by its type on the wire.
    public enum Value: Sendable, Hashable {
        /// Byte, Two Byte, Four Byte and Variable Byte Integers; the identifier determines which.
        case integer(UInt32)
        case string(String)
        case binary([UInt8])
        case pair(MQTTUserProperty)
    }

    public let identifier: MQTTPropertyIdentifier
    public let value: Value

    /// A property as it is; that the value suits the identifier is checked when it is encoded.
    public init(_ identifier: MQTTPropertyIdentifier, _ value: Value) {
        self.identifier = identifier
        self.value = value
    }
}

/// A pair of strings whose meaning is the application's; names may repeat and their order counts [MQTT-3.1.3-10].
public struct MQTTUserProperty: Sendable, Hashable {
    public var name: String
    public var value: String

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// The identifier of a property of MQTT 5.0, section 2.2.2.2.
public enum MQTTPropertyIdentifier: UInt8, Sendable, Hashable, CaseIterable {
    case payloadFormatIndicator = 0x01
    case messageExpiryInterval = 0x02
    case contentType = 0x03
    case responseTopic = 0x08
    case correlationData = 0x09
    case subscriptionIdentifier = 0x0B
    case sessionExpiryInterval = 0x11
    case assignedClientIdentifier = 0x12
    case serverKeepAlive = 0x13
    case authenticationMethod = 0x15
    case authenticationData = 0x16
    case requestProblemInformation = 0x17
    case willDelayInterval = 0x18
    case requestResponseInformation = 0x19
    case responseInformation = 0x1A
    case serverReference = 0x1C
    case reasonString = 0x1F
    case receiveMaximum = 0x21
    case topicAliasMaximum = 0x22
    case topicAlias = 0x23
    case maximumQoS = 0x24
    case retainAvailable = 0x25
    case userProperty = 0x26
    case maximumPacketSize = 0x27
    case wildcardSubscriptionAvailable = 0x28
    case subscriptionIdentifierAvailable = 0x29
    case sharedSubscriptionAvailable = 0x2A
}

/// A factory for each property, so that properties can be written as a literal:
///
///     let properties: MQTTProperties = [.contentType("text/plain"), .userProperty("room", "kitchen")]
///
/// Whether a packet may have a property, and with which value, is checked when the packet is encoded.
extension MQTTProperty {
    /// Payload Format Indicator: whether the payload is UTF-8 text.
    public static func payloadFormatIndicator(_ isText: Bool) -> MQTTProperty {
        MQTTProperty(.payloadFormatIndicator, .integer(isText ? 1 : 0))
    }

    /// Message Expiry Interval in seconds.
    public static func messageExpiryInterval(_ seconds: UInt32) -> MQTTProperty {
        MQTTProperty(.messageExpiryInterval, .integer(seconds))
    }

    /// Content Type, usually a MIME type.
    public static func contentType(_ type: String) -> MQTTProperty { MQTTProperty(.contentType, .string(type)) }

    /// Response Topic: where a reply is expected.
    public static func responseTopic(_ topic: String) -> MQTTProperty { MQTTProperty(.responseTopic, .string(topic)) }

    /// Correlation Data, which a reply repeats.
    public static func correlationData(_ data: [UInt8]) -> MQTTProperty {
        MQTTProperty(.correlationData, .binary(data))
    }

    /// Subscription Identifier, 1 to 268,435,455 [MQTT-3.8.2-1].
    public static func subscriptionIdentifier(_ identifier: UInt32) -> MQTTProperty {
        MQTTProperty(.subscriptionIdentifier, .integer(identifier))
    }

    /// Session Expiry Interval in seconds; 0xFFFFFFFF never expires.
    public static func sessionExpiryInterval(_ seconds: UInt32) -> MQTTProperty {
        MQTTProperty(.sessionExpiryInterval, .integer(seconds))
    }

    /// Assigned Client Identifier, for a client that sent none [MQTT-3.2.2-16].
    public static func assignedClientIdentifier(_ identifier: String) -> MQTTProperty {
        MQTTProperty(.assignedClientIdentifier, .string(identifier))
    }

    /// Server Keep Alive in seconds, which replaces the client's [MQTT-3.1.2-21].
    public static func serverKeepAlive(_ seconds: UInt16) -> MQTTProperty {
        MQTTProperty(.serverKeepAlive, .integer(UInt32(seconds)))
    }

    /// Authentication Method of the enhanced authentication.
    public static func authenticationMethod(_ method: String) -> MQTTProperty {
        MQTTProperty(.authenticationMethod, .string(method))
    }

    /// Authentication Data, as the method defines it.
    public static func authenticationData(_ data: [UInt8]) -> MQTTProperty {
        MQTTProperty(.authenticationData, .binary(data))
    }

    /// Request Problem Information: whether reason strings are welcome.
    public static func requestProblemInformation(_ isRequested: Bool) -> MQTTProperty {
        MQTTProperty(.requestProblemInformation, .integer(isRequested ? 1 : 0))
    }

    /// Will Delay Interval in seconds.
    public static func willDelayInterval(_ seconds: UInt32) -> MQTTProperty {
        MQTTProperty(.willDelayInterval, .integer(seconds))
    }

    /// Request Response Information: whether the server is asked for Response Information.
    public static func requestResponseInformation(_ isRequested: Bool) -> MQTTProperty {
        MQTTProperty(.requestResponseInformation, .integer(isRequested ? 1 : 0))
    }

    /// Response Information: a basis for response topics.
    public static func responseInformation(_ information: String) -> MQTTProperty {
        MQTTProperty(.responseInformation, .string(information))
    }

    /// Server Reference: another server to use.
    public static func serverReference(_ server: String) -> MQTTProperty {
        MQTTProperty(.serverReference, .string(server))
    }

    /// Reason String, for people, not to be parsed.
    public static func reasonString(_ text: String) -> MQTTProperty { MQTTProperty(.reasonString, .string(text)) }

    /// Receive Maximum: QoS 1 and 2 messages at a time, 1 and above.
    public static func receiveMaximum(_ messages: UInt16) -> MQTTProperty {
        MQTTProperty(.receiveMaximum, .integer(UInt32(messages)))
    }

    /// Topic Alias Maximum: the number of aliases that the peer may use.
    public static func topicAliasMaximum(_ aliases: UInt16) -> MQTTProperty {
        MQTTProperty(.topicAliasMaximum, .integer(UInt32(aliases)))
    }

    /// Topic Alias, 1 and above [MQTT-3.3.2-8].
    public static func topicAlias(_ alias: UInt16) -> MQTTProperty {
        MQTTProperty(.topicAlias, .integer(UInt32(alias)))
    }

    /// Maximum QoS of the server, 0 or 1.
    public static func maximumQoS(_ qos: QoS) -> MQTTProperty {
        MQTTProperty(.maximumQoS, .integer(UInt32(qos.rawValue)))
    }

    /// Retain Available: whether the server retains messages.
    public static func retainAvailable(_ isAvailable: Bool) -> MQTTProperty {
        MQTTProperty(.retainAvailable, .integer(isAvailable ? 1 : 0))
    }

    /// A user property; several may have the same name.
    public static func userProperty(_ name: String, _ value: String) -> MQTTProperty {
        MQTTProperty(.userProperty, .pair(MQTTUserProperty(name, value)))
    }

    /// Maximum Packet Size in bytes.
    public static func maximumPacketSize(_ bytes: UInt32) -> MQTTProperty {
        MQTTProperty(.maximumPacketSize, .integer(bytes))
    }

    /// Wildcard Subscription Available.
    public static func wildcardSubscriptionAvailable(_ isAvailable: Bool) -> MQTTProperty {
        MQTTProperty(.wildcardSubscriptionAvailable, .integer(isAvailable ? 1 : 0))
    }

    /// Subscription Identifier Available.
    public static func subscriptionIdentifierAvailable(_ isAvailable: Bool) -> MQTTProperty {
        MQTTProperty(.subscriptionIdentifierAvailable, .integer(isAvailable ? 1 : 0))
    }

    /// Shared Subscription Available.
    public static func sharedSubscriptionAvailable(_ isAvailable: Bool) -> MQTTProperty {
        MQTTProperty(.sharedSubscriptionAvailable, .integer(isAvailable ? 1 : 0))
    }
}
