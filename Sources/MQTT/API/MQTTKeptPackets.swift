import MQTTCore
import Messaging
import Transport

/// Cuts what a connection exchanges into packets for logs, and decodes each when its log is read.
enum MQTTKeptPackets {
    /// Whole packets, not decoded: their header is read, and the topic of a PUBLISH with an alias, which cannot be told
    /// later. Those that open a connection or may carry authentication data are decoded and masked at once, as are those
    /// that are too large to be kept whole.
    static func split(
        _ bytes: RawSpan, version: MQTTVersion, _ direction: FrameDirection, limit: Int, aliases: MQTTSeenAliases
    ) -> [KeptFrame] {
        var (version, start) = (version, 0)
        var kept = KeptFrames(direction)
        while let header = try? MQTTFrameHeader.parse(
            bytes, at: start, maximumPacketSize: MQTTFrameHeader.largestPacket, version: version),
            header.packetCount <= bytes.byteCount - start
        {
            let range = start..<(start + header.packetCount)
            let isDecodedNow = [.connect, .connack, .auth].contains(header.type) || range.count > limit
            if isDecodedNow {
                let wishes = FrameWishes(logLimit: limit)
                let packet = bytes.extracting(range)
                kept.add(MQTTPacketRecord.read(packet, version: version, direction, wishes, aliases: aliases))
                if header.type == .connect { version = announced(in: packet) ?? version }
            } else {
                let topic = header.type == .publish ? alias(header, bytes, start, version, direction, aliases) : nil
                kept.add(range, of: bytes, decoder: Decoder(version: version, topic: topic))
            }
            start = range.upperBound
        }
        return kept.frames
    }

    /// The version that a CONNECT names.
    private static func announced(in packet: RawSpan) -> MQTTVersion? {
        var version: MQTTVersion?
        MQTTPacketRecord.forEachPacket(in: packet, version: .v5_0) { packet, _ in
            if case .connect(let connect) = packet { version = connect.version }
        }
        return version
    }

    /// The topic of a PUBLISH with a topic alias; nil without one.
    private static func alias(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, _ start: Int, _ version: MQTTVersion, _ direction: FrameDirection,
        _ aliases: MQTTSeenAliases
    ) -> String? {
        guard version.hasProperties,
            let view = try? MQTTPublishView.parse(header, in: bytes, at: start, version: version),
            let scan = try? view.scanProperties(in: bytes), scan.topicAlias != 0,
            let topic = try? view.topic(in: bytes)
        else { return nil }
        return aliases.topic(topic, alias: scan.topicAlias, direction)
    }

    private struct Decoder: FrameDecoder {
        let version: MQTTVersion
        /// Of a PUBLISH with a topic alias.
        let topic: String?

        func decode(_ frame: KeptFrame.Undecoded) -> LoggedFrame {
            var decoded: LoggedFrame?
            // UInt8 has no padding, so all bytes are initialised.
            let bytes = unsafe frame.bytes.span.bytes
            MQTTPacketRecord.forEachPacket(in: bytes, version: version) { packet, range in
                var topic = topic
                if case .publish(let publish) = packet, !publish.topic.isEmpty { topic = publish.topic }
                decoded = MQTTPacketRecord(
                    packet, size: range.count, frame.direction, time: frame.time, showsSecrets: false
                ).logged(
                    version, topic: topic, instant: frame.instant,
                    bytes: MQTTPacketRecord.masked(packet, bytes, range, limit: range.count))
            }
            if let decoded { return decoded }
            let type = MQTTPacketType(rawValue: frame.bytes[0] >> 4)
            return frame.invalid("MQTT \(version)", type: type?.description ?? "?")
        }
    }
}
