// Messages whose topic no PUBLISH may have, and the packets that break the protocol.

import Wire

/// The packet that broke the protocol; equal for a repetition of it under another identifier or with DUP.
public struct MQTTRefusedPacket: Sendable, Hashable {
    /// The type of the packet.
    public var type: MQTTPacketType
    /// The topic of PUBLISH, with what is not UTF-8 replaced; empty for other packets.
    public var topic: String
    /// A hash of what it holds beside its packet identifier.
    public var fingerprint: UInt64
}

extension MQTTEngine {
    /// A message was not accepted. With ``MQTTEngineConfiguration/dropsInvalidMessages`` one whose topic is invalid is
    /// acknowledged and dropped; everything else ends the connection.
    @inline(never)
    mutating func drop(
        _ view: MQTTPublishView, _ bytes: RawSpan, because violation: MQTTProtocolError, at now: Int64,
        into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard configuration.dropsInvalidMessages, !isServer, view.topicCount > 0,
            (try? MQTTTopicName.string(bytes, view.topicRange)) == nil
        else { throw violation }
        if view.flags & 0b0110 != 0 {
            guard let delivery = try recordArrival(view, at: now) else { return }
            acknowledge(delivery, reason: version.hasProperties ? .topicNameInvalid : .success, at: now)
        }
        effects.report(.invalidMessageDropped(topic: Self.text(bytes, view.topicRange), violation))
    }

    /// What stands at `offset`, where a packet broke the protocol; nil if it is not whole.
    func refusedPacket(_ bytes: RawSpan, at offset: Int) -> MQTTRefusedPacket? {
        guard
            let header = try? MQTTFrameHeader.parse(
                bytes, at: offset, maximumPacketSize: acceptedPacketSize, version: version),
            bytes.byteCount - offset >= header.packetCount
        else { return nil }
        let body = header.bodyRange(in: bytes, at: offset)
        guard header.type == .publish, body.count >= 2 else {
            return MQTTRefusedPacket(type: header.type, topic: "", fingerprint: bytes.extracting(body).hashed)
        }
        let topicStart = body.lowerBound + 2
        let topic =
            topicStart..<min(topicStart + Int(bytes.bigEndian(UInt16.self, at: body.lowerBound)), body.upperBound)
        let idCount = header.flags & 0b0110 == 0 ? 0 : 2
        let rest = min(topic.upperBound + idCount, body.upperBound)..<body.upperBound
        return MQTTRefusedPacket(
            type: .publish, topic: Self.text(bytes, topic),
            fingerprint: bytes.extracting(topic).hashed &* 31 ^ bytes.extracting(rest).hashed)
    }

    private static func text(_ bytes: RawSpan, _ range: Range<Int>) -> String {
        // Safe: the buffer is used inside the closure only.
        unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
