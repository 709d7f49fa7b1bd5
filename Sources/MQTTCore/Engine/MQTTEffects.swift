import Wire

/// What an input did, as plain arrays: the caller performs it after its lock is released, then clears it and hands it
/// in again, so that its capacity is used over and over.
public struct MQTTEffects: Sendable {
    /// Application messages, in the order of arrival. Their ranges are offsets into the bytes given to `receive`.
    public var messages: [MQTTMessageRecord] = []

    /// Topics of messages that came with a topic alias instead.
    package internal(set) var aliasTopics: [UInt8] = []

    /// How many messages have another topic than the message before them; if it is one, all have the same topic.
    package internal(set) var topicChanges = 0

    /// The tokens of the messages of QoS 1 and 2; there may be others between them.
    package internal(set) var deliveries: ClosedRange<UInt64>?

    /// The bytes of the packets that brought the messages.
    package internal(set) var messageBytes = 0

    /// Publishes that came to their end.
    public var completions: [MQTTPublishCompletion] = []

    /// Everything else. Each event knows how many messages of this batch came before it.
    public var events: [MQTTEngineEvent] = []

    /// An engine that had to refuse messages for lack of room has room again.
    public var queueHasRoom = false

    public init() {}

    /// Whether there is nothing to perform.
    public var isEmpty: Bool {
        messages.isEmpty && completions.isEmpty && events.isEmpty && !queueHasRoom
    }

    /// Forgets everything and keeps the capacity.
    public mutating func removeAll() {
        messages.removeAll(keepingCapacity: true)
        // Messages that were passed on may still use these.
        if !aliasTopics.isEmpty { aliasTopics = [] }
        topicChanges = 0
        messageBytes = 0
        deliveries = nil
        completions.removeAll(keepingCapacity: true)
        events.removeAll(keepingCapacity: true)
        queueHasRoom = false
    }
}

extension MQTTEffects {
    /// The topic of a message, from the bytes given to `receive`.
    public func topic(of message: MQTTMessageRecord, in bytes: RawSpan) -> String {
        // The bytes of an array of bytes: nothing to reinterpret.
        message.topicName(in: message.isTopicAliased ? unsafe aliasTopics.span.bytes : bytes)
    }

    /// The topic of all messages if they have one, and there are several.
    package func commonTopic(in bytes: RawSpan) -> String? {
        guard topicChanges == 1, messages.count > 1 else { return nil }
        return topic(of: messages[0], in: bytes)
    }
}

/// The end of a publish of QoS 1 or 2, or of any publish that was queued.
public struct MQTTPublishCompletion: Sendable, Equatable {
    /// How a publish ended.
    public enum Outcome: UInt8, Sendable {
        /// The peer accepted it; the reason code is success or no matching subscribers.
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
        /// peer's maximum or the peer does not retain messages; see the reason code.
        case unsendable
        /// The session was discarded locally.
        case discarded
    }

    /// The token given to `publish`.
    public var token: UInt64
    /// How it ended.
    public var outcome: Outcome
    /// The peer's reason code, or ours for `unsendable`.
    public var reason: MQTTReasonCode
    /// Where in ``MQTTEffects/events`` the acknowledgement's properties are, or why there is none; -1 if it had none.
    public var remark: Int32

    @inlinable
    public init(token: UInt64, outcome: Outcome, reason: MQTTReasonCode, remark: Int32 = -1) {
        self.token = token
        self.outcome = outcome
        self.reason = reason
        self.remark = remark
    }
}

extension MQTTEffects {
    /// Notes the tokens of messages that were appended.
    mutating func add(_ tokens: Range<UInt64>) {
        guard let last = tokens.last else { return }
        deliveries = (deliveries?.lowerBound ?? tokens.lowerBound)...last
    }

    /// Appends an event at its place among the messages.
    mutating func report(_ kind: MQTTEngineEvent.Kind) {
        events.append(MQTTEngineEvent(messagesBefore: messages.count, kind: kind))
    }

    /// Reports the properties of an acknowledgement; returns the index of that event, or -1 if there are no properties.
    mutating func remark(_ properties: MQTTProperties, for token: UInt64) -> Int32 {
        if properties.isEmpty { return -1 }
        report(.acknowledgementProperties(token: token, properties))
        return Int32(truncatingIfNeeded: events.count - 1)
    }
}
