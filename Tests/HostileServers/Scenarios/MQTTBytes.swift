/// MQTT 5.0 packets, written by hand.
enum MQTTBytes {
    static let connack: [UInt8] = [0x20, 3, 0, 0, 0]
    static let pingresp: [UInt8] = [0xD0, 0]
    static let publish0: [UInt8] = packet(0x30, [0, 1, 0x61, 0] + Array("hello".utf8))

    /// A packet with its Remaining Length.
    static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] { [first] + length(body.count) + body }

    /// A Variable Byte Integer.
    static func length(_ value: Int) -> [UInt8] {
        var (value, bytes) = (value, [UInt8]())
        repeat {
            bytes.append(UInt8(value & 0x7F) | (value > 0x7F ? 0x80 : 0))
            value >>= 7
        } while value > 0
        return bytes
    }

    static func string(_ text: String) -> [UInt8] {
        [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 0xFF)] + Array(text.utf8)
    }

    /// CONNACK with a reason and a Server Reference.
    static func redirect(_ reason: UInt8, to server: String) -> [UInt8] {
        let properties = [0x1C] + string(server)
        return packet(0x20, [0, reason] + length(properties.count) + properties)
    }

    /// AUTH that continues with the method `x`.
    static let auth: [UInt8] = packet(0xF0, [0x18] + length(4) + [0x15] + string("x"))

    /// QoS 1 or 2.
    static func publish(qos: UInt8, id: Int, topic: String = "a") -> [UInt8] {
        packet(0x30 | qos << 1, string(topic) + identifier(id) + [0] + Array("x".utf8))
    }

    static func identifier(_ id: Int) -> [UInt8] { [UInt8(id >> 8 & 0xFF), UInt8(id & 0xFF)] }
}

extension Peer {
    /// Reads CONNECT and accepts it.
    func acceptMQTT() throws {
        _ = try receive()
        try send(MQTTBytes.connack)
    }

    /// Accepts, and answers the SUBSCRIBE that follows.
    func acceptSubscription() throws {
        try acceptMQTT()
        var packet = try receive()
        while packet.first != 0x82 { packet = try receive() }
        try send(MQTTBytes.packet(0x90, Array(packet[2...3]) + [0, 2]))
    }
}
