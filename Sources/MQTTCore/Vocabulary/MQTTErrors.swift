/// Bytes of the peer that break the protocol; the connection has to be closed.
public struct MQTTProtocolError: Error, Sendable, Hashable {
    /// What to answer in a DISCONNECT (or CONNACK) of MQTT 5.0 before closing; 3.1 and 3.1.1 close without a word.
    public let reasonCode: MQTTReasonCode
    /// What was wrong, in words, for people.
    public let message: String
    /// The clause that was broken, such as "MQTT-3.3.1-4", or "2.2.2.2" for prose without an id.
    public let clause: String

    public init(_ reasonCode: MQTTReasonCode, _ message: String, clause: String) {
        self.reasonCode = reasonCode
        self.message = message
        self.clause = clause
    }

    static func malformed(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.malformedPacket, message, clause: clause)
    }

    static let answersInTLS = malformed(
        "it answers in TLS; use a URL with TLS (mqtts://, wss://), or the port without", "MQTT-3.2.0-1")

    static func protocolError(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.protocolError, message, clause: clause)
    }
}

extension MQTTProtocolError: CustomStringConvertible {
    public var description: String { "\(message) [\(clause)], \(reasonCode)" }
}

/// A packet of ours that cannot be put on the wire; nothing was written.
public struct MQTTEncodingError: Error, Sendable, Hashable {
    /// What kind of mistake it is; the set may grow.
    public struct Code: RawRepresentable, Sendable, Hashable {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// A string or binary value is longer than 65,535 bytes.
        public static let valueTooLong = Code(rawValue: "valueTooLong")
        /// A string holds U+0000 [MQTT-1.5.4-2].
        public static let nullCharacter = Code(rawValue: "nullCharacter")
        /// The packet would be larger than the peer accepts, or than the format can say.
        public static let packetTooLarge = Code(rawValue: "packetTooLarge")
        /// The topic name is empty, too long, or holds a wildcard.
        public static let invalidTopicName = Code(rawValue: "invalidTopicName")
        /// The topic filter is empty, too long, or has a wildcard in the wrong place.
        public static let invalidTopicFilter = Code(rawValue: "invalidTopicFilter")
        /// A packet identifier is missing, zero, or there at QoS 0.
        public static let invalidPacketID = Code(rawValue: "invalidPacketID")
        /// A property does not belong into this packet, is there twice, or has a value out of its range.
        public static let invalidProperty = Code(rawValue: "invalidProperty")
        /// The packet has no such reason code; the specification lists those of each packet.
        public static let invalidReason = Code(rawValue: "invalidReason")
        /// The version that is spoken has no such packet, field or code.
        public static let notInThisVersion = Code(rawValue: "notInThisVersion")
        /// The fields of the packet contradict each other.
        public static let contradiction = Code(rawValue: "contradiction")
    }

    public let code: Code
    /// What was wrong and which limit was met, in words.
    public let message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

extension MQTTEncodingError: CustomStringConvertible {
    public var description: String { message }
}

extension MQTTEncodingError {
    @inline(never)
    static func packetID(_ qos: QoS) -> MQTTEncodingError {
        qos == .atMostOnce
            ? .init(.invalidPacketID, "a packet identifier at QoS 0 [MQTT-2.2.1-2]")
            : .init(.invalidPacketID, "no packet identifier at \(qos) [MQTT-2.2.1-3]")
    }

    @inline(never)
    static func noProperties(_ version: MQTTVersion) -> MQTTEncodingError {
        .init(.notInThisVersion, "MQTT \(version) has no properties; connect with 5.0 or leave them out")
    }

    @inline(never)
    static func topicName(_ topic: String) -> MQTTEncodingError {
        .init(
            .invalidTopicName,
            "\"\(topic.prefix(100))\" is not a topic name: 1 to 65,535 bytes, neither + nor # nor U+0000")
    }

    @inline(never)
    static func topicFilter(_ filter: String) -> MQTTEncodingError {
        .init(
            .invalidTopicFilter,
            "\"\(filter.prefix(100))\" is not a topic filter: 1 to 65,535 bytes without U+0000, + alone in its level, "
                + "# alone in the last, $share/name/filter with a name and a filter")
    }

    @inline(never)
    static func packetTooLarge(_ type: MQTTPacketType, _ count: Int, _ maximum: Int) -> MQTTEncodingError {
        count > MQTTFrameHeader.largestPacket
            ? .init(.packetTooLarge, "\(type) is larger than the format can say, 268,435,460 bytes")
            : .init(.packetTooLarge, "\(type) of \(count) bytes, the maximum packet size is \(maximum)")
    }
}

/// An operation that was refused before anything was written: the caller's mistake, or a limit that does not allow it.
public struct MQTTUsageError: Error, Sendable, CustomStringConvertible {
    /// What kind of mistake it is. More kinds may be added.
    public struct Code: RawRepresentable, Hashable, Sendable {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }

        /// There is no connection, or it is not accepted yet.
        public static let notConnected = Code(rawValue: "notConnected")
        /// A connection is open already.
        public static let alreadyConnected = Code(rawValue: "alreadyConnected")
        /// DISCONNECT was sent, so that nothing may follow it [MQTT 5.0 3.14.4-1].
        public static let closing = Code(rawValue: "closing")
        /// The topic name is empty, too long, or holds a wildcard or a NUL.
        public static let invalidTopic = Code(rawValue: "invalidTopic")
        /// The topic filter is empty, too long, or its wildcards stand in the wrong place.
        public static let invalidFilter = Code(rawValue: "invalidFilter")
        /// No filter was given [MQTT 5.0 3.8.3-2].
        public static let noFilters = Code(rawValue: "noFilters")
        /// The packet is larger than the peer accepts [MQTT 5.0 3.2.2-15].
        public static let packetTooLarge = Code(rawValue: "packetTooLarge")
        /// The QoS is above the peer's maximum [MQTT 5.0 3.2.2-11].
        public static let qosNotSupported = Code(rawValue: "qosNotSupported")
        /// The peer keeps no retained messages [MQTT 5.0 3.2.2-14].
        public static let retainNotAvailable = Code(rawValue: "retainNotAvailable")
        /// The server does not know this kind of subscription.
        public static let subscriptionNotSupported = Code(rawValue: "subscriptionNotSupported")
        /// The queue is full.
        public static let queueFull = Code(rawValue: "queueFull")
        /// All 65,535 packet identifiers are in use.
        public static let noPacketIdentifier = Code(rawValue: "noPacketIdentifier")
        /// The property is set by the engine, or not allowed in this packet.
        public static let propertyNotAllowed = Code(rawValue: "propertyNotAllowed")
        /// The version of the connection has no such packet.
        public static let notInThisVersion = Code(rawValue: "notInThisVersion")
        /// The configuration contradicts itself.
        public static let invalidConfiguration = Code(rawValue: "invalidConfiguration")
        /// A value that cannot be written: too long, or holding a NUL.
        public static let invalidValue = Code(rawValue: "invalidValue")
        /// The operation belongs to the other role.
        public static let wrongRole = Code(rawValue: "wrongRole")
        /// The answer does not fit what was asked.
        public static let answerMismatch = Code(rawValue: "answerMismatch")
    }

    /// What kind of mistake it is.
    public var code: Code
    /// What happened, which limit or value it met, and what to do.
    public var message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { "\(code.rawValue): \(message)" }
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
