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
