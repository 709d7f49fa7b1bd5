import Wire

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

    /// The number of the topic in the table that `receive` was given; 0 if it is not there.
    @usableFromInline package var topicNumber: UInt16

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
        topicNumber: UInt16 = 0
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
        self.topicNumber = topicNumber
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
}
