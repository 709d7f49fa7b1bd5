import MQTT

extension Scenario {
    /// Servers that misbehave after they have accepted the connection.
    static let mqttSession: [Scenario] = [
        mqtt("frozen-after-connack", .silence) {
            try $0.acceptMQTT()
            try $0.freeze()
        },
        mqtt("frozen-while-publishing", .silence, act: .publishWithoutEnd) {
            try $0.acceptMQTT()
            try $0.freeze()
        },
        mqtt("frozen-while-publishing-slowly", .silence, act: .publishSlowly) {
            try $0.acceptMQTT()
            try $0.freeze()
        },
        mqtt("reads-without-answering", act: .publish) {
            try $0.acceptMQTT()
            try $0.freeze(reads: true)
        },
        mqtt("does-not-answer-subscribe", act: .subscribe) {
            try $0.acceptMQTT()
            try $0.freeze(reads: true)
        },
        mqtt("does-not-answer-unsubscribe", act: .unsubscribe) {
            try $0.acceptSubscription()
            try $0.freeze(reads: true)
        },
        mqtt("does-not-end-after-disconnect", Bounds(seconds: 11), act: .disconnect) {
            try $0.acceptMQTT()
            try $0.freeze(reads: true)
        },
        mqtt("half-closes-after-connack") {
            try $0.acceptMQTT()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        mqtt("resets-after-connack") {
            try $0.acceptMQTT()
            $0.reset()
        },
        mqtt("garbage-after-connack") {
            try $0.acceptMQTT()
            try $0.flood([0xFF, 0x00, 0xAA])
        },
        mqtt("slow-loris-publish", .holds) {
            try $0.acceptMQTT()
            try $0.drip(MQTTBytes.packet(0x30, [0, 1, 0x61, 0] + [UInt8](repeating: 0, count: 200)))
        },
        mqtt("publish-of-256-MB") {
            try $0.acceptMQTT()
            try $0.send([0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x61, 0])
            try $0.flood([UInt8](repeating: 0x61, count: 1024))
        },
        mqtt("closes-after-accepting-for-ever", Bounds(connections: 16, seconds: nil)) { configuration, _ in
            configuration.reconnect = ReconnectPolicy()
        } serve: {
            try $0.acceptMQTT()
        },
        mqtt("pingresp-flood", .holds) {
            try $0.acceptMQTT()
            try $0.flood(MQTTBytes.pingresp)
        },
        mqtt("pingreq-flood") {
            try $0.acceptMQTT()
            try $0.flood([0xC0, 0], reading: false)
        },
        mqtt("publish-flood-unmatched", .holds) {
            try $0.acceptMQTT()
            try $0.flood(MQTTBytes.publish0)
        },
        mqtt("publish-flood-to-a-sleeping-reader", Bounds(memory: 96, seconds: nil), act: .subscribeAndSleep) {
            try $0.acceptSubscription()
            try $0.flood(MQTTBytes.packet(0x30, [0, 1, 0x61, 0] + [UInt8](repeating: 1, count: 1000)))
        },
        mqtt("publish-flood-to-a-reader", Bounds(memory: 96, seconds: nil), act: .subscribe) {
            try $0.acceptSubscription()
            try $0.flood(MQTTBytes.packet(0x30, [0, 1, 0x61, 0] + [UInt8](repeating: 1, count: 100)))
        },
        mqtt("ten-million-topics", Bounds(memory: 96, seconds: nil), act: .subscribe) { peer in
            try peer.acceptSubscription()
            for first in stride(from: 0, to: 10_000_000, by: 1000) {
                let packets = (first..<(first + 1000)).flatMap { number in
                    MQTTBytes.packet(0x31, MQTTBytes.string("topic/\(number)") + [0])
                }
                try peer.send(packets)
                _ = try peer.receive(waiting: false)
            }
        },
        mqtt("topics-of-64-KB", Bounds(memory: 96, seconds: nil), act: .subscribe) { peer in
            try peer.acceptSubscription()
            var number = 0
            while true {
                number += 1
                let topic = "\(number)/" + String(repeating: "x", count: 65_000)
                try peer.send(MQTTBytes.packet(0x30, MQTTBytes.string(topic) + [0]))
                _ = try peer.receive(waiting: false)
            }
        },
        mqtt("topic-alias-churn", Bounds(memory: 96, seconds: nil), act: .subscribe) { peer in
            try peer.acceptSubscription()
            var number = 0
            while true {
                let packets = (0..<64).flatMap { alias in
                    number += 1
                    let properties: [UInt8] = [0x23] + MQTTBytes.identifier(alias + 1)
                    return MQTTBytes.packet(
                        0x30, MQTTBytes.string("t/\(number)" + String(repeating: "y", count: 1000)) + [3] + properties)
                }
                try peer.send(packets)
                _ = try peer.receive(waiting: false)
            }
        },
        mqtt("million-properties-in-publish", Bounds(memory: 96, seconds: nil), act: .subscribe) { peer in
            try peer.acceptSubscription()
            let properties = [UInt8](([[UInt8]](repeating: [0x26, 0, 0, 0, 0], count: 1_000_000)).joined())
            try peer.flood(
                MQTTBytes.packet(0x30, MQTTBytes.string("a") + MQTTBytes.length(properties.count) + properties),
                times: 20)
            try peer.freeze(reads: true)
        },
        mqtt("suback-of-ten-million-codes", act: .subscribe) { peer in
            try peer.acceptMQTT()
            var packet = try peer.receive()
            while packet.first != 0x82 { packet = try peer.receive() }
            let count = 10_000_000
            try peer.send([0x90] + MQTTBytes.length(count + 3) + Array(packet[2...3]) + [0])
            try peer.flood([UInt8](repeating: 0, count: 1000), times: count / 1000)
            try peer.freeze(reads: true)
        },
        mqtt("suback-with-too-few-codes", act: .subscribe) { peer in
            try peer.acceptMQTT()
            var packet = try peer.receive()
            while packet.first != 0x82 { packet = try peer.receive() }
            try peer.send(MQTTBytes.packet(0x90, Array(packet[2...3]) + [0]))
            try peer.freeze(reads: true)
        },
    ]

    /// Acknowledgements without end, and none.
    static let mqttExchanges: [Scenario] = [
        mqtt("qos1-beyond-receive-maximum", act: .subscribeAndSleep) { configuration, _ in
            configuration.receiveMaximum = 10
        } serve: { peer in
            try peer.acceptSubscription()
            for id in 1...1000 { try peer.send(MQTTBytes.publish(qos: 1, id: id)) }
            try peer.freeze(reads: true)
        },
        mqtt("qos2-without-pubrel", Bounds(seconds: 8, sent: 1 << 20), act: .subscribe) { peer in
            try peer.acceptSubscription()
            for id in 1...65_535 { try peer.send(MQTTBytes.publish(qos: 2, id: id)) }
            try peer.freeze(reads: true)
        },
        flood("pubrel-flood", [0x62, 2, 0, 7], Bounds(seconds: nil, sent: .max)),
        flood("pubrel-flood-without-reading", [0x62, 2, 0, 7], Bounds(seconds: nil), reading: false),
        flood("pubrec-flood-without-reading", [0x50, 2, 0, 7], Bounds(seconds: nil), reading: false),
        flood("puback-flood", [0x40, 2, 0, 7], .holds),
        flood("pubcomp-flood", [0x70, 2, 0, 7], .holds),
        flood("suback-flood", [0x90, 4, 0, 7, 0, 0], .holds),
        flood("unsuback-flood", [0xB0, 4, 0, 7, 0, 0], .holds),
        flood("disconnect-flood", [0xE0, 0], .ends),
        flood("publish-qos1-flood-without-reading", MQTTBytes.publish(qos: 1, id: 7), .holds, reading: false),
        flood("publish-qos2-flood-without-reading", MQTTBytes.publish(qos: 2, id: 7), .holds, reading: false),
        flood("reserved-packets", [0x00, 0], .ends),
        flood("subscribe-flood", [0x82, 7, 0, 7, 0, 0, 1, 0x61, 0], .ends),
        mqtt("puback-for-qos2", .holds, act: .publishExactlyOnce) { peer in
            try peer.acceptMQTT()
            var packet = try peer.receive()
            while packet.first.map({ $0 & 0xF0 }) != 0x30 { packet = try peer.receive() }
            try peer.send([0x40, 2] + packet[5...6])
            try peer.freeze(reads: true)
        },
        mqtt("pubrec-without-pubcomp", act: .publishExactlyOnce) { peer in
            try peer.acceptMQTT()
            var packet = try peer.receive()
            while packet.first.map({ $0 & 0xF0 }) != 0x30 { packet = try peer.receive() }
            try peer.send([0x50, 2] + packet[5...6])
            try peer.freeze(reads: true)
        },
    ]

    private static func flood(_ name: String, _ bytes: [UInt8], _ bounds: Bounds, reading: Bool = true) -> Scenario {
        mqtt(name, bounds) { peer in
            try peer.acceptMQTT()
            try peer.flood(bytes, reading: reading)
        }
    }
}
