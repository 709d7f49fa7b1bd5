/// A PUBLISH packet in the bytes that it came in: positions, no copies.
///
/// All positions are offsets into the bytes that it was read from. The topic's bytes and the properties are *not*
/// checked yet: ask ``topic(in:)`` (or `MQTTTopicName.validate`) and ``scanProperties(in:)`` before using them.
public struct MQTTPublishView: Sendable, Hashable {
    /// The flags of the fixed header, without DUP at QoS 0, where 3.1 lets it be set without a meaning.
    public let flags: UInt8
    /// Zero at QoS 0.
    public let packetID: UInt16
    public let topicStart: Int
    public let topicCount: Int
    /// Where the properties start, behind their length.
    public let propertiesStart: Int
    /// Zero in 3.1 and 3.1.1.
    public let propertiesCount: Int
    public let payloadStart: Int
    public let payloadCount: Int

    public var topicRange: Range<Int> { topicStart..<(topicStart + topicCount) }
    public var propertiesRange: Range<Int> { propertiesStart..<(propertiesStart + propertiesCount) }
    public var payloadRange: Range<Int> { payloadStart..<(payloadStart + payloadCount) }

    /// The quality of service; the header's parser has refused 3.
    public var qos: QoS { QoS(rawValue: flags >> 1 & 0b11) ?? .exactlyOnce }
    public var isRetained: Bool { flags & 0b0001 != 0 }
    public var isDuplicate: Bool { flags & 0b1000 != 0 }
}
