package import MQTTCore
package import MessagingFrames
import MessagingWire
import Synchronization
import Transport

/// Finds the packets in what a connection exchanges, for its inspector, and decodes them when they are read.
package struct MQTTRecordDecoder: FrameDecoder {
    package let version: MQTTVersion
    /// The topic of a PUBLISH with a topic alias.
    var topic: String?

    package func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent {
        // UInt8 has no padding, so all bytes are initialised.
        let bytes = unsafe frame.bytes.span.bytes
        guard let header = Self.header(in: bytes, at: 0, version),
            // The body of a large packet ends where its bytes do.
            let packet = Self.packet(
                header.cut(toBody: bytes.byteCount - header.headerCount), bytes.extracting(header.headerCount...),
                version)
        else {
            let type = MQTTPacketType(rawValue: frame.bytes[0] >> 4)
            return InvalidFrame(frame, "MQTT \(version)", type: type?.description ?? "?")
        }
        return MQTTPacketRecord(packet, of: frame, version: version, topic: topic, showsSecrets: showsSecrets)
    }

    private static func header(in bytes: RawSpan, at start: Int, _ version: MQTTVersion) -> MQTTFrameHeader? {
        // Packets of a client need no leniency: they are valid.
        try? MQTTFrameHeader.parse(
            bytes, at: start, maximumPacketSize: MQTTPacket.largestSize, version: version, from: .server)
    }

    /// A packet of either side. Packets that only servers send are read as the client reads them.
    private static func packet(_ header: MQTTFrameHeader, _ body: RawSpan, _ version: MQTTVersion) -> MQTTPacket? {
        (try? MQTTPacket.decode(header, body: body, version: version))
            ?? (try? MQTTPacket.decode(header, body: body, version: version, from: .server))
    }

    /// Adds whole packets, of which only the header is read, the secrets of those that open a connection or may carry properties
    /// with secrets, and the topic of a PUBLISH with an alias, which is unknown later.
    package static func cut(
        _ bytes: RawSpan, version: MQTTVersion, _ direction: FrameDirection, _ aliases: MQTTSeenAliases,
        into cuts: inout FrameCuts
    ) {
        var (decoder, start) = (MQTTRecordDecoder(version: version), 0)
        cuts.begin(at: 0, decoder: decoder)
        while let header = header(in: bytes, at: start, decoder.version),
            header.packetCount <= bytes.byteCount - start
        {
            let packet = start..<start + header.packetCount
            switch header.type {
            case .connect, .connack, .auth:
                if let version = cut(header, bytes, packet, decoder, into: &cuts) {
                    decoder = MQTTRecordDecoder(version: version)
                    aliases.reset()
                }
                cuts.begin(at: packet.upperBound, decoder: decoder)
            case .publish where decoder.version.hasProperties:
                let topic = aliasedTopic(header, bytes, start, decoder.version, direction, aliases)
                let secrets = Self.secrets(ofPublish: header, bytes, packet, decoder.version)
                if topic != nil || !secrets.isEmpty {
                    let decoder = MQTTRecordDecoder(version: decoder.version, topic: topic)
                    cuts.add(packet, decoder: decoder, hiding: secrets)
                    cuts.begin(at: packet.upperBound, decoder: MQTTRecordDecoder(version: decoder.version))
                } else {
                    cuts.add(endingAt: packet.upperBound)
                }
            // Others have properties behind a packet identifier and a reason code, or behind the latter alone.
            case _ where decoder.version.hasProperties && header.bodyCount > 4 && header.type != .publish:
                let body = bytes.extracting(start + header.headerCount..<packet.upperBound)
                let found = Self.packet(header, body, decoder.version)
                let secrets = found.map { Self.secrets(of: $0, bytes.bytes(in: packet)) } ?? []
                if secrets.isEmpty {
                    cuts.add(endingAt: packet.upperBound)
                } else {
                    cuts.add(packet, decoder: decoder, hiding: secrets)
                    cuts.begin(at: packet.upperBound, decoder: decoder)
                }
            default: cuts.add(endingAt: packet.upperBound)
            }
            start = packet.upperBound
        }
    }

    /// Adds a packet that may have secrets. Returns the version that a CONNECT names.
    private static func cut(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, _ range: Range<Int>, _ decoder: MQTTRecordDecoder,
        into cuts: inout FrameCuts
    ) -> MQTTVersion? {
        let body = bytes.extracting(range.lowerBound + header.headerCount..<range.upperBound)
        let packet = Self.packet(header, body, decoder.version)
        var (decoder, named) = (decoder, MQTTVersion?.none)
        if case .connect(let connect) = packet {
            named = connect.version
            decoder = MQTTRecordDecoder(version: connect.version)
        }
        // An invalid packet may have its secrets anywhere.
        let secrets =
            packet.map { Self.secrets(of: $0, bytes.bytes(in: range)) } ?? [header.headerCount..<range.count]
        cuts.add(range, decoder: decoder, opensConnection: header.type == .connect, hiding: secrets)
        return named
    }

    /// Where the secrets of a packet are in its bytes.
    private static func secrets(of packet: MQTTPacket, _ bytes: [UInt8]) -> [Range<Int>] {
        var secrets = packet.properties.secrets(in: bytes)
        guard case .connect(let packet) = packet else { return secrets }
        // The last fields are will payload, user name and password, in this order [MQTT-3.1.3-1].
        let fields = [packet.password?.count, packet.userName?.utf8.count, packet.will?.payload.count]
        var end = bytes.count
        for count in fields.compactMap(\.self) where count <= end {
            secrets.append(end - count..<end)
            // Two bytes before the field hold its length.
            end -= count + 2
        }
        return secrets + (packet.will?.properties.secrets(in: bytes) ?? [])
    }

    /// The same for a PUBLISH, whose payload is not searched.
    private static func secrets(
        ofPublish header: MQTTFrameHeader, _ bytes: RawSpan, _ packet: Range<Int>, _ version: MQTTVersion
    ) -> [Range<Int>] {
        guard let view = try? MQTTPublishView.parse(header, in: bytes, at: packet.lowerBound, version: version),
            !view.propertiesRange.isEmpty
        else { return [] }
        let range = view.propertiesRange
        guard let properties = try? view.properties(in: bytes) else { return [0..<packet.count] }
        guard properties.hasSecrets else { return [] }
        let offset = range.lowerBound - packet.lowerBound
        return properties.secrets(in: bytes.bytes(in: range)).map { $0.lowerBound + offset..<$0.upperBound + offset }
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
package final class MQTTSeenAliases: Sendable {
    private let topics = Lock<[FrameDirection: [UInt16: String]]>([:])

    package init() {}

    /// The topic of a PUBLISH with an alias, whose own topic may be empty; nil if the alias was set before the inspection
    /// began.
    package func topic(_ topic: String, alias: UInt16, _ direction: FrameDirection) -> String? {
        topics.withLock { topics in
            if !topic.isEmpty { topics[direction, default: [:]][alias] = topic }
            return topics[direction]?[alias]
        }
    }

    /// Forgets the aliases: a new connection has none [MQTT-3.3.2-7].
    package func reset() {
        topics.withLock { $0 = [:] }
    }
}
