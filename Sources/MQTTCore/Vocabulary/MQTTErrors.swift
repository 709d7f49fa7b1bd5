public import MessagingWire

// Exported, so that the members of these errors can be used wherever this module is imported.
@_exported public import struct MessagingWire.CodedError

/// A packet that cannot be encoded; nothing was written.
public typealias MQTTEncodingError = CodedError<MQTTEncoding>
/// The domain of ``MQTTEncodingError``.
public enum MQTTEncoding {}

extension MQTTEncodingError.Code {
    /// A string or binary value is longer than 65,535 bytes.
    public static var valueTooLong: Self { Self("valueTooLong") }
    /// A string holds U+0000 [MQTT-1.5.4-2].
    public static var nullCharacter: Self { Self("nullCharacter") }
    /// The packet would be larger than the peer accepts, or than the format can say.
    public static var packetTooLarge: Self { Self("packetTooLarge") }
    /// The topic name is empty, too long, or holds a wildcard.
    public static var invalidTopicName: Self { Self("invalidTopicName") }
    /// The topic filter is empty, too long, or has a wildcard in the wrong place.
    public static var invalidTopicFilter: Self { Self("invalidTopicFilter") }
    /// A packet identifier is missing, zero, or there at QoS 0.
    public static var invalidPacketID: Self { Self("invalidPacketID") }
    /// A property does not belong into this packet, is there twice, or has a value out of its range.
    public static var invalidProperty: Self { Self("invalidProperty") }
    /// The packet has no such reason code; the specification lists those of each packet.
    public static var invalidReason: Self { Self("invalidReason") }
    /// The version that is spoken has no such packet, field or code.
    public static var notInThisVersion: Self { Self("notInThisVersion") }
    /// The fields of the packet contradict each other.
    public static var contradiction: Self { Self("contradiction") }
}

extension MQTTEncodingError {
    @inline(never)
    static func packetID(_ qos: QoS) -> MQTTEncodingError {
        qos == .atMostOnce
            ? .init(.invalidPacketID, "A QoS 0 message has no packet identifier [MQTT-2.2.1-2]. Leave it 0.")
            : .init(.invalidPacketID, "A \(qos) message needs a packet identifier [MQTT-2.2.1-3]. Use 1 to 65,535.")
    }

    @inline(never)
    static func noProperties(_ version: MQTTVersion) -> MQTTEncodingError {
        .init(.notInThisVersion, "MQTT \(version) has no properties. Connect with 5.0 or leave them out.")
    }

    @inline(never)
    static func topicName(_ topic: String) -> MQTTEncodingError {
        .init(
            .invalidTopicName,
            "'\(OneLine.text(topic, limit: 100))' is not a topic name. Use 1 to 65,535 bytes without +, # and U+0000.")
    }

    @inline(never)
    static func packetTooLarge(_ type: MQTTPacketType, _ count: Int, _ maximum: Int) -> MQTTEncodingError {
        let advice =
            switch type {
            case .publish: "Split the payload."
            case .subscribe, .unsubscribe: "Shorten the filters, or send fewer of them or of the properties."
            default: "Shorten its properties and texts."
            }
        return count > MQTTPacket.largestSize
            ? .init(.packetTooLarge, "\(type) is larger than the format allows, 268,435,460 bytes. \(advice)")
            : .init(
                .packetTooLarge,
                "\(type) would have \(count) bytes; the maximum packet size is \(maximum). \(advice)")
    }
}

/// An operation that was refused before anything was written: the caller's mistake, or a limit that does not allow it.
public typealias MQTTUsageError = CodedError<MQTTUsage>
/// The domain of ``MQTTUsageError``.
public enum MQTTUsage {}

extension MQTTUsageError.Code {
    /// There is no connection, or it is not accepted yet.
    public static var notConnected: Self { Self("notConnected") }
    /// A connection is open already.
    public static var alreadyConnected: Self { Self("alreadyConnected") }
    /// DISCONNECT was sent, so that nothing may follow it [MQTT 5.0 3.14.4-1].
    public static var closing: Self { Self("closing") }
    /// The topic name is empty, too long, or holds a wildcard or a NUL.
    public static var invalidTopic: Self { Self("invalidTopic") }
    /// The topic filter is empty, too long, or has a wildcard in the wrong place.
    public static var invalidFilter: Self { Self("invalidFilter") }
    /// No filter was given [MQTT 5.0 3.8.3-2].
    public static var noFilters: Self { Self("noFilters") }
    /// The packet is larger than the peer accepts [MQTT 5.0 3.2.2-15].
    public static var packetTooLarge: Self { Self("packetTooLarge") }
    /// The QoS is above the peer's maximum [MQTT 5.0 3.2.2-11].
    public static var qosNotSupported: Self { Self("qosNotSupported") }
    /// The peer keeps no retained messages [MQTT 5.0 3.2.2-14].
    public static var retainNotAvailable: Self { Self("retainNotAvailable") }
    /// The server does not know this kind of subscription.
    public static var subscriptionNotSupported: Self { Self("subscriptionNotSupported") }
    /// The queue is full.
    public static var queueFull: Self { Self("queueFull") }
    /// The message is larger than the whole queue may be.
    public static var largerThanQueue: Self { Self("largerThanQueue") }
    /// All 65,535 packet identifiers are in use.
    public static var noPacketIdentifier: Self { Self("noPacketIdentifier") }
    /// The property is set by the engine, or not allowed in this packet.
    public static var propertyNotAllowed: Self { Self("propertyNotAllowed") }
    /// The version of the connection has no such packet.
    public static var notInThisVersion: Self { Self("notInThisVersion") }
    /// The configuration contradicts itself.
    public static var invalidConfiguration: Self { Self("invalidConfiguration") }
    /// A value that cannot be written: too long, or holding a NUL.
    public static var invalidValue: Self { Self("invalidValue") }
    /// The operation belongs to the other role.
    public static var wrongRole: Self { Self("wrongRole") }
    /// The answer does not fit what was asked.
    public static var answerMismatch: Self { Self("answerMismatch") }
}

extension MQTTUsageError {
    /// What the encoder refused, as the caller's mistake.
    init(_ error: MQTTEncodingError) {
        switch error.code {
        case .packetTooLarge: self.init(.packetTooLarge, error.message)
        case .invalidTopicName: self.init(.invalidTopic, error.message)
        case .invalidTopicFilter: self.init(.invalidFilter, error.message)
        case .invalidProperty: self.init(.propertyNotAllowed, error.message)
        case .notInThisVersion: self.init(.notInThisVersion, error.message)
        default: self.init(.invalidValue, error.message)
        }
    }
}
