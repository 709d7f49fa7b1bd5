public import MQTTCore
public import Messaging
import Transport
import Wire

/// A packet that was sent or received, for display; see ``MQTTClient/inspect(showingSecrets:)``.
public struct MQTTPacketRecord: FrameRecord {
    /// Whether the client sent or received the packet.
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The size of the whole packet in bytes.
    public let size: Int
    /// The packet, with the first 256 bytes of its payload, and with its secrets masked unless the caller asked for them.
    public let packet: MQTTPacket
    /// The size of a PUBLISH packet's payload, 0 for other packets.
    public let payloadCount: Int

    /// The type of the packet.
    public var type: MQTTPacketType { packet.type }

    package init(
        _ packet: MQTTPacket, size: Int, _ direction: FrameDirection, time: Int64 = WallClock.milliseconds,
        showsSecrets: Bool
    ) {
        self.direction = direction
        self.time = time
        self.size = size
        if case .publish(let publish) = packet { payloadCount = publish.payload.count } else { payloadCount = 0 }
        self.packet = Self.trimmed(packet, showsSecrets: showsSecrets)
    }

    /// Decodes whole packets, with their secrets, and the range of each.
    package static func forEachFrame(
        in bytes: RawSpan, version: MQTTVersion, _ body: (_ packet: MQTTPacket, _ range: Range<Int>) -> Void
    ) {
        var decoder = MQTTDecoder(version: version, maximumPacketSize: MQTTFrameHeader.largestPacket)
        decoder.push(bytes)
        var start = 0
        // Bytes that are not a valid packet end the connection; the engine reports the violation.
        while let packet = try? decoder.next() {
            let end = bytes.byteCount - decoder.bufferedCount
            body(packet, start..<end)
            start = end
        }
    }

    /// What the packet means for a message.
    var messageEvent: MessageEvent? {
        switch (packet, direction) {
        case (.publish(let publish), _):
            MessageEvent(
                direction == .sent ? .sent : .received, time: time,
                destination: publish.topic.isEmpty ? nil : publish.topic,
                identifier: publish.qos == .atMostOnce ? nil : "\(publish.packetID)", payloadCount: payloadCount)
        case (.puback(let packet), .received), (.pubcomp(let packet), .received):
            MessageEvent(.acknowledged, time: time, identifier: "\(packet.packetID)")
        case (.pubrec(let packet), .received) where packet.reasonCode.isError:
            MessageEvent(.acknowledged, time: time, identifier: "\(packet.packetID)")
        default: nil
        }
    }

    /// The packet with what a record keeps of it.
    private static func trimmed(_ packet: MQTTPacket, showsSecrets: Bool) -> MQTTPacket {
        let limit = FrameText.previewLimit
        let mask = Array(FrameText.mask.utf8)
        switch packet {
        case .publish(var packet):
            if packet.payload.count > limit { packet.payload = Array(packet.payload.prefix(limit)) }
            return .publish(packet)
        case .connect(var packet) where !showsSecrets:
            // Services take tokens as user names too, and a will may be meant for few.
            if packet.userName != nil { packet.userName = FrameText.mask }
            if packet.password != nil { packet.password = mask }
            if packet.will != nil { packet.will?.payload = mask }
            if packet.properties.authenticationData != nil { packet.properties.authenticationData = mask }
            return .connect(packet)
        case .connack(var packet) where !showsSecrets && packet.properties.authenticationData != nil:
            packet.properties.authenticationData = mask
            return .connack(packet)
        case .auth(var packet) where !showsSecrets && packet.properties.authenticationData != nil:
            packet.properties.authenticationData = mask
            return .auth(packet)
        default:
            return packet
        }
    }
}

extension MQTTPacketRecord: CustomStringConvertible {
    /// The packet in one line, without its direction: `PUBLISH /a/b QoS 1 id 7 retain "on" (2 bytes)`.
    public var description: String {
        ([type.description] + details).joined(separator: " ")
    }

    /// Everything except the type.
    var details: [String] {
        switch packet {
        case .connect(let packet): words(packet)
        case .connack(let packet): [packet.reasonCode.description] + (packet.sessionPresent ? ["session-present"] : [])
        case .publish(let packet): words(packet)
        case .puback(let packet), .pubrec(let packet), .pubrel(let packet), .pubcomp(let packet):
            ["id \(packet.packetID)"] + (packet.reasonCode == .success ? [] : [packet.reasonCode.description])
        case .subscribe(let packet):
            ["id \(packet.packetID)"] + packet.subscriptions.map { "\($0.filter) \($0.qos)" }
        case .suback(let packet): ["id \(packet.packetID)"] + packet.reasonCodes.map(\.description)
        case .unsubscribe(let packet): ["id \(packet.packetID)"] + packet.filters
        case .unsuback(let packet): ["id \(packet.packetID)"] + packet.reasonCodes.map(\.description)
        case .pingreq, .pingresp: []
        case .disconnect(let packet): packet.reasonCode == .normalDisconnection ? [] : [packet.reasonCode.description]
        case .auth(let packet): [packet.reasonCode.description]
        }
    }

    private func words(_ packet: MQTTPacket.Connect) -> [String] {
        var words = ["\(packet.version)", "client-id \(packet.clientID)", "keep-alive \(packet.keepAlive)"]
        if packet.cleanStart { words.append("clean") }
        if let user = packet.userName { words.append("user \(user)") }
        if let password = packet.password { words.append("password \(String(decoding: password, as: UTF8.self))") }
        if let will = packet.will {
            let payload = FrameText.preview(Array(will.payload.prefix(FrameText.previewLimit)), of: will.payload.count)
            words.append("will \(will.topic) \(will.qos)\(will.retain ? " retain" : "") \(payload)")
        }
        return words
    }

    private func words(_ packet: MQTTPacket.Publish) -> [String] {
        var words = [packet.topic, "\(packet.qos)"]
        if packet.packetID != 0 { words.append("id \(packet.packetID)") }
        if packet.isDuplicate { words.append("dup") }
        if packet.isRetained { words.append("retain") }
        if payloadCount > 0 { words.append(FrameText.preview(packet.payload, of: payloadCount)) }
        return words + ["(\(OneLine.bytes(payloadCount)))"]
    }
}
