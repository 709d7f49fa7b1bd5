public import MQTTCore
public import Messaging
import Transport

/// A packet that went over the connection, made for looking at; see ``MQTTClient/inspect(showingSecrets:)``.
public struct MQTTPacketRecord: Sendable {
    /// Whether the client sent or received the packet.
    public let direction: FrameDirection
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// The size of the whole packet in bytes.
    public let size: Int
    /// The packet; of payloads only the first 256 bytes, and with its secrets masked unless they were asked for.
    public let packet: MQTTPacket
    /// The size of a PUBLISH packet's payload, 0 for other packets.
    public let payloadCount: Int

    /// The type of the packet.
    public var type: MQTTPacketType { packet.type }

    init(_ packet: MQTTPacket, size: Int, _ direction: FrameDirection, showsSecrets: Bool) {
        self.direction = direction
        time = WallClock.milliseconds
        self.size = size
        if case .publish(let publish) = packet { payloadCount = publish.payload.count } else { payloadCount = 0 }
        self.packet = packet.trimmed(showsSecrets: showsSecrets)
    }

    /// Reads whole packets, with their secrets, and where they stand.
    static func forEachPacket(
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
}

extension MQTTPacket {
    fileprivate func trimmed(showsSecrets: Bool) -> MQTTPacket {
        let limit = FrameText.previewLimit
        let mask = Array(FrameText.mask.utf8)
        switch self {
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
            return self
        }
    }
}
