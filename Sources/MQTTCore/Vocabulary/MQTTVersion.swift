import MessagingWire

/// A version of the MQTT protocol; the raw value is the protocol level that CONNECT carries.
public enum MQTTVersion: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// MQTT 3.1 (IBM, 2010), protocol name "MQIsdp".
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v3_1 = 3
    /// MQTT 3.1.1 (OASIS, ISO/IEC 20922).
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v3_1_1 = 4
    /// MQTT 5.0 (OASIS).
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v5_0 = 5

    /// The name that CONNECT carries: "MQIsdp" for 3.1, "MQTT" for all later versions [MQTT-3.1.2-1].
    public var protocolName: String { self == .v3_1 ? "MQIsdp" : "MQTT" }

    /// Whether packets of this version carry properties and reason codes.
    public var hasProperties: Bool { self == .v5_0 }

    public static func < (left: MQTTVersion, right: MQTTVersion) -> Bool { left.rawValue < right.rawValue }
}

extension MQTTVersion: CustomStringConvertible {
    public var description: String {
        switch self {
        case .v3_1: "3.1"
        case .v3_1_1: "3.1.1"
        case .v5_0: "5.0"
        }
    }
}

/// The two ends of an MQTT connection.
public enum MQTTRole: Sendable, Hashable {
    case client
    case server
}

extension MQTTRole: CustomStringConvertible {
    public var description: String { self == .client ? "client" : "server" }
}

/// A quality of service: what sender and receiver promise each other about one message.
public enum QoS: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// QoS 0: delivered once or not at all, no acknowledgement.
    case atMostOnce = 0
    /// QoS 1: delivered, perhaps more than once; PUBACK.
    case atLeastOnce = 1
    /// QoS 2: delivered exactly once; PUBREC, PUBREL, PUBCOMP.
    case exactlyOnce = 2

    public static func < (left: QoS, right: QoS) -> Bool { left.rawValue < right.rawValue }
}

extension QoS: CustomStringConvertible {
    public var description: String { "QoS \(rawValue)" }
}

/// The message that the server publishes for a client that vanishes.
public struct MQTTWill: Sendable, Hashable {
    /// The topic that the server publishes to: 1 to 65,535 bytes of UTF-8 without wildcards.
    public var topic: String
    /// The payload, at most 65,535 bytes.
    public var payload: [UInt8]
    /// The QoS that the server publishes with. Default: 0.
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers. Default: false.
    public var retain: Bool
    /// Will Delay Interval, Payload Format Indicator, Message Expiry Interval, Content Type, Response Topic,
    /// Correlation Data and user properties; 5.0 only.
    public var properties: MQTTProperties

    /// Makes a will.
    ///
    /// - Parameters:
    ///   - payload: any sequence of bytes, such as an array or `Data`; at most 65,535 bytes.
    ///   - topic: the topic that the server publishes to.
    ///   - qos: the QoS that the server publishes with. Default: 0.
    ///   - retain: whether the server keeps the message for later subscribers. Default: false.
    ///   - delay: how long the server waits for the client to come back before it publishes the will, rounded up to whole
    ///     seconds; 5.0 only. At most the session expiry, because the server publishes the will when the session ends.
    ///     Default: that of `properties`.
    ///   - properties: the other properties; 5.0 only.
    public init(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        delay: Duration? = nil, properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = Array(payload)
        self.qos = qos
        self.retain = retain
        self.properties = properties
        if let delay { self.properties.willDelayInterval = UInt32(clamping: delay.inSecondsRoundedUp) }
    }

    /// Makes a will whose payload is text in UTF-8; the parameters are those of a will of bytes.
    public init(
        _ text: String, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false, delay: Duration? = nil,
        properties: MQTTProperties = []
    ) {
        self.init(Array(text.utf8), to: topic, qos: qos, retain: retain, delay: delay, properties: properties)
    }

    /// Whether both are the same message; topics are compared by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.topic.hasSameBytes(as: other.topic) && one.payload == other.payload && one.qos == other.qos
            && one.retain == other.retain && one.properties == other.properties
    }
}

extension MQTTWill: CustomStringConvertible {
    /// Topic and flags; the payload is hidden as that of an inspected CONNECT is.
    public var description: String {
        "MQTTWill(\(OneLine.text(topic)), \(qos)\(retain ? ", retained" : ""), \(OneLine.bytes(payload.count)))"
    }
}
