import MessagingWire

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
        /// The same for a message that was sent on an earlier connection: whether it arrived is unknown.
        case unsendableAgain
        /// The session was discarded locally.
        case discarded
    }

    /// The token given to `publish`.
    public var token: UInt64
    /// How it ended.
    public var outcome: Outcome
    /// The peer's reason code, or ours for `unsendable` and `unsendableAgain`.
    public var reason: MQTTReasonCode
    /// The index in ``MQTTEffects/events`` of the acknowledgement's properties, or of the reason why there was no
    /// acknowledgement; -1 if there is no such event.
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

/// One application message, as offsets into the bytes given to `receive`. Plain data of 32 bytes.
public struct MQTTMessageRecord: Sendable {
    /// The token for ``MQTTEngine/acknowledge(_:at:)``; 0 for QoS 0, which is not acknowledged. Tokens rise in the
    /// order of arrival over all connections of an engine.
    public var delivery: UInt64

    /// Where the topic starts; in ``MQTTEffects/aliasTopics`` if `isTopicAliased` is true.
    public var topicStart: UInt32

    /// Where the properties of a 5.0 message start. They end where the payload starts.
    public var propertiesStart: UInt32

    /// Where the payload starts.
    public var payloadStart: UInt32

    /// The number of bytes of the payload.
    public var payloadCount: UInt32

    /// The number of bytes of the topic.
    public var topicCount: UInt16

    /// The packet identifier; 0 for QoS 0.
    public var packetID: UInt16

    /// The number of the topic's destination in the table that `receive` was given, which topics may share; 0 if the topic is
    /// not in the table.
    @usableFromInline package var destination: UInt16

    /// DUP, QoS and RETAIN.
    public var flags: MQTTPublishFlags

    /// What the packet had for a topic.
    public var topicForm: TopicForm

    /// What a packet has for a topic.
    public enum TopicForm: UInt8, Sendable {
        /// A name.
        case name
        /// The name of the message before it, in the same read.
        case repeatedName
        /// A topic alias without a name.
        case alias
    }

    /// Whether the packet had a topic alias in place of the topic.
    @inlinable public var isTopicAliased: Bool { topicForm == .alias }

    /// Whether the topic is known to be that of the message before.
    @inlinable public var repeatsTopic: Bool { topicForm == .repeatedName }

    @inlinable
    public init(
        delivery: UInt64, topicStart: UInt32, topicCount: UInt16, propertiesStart: UInt32, payloadStart: UInt32,
        payloadCount: UInt32, packetID: UInt16, flags: MQTTPublishFlags, topicForm: TopicForm = .name,
        destination: UInt16 = 0
    ) {
        self.delivery = delivery
        self.topicStart = topicStart
        self.topicCount = topicCount
        self.propertiesStart = propertiesStart
        self.payloadStart = payloadStart
        self.payloadCount = payloadCount
        self.packetID = packetID
        self.flags = flags
        self.topicForm = topicForm
        self.destination = destination
    }

    /// The topic, in the bytes given to `receive` or in ``MQTTEffects/aliasTopics``.
    @inlinable public var topic: Range<Int> { Int(topicStart)..<Int(topicStart) + Int(topicCount) }

    /// The properties of the message in the bytes given to `receive`, without their length; empty before 5.0.
    @inlinable public var properties: Range<Int> { Int(propertiesStart)..<Int(payloadStart) }

    /// The payload in the bytes given to `receive`.
    @inlinable public var payload: Range<Int> { Int(payloadStart)..<Int(payloadStart) + Int(payloadCount) }

    /// All of the message that is in the bytes given to `receive`, from the topic or the properties on.
    @inlinable package var range: Range<Int> {
        (isTopicAliased ? Int(propertiesStart) : Int(topicStart))..<Int(payloadStart) + Int(payloadCount)
    }

    /// The same message in a copy of ``range`` that starts at an offset.
    @inlinable
    package func moved(to offset: Int) -> MQTTMessageRecord {
        let distance = UInt32(truncatingIfNeeded: offset &- range.lowerBound)
        var record = self
        if !isTopicAliased { record.topicStart = topicStart &+ distance }
        record.propertiesStart = propertiesStart &+ distance
        record.payloadStart = payloadStart &+ distance
        return record
    }
}

extension MQTTMessageRecord {
    /// The topic as text, from bytes that hold it at the record's offsets.
    public func topicName(in bytes: RawSpan) -> String {
        // The engine has checked that it is UTF-8.
        String(checked: bytes, topic, isASCII: TextScan.isPlainName(bytes, topic))
    }

    /// The properties of the message, decoded from bytes that hold it at the record's offsets.
    ///
    /// The engine has checked them before it made the record; other bytes yield no properties.
    public func decodeProperties(in bytes: RawSpan) -> MQTTProperties {
        guard !properties.isEmpty, properties.upperBound <= bytes.byteCount else { return [] }
        return (try? MQTTProperties(decoding: bytes, properties, carrier: .publish)) ?? []
    }

    /// Appends the Subscription Identifiers of the message; allocates nothing else.
    package func appendIdentifiers(in bytes: RawSpan, to identifiers: inout [UInt32]) {
        guard !properties.isEmpty, properties.upperBound <= bytes.byteCount else { return }
        var cursor = MQTTPropertyCursor(properties, carrier: .publish)
        while let found = try? cursor.next(bytes) {
            if found.identifier == .subscriptionIdentifier { identifiers.append(found.integer) }
        }
    }
}
