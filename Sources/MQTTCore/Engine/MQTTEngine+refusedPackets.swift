// Packets that break the protocol, described so that they are recognised when they come again.

import MessagingWire

extension MQTTEngine {
    /// What stands at `offset`, where a packet broke the protocol; nil if it is not whole, unless it is too large.
    func refusedPacket(
        _ bytes: RawSpan, at offset: Int, because violation: MQTTProtocolError
    ) -> MQTTRefusedPacket? {
        guard
            let header = try? MQTTFrameHeader.parse(
                bytes, at: offset, maximumPacketSize: MQTTPacket.largestSize, version: version, from: .server)
        else { return nil }
        let limit = header.type == .publish ? Int.max : Int(acceptedControlPacketSize)
        if header.packetCount > min(limit, acceptedPacketSize) { return tooLarge(header, bytes, at: offset) }
        guard bytes.byteCount - offset >= header.packetCount else { return nil }
        let body = header.bodyRange(in: bytes, at: offset)
        guard header.type == .publish, body.count >= 2 else {
            let hasID = body.count >= 2 && header.type.beginsWithID
            let rest = body.lowerBound + (hasID ? 2 : 0)..<body.upperBound
            let id = hasID ? bytes.bigEndian(UInt16.self, at: body.lowerBound) : 0
            return MQTTRefusedPacket(
                type: header.type, topic: "", fingerprint: bytes.extracting(rest).hashed,
                filters: header.type == .suback ? filters(ofSubscribe: id) : [])
        }
        let topicStart = body.lowerBound + 2
        let topic =
            topicStart..<min(topicStart + Int(bytes.bigEndian(UInt16.self, at: body.lowerBound)), body.upperBound)
        let idCount = header.publishFlags.isAtMostOnce ? 0 : 2
        let rest = min(topic.upperBound + idCount, body.upperBound)..<body.upperBound
        return MQTTRefusedPacket(
            type: .publish, topic: Self.text(bytes, topic),
            fingerprint: bytes.extracting(topic).hashed &* 31 ^ bytes.extracting(rest).hashed,
            isDroppable: isDroppable(header, bytes, at: offset, violation))
    }

    /// A packet that is known by its size alone, because how much of it has arrived differs from connection to connection.
    private func tooLarge(_ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int) -> MQTTRefusedPacket {
        var packet = MQTTRefusedPacket(type: header.type, topic: "", fingerprint: UInt64(header.packetCount))
        let start = offset + header.headerCount + 2
        guard header.bodyCount >= 2, start <= bytes.byteCount else { return packet }
        // The length of the topic, or the packet identifier.
        let number = bytes.bigEndian(UInt16.self, at: start - 2)
        let end = start + Int(number)
        if header.type == .publish, end <= bytes.byteCount { packet.topic = Self.text(bytes, start..<end) }
        if header.type == .suback { packet.filters = filters(ofSubscribe: number) }
        return packet
    }

    private func isDroppable(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int, _ violation: MQTTProtocolError
    ) -> Bool {
        // What breaks off inside its fields is not a message that could be dropped.
        guard let view = try? MQTTPublishView.parse(header, in: bytes, at: offset, version: version),
            violation.reasonCode != .receiveMaximumExceeded
        else { return false }
        return isDroppable(view, bytes, violation)
    }
}

extension MQTTPacketType {
    /// Whether a packet of this type begins with a packet identifier. PUBLISH has its topic before that.
    fileprivate var beginsWithID: Bool {
        switch self {
        case .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .suback, .unsubscribe, .unsuback: true
        case .connect, .connack, .publish, .pingreq, .pingresp, .disconnect, .auth: false
        }
    }
}
