import MQTTCore
import Messaging

extension MQTTPacketRecord: CustomStringConvertible {
    /// The packet in one line, without its direction: `PUBLISH /a/b QoS 1 id 7 retain "on" (2 bytes)`.
    public var description: String {
        ([type.description] + details).joined(separator: " ")
    }

    /// Everything but the type, in words.
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
        return words + ["(\(payloadCount) bytes)"]
    }
}
