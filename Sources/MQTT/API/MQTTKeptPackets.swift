import MQTTCore
import Messaging
import Synchronization
import Transport

/// Finds the packets in what a connection exchanges for logs, and decodes each when its log is read.
enum MQTTKeptPackets {
    /// Adds whole packets, of which only the header is read, and the topic of a PUBLISH with an alias, which is unknown
    /// later. Packets that open a connection or may carry authentication data are decoded and masked at once, and so are
    /// packets that are too large to be kept whole.
    static func split(
        _ bytes: RawSpan, version: MQTTVersion, _ direction: FrameDirection, _ limits: FrameLimits,
        _ aliases: MQTTSeenAliases, into cuts: inout FrameCuts
    ) {
        var (version, start) = (version, 0)
        cuts.begin(at: 0, decoder: RecordDecoder(MQTTPacketRecord.self, version: version))
        while let header = try? MQTTFrameHeader.parse(
            bytes, at: start, maximumPacketSize: MQTTFrameHeader.largestPacket, version: version),
            header.packetCount <= bytes.byteCount - start
        {
            let end = start + header.packetCount
            if mayHaveSecrets(header.type) || header.packetCount > limits.whole {
                let packet = bytes.extracting(start..<end)
                let wishes = FrameWishes(logLimit: limits.kept)
                cuts.add(MQTTPacketRecord.read(packet, version: version, direction, wishes, aliases: aliases))
                if header.type == .connect { version = announced(in: packet) ?? version }
                cuts.begin(at: end, decoder: RecordDecoder(MQTTPacketRecord.self, version: version))
            } else if header.type == .publish, version.hasProperties,
                let topic = aliasedTopic(header, bytes, start, version, direction, aliases)
            {
                cuts.begin(at: start, decoder: RecordDecoder(MQTTPacketRecord.self, version: version, topic: topic))
                cuts.add(endingAt: end)
                cuts.begin(at: end, decoder: RecordDecoder(MQTTPacketRecord.self, version: version))
            } else {
                cuts.add(endingAt: end)
            }
            start = end
        }
    }

    /// Whether packets of the type open a connection or may carry authentication data.
    private static func mayHaveSecrets(_ type: MQTTPacketType) -> Bool {
        switch type {
        case .connect, .connack, .auth: true
        default: false
        }
    }

    /// The version that a CONNECT names.
    private static func announced(in packet: RawSpan) -> MQTTVersion? {
        var version: MQTTVersion?
        MQTTPacketRecord.forEachFrame(in: packet, version: .v5_0) { packet, _ in
            if case .connect(let connect) = packet { version = connect.version }
        }
        return version
    }

    /// The topic of a PUBLISH with a topic alias; nil without one.
    private static func aliasedTopic(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, _ start: Int, _ version: MQTTVersion, _ direction: FrameDirection,
        _ aliases: MQTTSeenAliases
    ) -> String? {
        guard let view = try? MQTTPublishView.parse(header, in: bytes, at: start, version: version),
            let scan = try? view.scanProperties(in: bytes), scan.topicAlias != 0,
            let topic = try? view.topic(in: bytes)
        else { return nil }
        return aliases.topic(topic, alias: scan.topicAlias, direction)
    }
}

/// The topic aliases of a connection that is inspected (MQTT 5.0, section 3.3.2.3.4), so that every PUBLISH can be shown
/// with its topic. There are as many as client and server have allowed each other.
final class MQTTSeenAliases: Sendable {
    private let topics = Lock<[FrameDirection: [UInt16: String]]>([:])

    /// The topic of a PUBLISH; nil when it has only an alias that was set before the inspection began.
    func topic(of packet: MQTTPacket.Publish, _ direction: FrameDirection) -> String? {
        guard let alias = packet.properties.topicAlias else { return packet.topic.isEmpty ? nil : packet.topic }
        return topic(packet.topic, alias: alias, direction)
    }

    /// The topic of a PUBLISH with an alias, whose own topic may be empty.
    func topic(_ topic: String, alias: UInt16, _ direction: FrameDirection) -> String? {
        topics.withLock { topics in
            if !topic.isEmpty { topics[direction, default: [:]][alias] = topic }
            return topics[direction]?[alias]
        }
    }

    /// Forgets the aliases: a new connection has none [MQTT-3.3.2-7].
    func reset() {
        topics.withLock { $0 = [:] }
    }
}
