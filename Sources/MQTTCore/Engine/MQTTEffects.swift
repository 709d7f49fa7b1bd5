/// What an input did, as plain arrays: the caller performs it after its lock is released, then clears it and hands it
/// in again, so that its capacity is used over and over.
public struct MQTTEffects: Sendable {
    /// Application messages, in the order of arrival. Their ranges are offsets into the bytes given to `receive`.
    public var messages: [MQTTMessageRecord] = []

    /// What is known of the first messages together.
    public internal(set) var lead = MQTTPlainLead()

    /// Publishes that came to their end.
    public var completions: [MQTTPublishCompletion] = []

    /// Everything else. Each event knows how many messages of this batch came before it.
    public var events: [MQTTEngineEvent] = []

    /// The engine has nothing more to say: write what is in `output`, then close the connection.
    public var shouldClose = false

    /// An engine that had to refuse messages for lack of room has room again.
    public var queueHasRoom = false

    public init() {}

    /// Whether there is nothing to perform.
    public var isEmpty: Bool {
        messages.isEmpty && completions.isEmpty && events.isEmpty && !shouldClose && !queueHasRoom
    }

    /// Forgets everything and keeps the capacity.
    public mutating func removeAll() {
        messages.removeAll(keepingCapacity: true)
        lead = MQTTPlainLead()
        completions.removeAll(keepingCapacity: true)
        events.removeAll(keepingCapacity: true)
        shouldClose = false
        queueHasRoom = false
    }
}

/// The first messages of a read, if they are plain (QoS 0, no properties) and have one topic: when these are all
/// messages, nobody has to look at each of them to know where they go.
public struct MQTTPlainLead: Sendable {
    /// How many they are.
    public private(set) var count = 0

    /// The index for ``MQTTEngine/topic(at:)``.
    public private(set) var topic: UInt32 = 0

    /// The sum of their payloads.
    public private(set) var payloadBytes = 0

    /// - Parameter before: how many messages there are already.
    @inline(__always)
    mutating func add(_ count: Int, payloadBytes: Int, topic: UInt32, behind before: Int) {
        guard before == self.count, before == 0 || topic == self.topic else { return }
        self.count += count
        self.topic = topic
        self.payloadBytes += payloadBytes
    }
}

/// One application message, as offsets into the bytes given to `receive`. Plain data of 32 bytes.
public struct MQTTMessageRecord: Sendable {
    /// The token for ``MQTTEngine/acknowledge(_:at:)``; 0 for QoS 0, which is not acknowledged. Tokens rise in the
    /// order of arrival over all connections of an engine.
    public var delivery: UInt64

    /// The index for ``MQTTEngine/topic(at:)``, valid until the next call of `receive` with cleared effects.
    public var topic: UInt32

    /// Where the properties of a 5.0 message start. They end where the payload starts.
    public var propertiesStart: UInt32

    /// Where the payload starts.
    public var payloadStart: UInt32

    /// The number of bytes of the payload.
    public var payloadCount: UInt32

    /// The packet identifier; 0 for QoS 0.
    public var packetID: UInt16

    /// The low four bits of the fixed header: DUP, QoS, RETAIN.
    public var flags: UInt8

    @inlinable
    public init(
        delivery: UInt64, topic: UInt32, propertiesStart: UInt32, payloadStart: UInt32, payloadCount: UInt32,
        packetID: UInt16, flags: UInt8
    ) {
        self.delivery = delivery
        self.topic = topic
        self.propertiesStart = propertiesStart
        self.payloadStart = payloadStart
        self.payloadCount = payloadCount
        self.packetID = packetID
        self.flags = flags
    }

    /// Whether the RETAIN flag is set.
    @inlinable public var isRetained: Bool { flags & 0b0001 != 0 }

    /// Whether the DUP flag is set.
    @inlinable public var isDuplicate: Bool { flags & 0b1000 != 0 }

    /// The quality of service that the message was sent with.
    @inlinable public var qos: QoS { QoS(rawValue: flags >> 1 & 0b11) ?? .atMostOnce }

    /// The properties of the message in the bytes given to `receive`, without their length; empty before 5.0.
    @inlinable public var properties: Range<Int> { Int(propertiesStart)..<Int(payloadStart) }

    /// The payload in the bytes given to `receive`.
    @inlinable public var payload: Range<Int> { Int(payloadStart)..<Int(payloadStart) + Int(payloadCount) }
}

/// The end of a publish of QoS 1 or 2, or of any publish that was queued; of several, if their token is the same.
public struct MQTTPublishCompletion: Sendable, Equatable {
    /// How a publish ended.
    public enum Outcome: UInt8, Sendable {
        /// The peer took it; the reason code says with which remark (success, no matching subscribers).
        case acknowledged
        /// The peer refused it with the reason code.
        case refused
        /// A queued QoS 0 message was written.
        case written
        /// The message expired before it was first sent.
        case expired
        /// The server lost the session, and ``MQTTEngineConfiguration/republishesAfterSessionLoss`` is off.
        case sessionLost
        /// The message can never be sent on this connection: it is larger than the peer accepts, its QoS is above the
        /// peer's maximum or the peer keeps no retained messages; the reason code says which.
        case unsendable
        /// The session was given up locally.
        case discarded
    }

    /// The token given to `publish`.
    public var token: UInt64
    /// How it ended.
    public var outcome: Outcome
    /// The peer's reason code, or ours for `unsendable`.
    public var reason: MQTTReasonCode
    /// How many messages with this token ended so, one after the other: more than 1 only for
    /// ``MQTTEngine/publishRunAtLeastOnce(_:from:token:at:)``.
    public var count: UInt16
    /// Where in ``MQTTEffects/events`` the acknowledgement's properties are; -1 if it had none.
    public var remark: Int32

    @inlinable
    public init(token: UInt64, outcome: Outcome, reason: MQTTReasonCode, remark: Int32 = -1, count: UInt16 = 1) {
        self.count = count
        self.token = token
        self.outcome = outcome
        self.reason = reason
        self.remark = remark
    }
}
