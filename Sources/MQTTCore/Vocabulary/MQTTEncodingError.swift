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
