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

    /// DUP, QoS and RETAIN.
    public var flags: MQTTPublishFlags

    @inlinable
    public init(
        delivery: UInt64, topic: UInt32, propertiesStart: UInt32, payloadStart: UInt32, payloadCount: UInt32,
        packetID: UInt16, flags: MQTTPublishFlags
    ) {
        self.delivery = delivery
        self.topic = topic
        self.propertiesStart = propertiesStart
        self.payloadStart = payloadStart
        self.payloadCount = payloadCount
        self.packetID = packetID
        self.flags = flags
    }

    /// The properties of the message in the bytes given to `receive`, without their length; empty before 5.0.
    @inlinable public var properties: Range<Int> { Int(propertiesStart)..<Int(payloadStart) }

    /// The payload in the bytes given to `receive`.
    @inlinable public var payload: Range<Int> { Int(payloadStart)..<Int(payloadStart) + Int(payloadCount) }
}

extension MQTTMessageRecord {
    /// The properties of the message, decoded from bytes that hold it at the record's offsets.
    ///
    /// The engine has checked them before it made the record; other bytes yield no properties.
    public func decodeProperties(in bytes: RawSpan) -> MQTTProperties {
        guard !properties.isEmpty, properties.upperBound <= bytes.byteCount else { return [] }
        return (try? MQTTProperties(decoding: bytes, properties, carrier: .publish)) ?? []
    }
}
