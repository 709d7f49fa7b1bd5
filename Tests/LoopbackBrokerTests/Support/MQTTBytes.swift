/// Packets of MQTT 3.1.1 written by hand, so that nothing of the code under test helps to make them.
enum MQTTBytes {
    static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        return [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
    }

    static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var length = body.count
        var header = [first]
        repeat {
            header.append(UInt8(length & 0x7F) | (length > 0x7F ? 0x80 : 0))
            length >>= 7
        } while length > 0
        return header + body
    }

    static func connect(
        _ clientID: String, clean: Bool = true, keepAlive: UInt8 = 255, level: UInt8 = 4,
        will: (topic: String, payload: String, qos: UInt8, retain: Bool)? = nil,
        user: (name: String, password: String)? = nil, properties: [UInt8] = []
    ) -> [UInt8] {
        var flags: UInt8 = clean ? 0x02 : 0
        if let will { flags |= 0x04 | will.qos << 3 | (will.retain ? 0x20 : 0) }
        if user != nil { flags |= 0xC0 }
        var body = text(level == 3 ? "MQIsdp" : "MQTT") + [level, flags, 0, keepAlive]
        if level == 5 { body += [UInt8(properties.count)] + properties }
        body += text(clientID)
        if let will {
            if level == 5 { body += [0] }
            body += text(will.topic) + text(will.payload)
        }
        if let user { body += text(user.name) + text(user.password) }
        return packet(0x10, body)
    }

    static func publish(
        _ topic: String, _ payload: String, qos: UInt8 = 0, retain: Bool = false, id: UInt8 = 1,
        isDuplicate: Bool = false
    ) -> [UInt8] {
        let first = 0x30 | qos << 1 | (retain ? 1 : 0) | (isDuplicate ? 8 : 0)
        return packet(first, text(topic) + (qos > 0 ? [0, id] : []) + Array(payload.utf8))
    }

    static func subscribe(_ filter: String, qos: UInt8 = 0, id: UInt8 = 1) -> [UInt8] {
        packet(0x82, [0, id] + text(filter) + [qos])
    }

    static func unsubscribe(_ filter: String, id: UInt8 = 1) -> [UInt8] {
        packet(0xA2, [0, id] + text(filter))
    }

    static let disconnect: [UInt8] = [0xE0, 0]
    static let ping: [UInt8] = [0xC0, 0]
}
