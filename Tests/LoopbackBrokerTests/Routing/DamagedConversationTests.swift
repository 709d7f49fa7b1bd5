import LoopbackBroker
import MessagingJudge
import TestSupport
import Testing
import Transport

/// Conversations of clients, with bytes changed, dropped, doubled and mixed, against one broker: fuzzing of its router.
@Suite(.turns) struct DamagedConversationTests {
    private static func mqtt(_ random: inout SeededGenerator) -> [[UInt8]] {
        let filters = ["a/b", "a/#", "+/b", "#", "$share/g/a/b", "", "a/\0", "$SYS/#"]
        let level: UInt8 = [3, 4, 4, 5].randomElement(using: &random) ?? 4
        var packets = [
            MQTTBytes.connect(
                "c\(Int.random(in: 0...5, using: &random))", clean: Bool.random(using: &random), level: level,
                will: Bool.random(using: &random) ? ("a/b", "gone", 1, true) : nil)
        ]
        for _ in 0..<Int.random(in: 1...8, using: &random) {
            let filter = filters.randomElement(using: &random) ?? ""
            let qos = UInt8.random(in: 0...3, using: &random)
            let id = UInt8.random(in: 0...3, using: &random)
            packets.append(
                [
                    MQTTBytes.subscribe(filter, qos: qos, id: id), MQTTBytes.unsubscribe(filter, id: id),
                    MQTTBytes.publish(filter, "payload", qos: qos, retain: Bool.random(using: &random), id: id),
                    [0x40, 2, 0, id], [0x50, 2, 0, id], [0x62, 2, 0, id], [0x70, 2, 0, id], [0xC0, 0], [0xE0, 0],
                ].randomElement(using: &random) ?? [])
        }
        return packets
    }

    private static func stomp(_ random: inout SeededGenerator) -> [[UInt8]] {
        let places = ["/queue/a", "/topic/a", "/topic/a.*", "/temp-queue/x", "/remote-temp-queue/1:x", "nonsense", ""]
        var frames = ["CONNECT\naccept-version:1.0,1.1,1.2\nhost:/\nclient-id:c\n\n\0"]
        for number in 0..<Int.random(in: 1...8, using: &random) {
            let place = places.randomElement(using: &random) ?? ""
            let mode = ["auto", "client", "client-individual", "x"].randomElement(using: &random) ?? ""
            frames.append(
                [
                    "SUBSCRIBE\nid:\(number % 3)\ndestination:\(place)\nack:\(mode)\nreceipt:r\n\n\0",
                    "SUBSCRIBE\nid:d\ndestination:\(place)\ndurable-subscription-name:n\nselector:a = 'b'\n\n\0",
                    "UNSUBSCRIBE\nid:\(number % 3)\n\n\0",
                    "SEND\ndestination:\(place)\nreply-to:/temp-queue/x\n\nbody\0",
                    "SEND\ndestination:\(place)\ncontent-length:3\ntransaction:t\n\na\0b\0",
                    "BEGIN\ntransaction:t\n\n\0",
                    "COMMIT\ntransaction:t\n\n\0", "ABORT\ntransaction:t\n\n\0", "ACK\nid:1\n\n\0", "NACK\nid:1\n\n\0",
                    "DISCONNECT\nreceipt:bye\n\n\0", "\n\n",
                ].randomElement(using: &random) ?? "")
        }
        return frames.map { Array($0.utf8) }
    }

    /// Damages about every second conversation in a few places.
    private static func damaged(_ parts: [[UInt8]], _ random: inout SeededGenerator) -> [UInt8] {
        var parts = parts
        if Int.random(in: 0...3, using: &random) == 0 { parts.shuffle(using: &random) }
        var bytes = parts.flatMap(\.self)
        for _ in 0..<max(0, Int.random(in: -3...4, using: &random)) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0...3, using: &random) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(contentsOf: random.bytes(Int.random(in: 1...5, using: &random)), at: index)
            default: bytes.insert(contentsOf: bytes[index...].prefix(20), at: index)
            }
        }
        return bytes
    }

    @Test(arguments: [Service.Kind.mqtt, .stomp])
    func `whatever clients send, the broker goes on serving others`(kind: Service.Kind) async throws {
        var random = SeededGenerator(seed: Campaign.seed)
        try await withBroker(mayBreak: Set(Clause.allCases)) { broker in
            for round in 0..<Campaign.rounds(50_000, least: 300) {
                let parts = kind == .mqtt ? Self.mqtt(&random) : Self.stomp(&random)
                let bytes = Self.damaged(parts, &random)
                let (client, server) = MemoryPair.make()
                broker.attach(server, as: Service(kind))
                _ = bytes.withUnsafeBytes { client.write(from: $0) }
                client.endWriting()
                // The broker answers the end with its own; what it sent before does not matter.
                var buffer = [UInt8](repeating: 0, count: 4096)
                let hasEnded = await eventually(every: .microseconds(200)) {
                    while true {
                        switch buffer.withUnsafeMutableBytes({ client.read(into: $0) }) {
                        case .bytes: continue
                        case .wouldBlock: return false
                        case .endOfStream, .failed: return true
                        }
                    }
                }
                #expect(hasEnded, "round \(round), seed \(Campaign.seed): \(bytes)")
                client.close()
                if !hasEnded { break }
            }
            let healthy = try await RawClient.mqtt(broker, MQTTBytes.connect("healthy"))
            try await healthy.send(MQTTBytes.subscribe("only/here") + MQTTBytes.publish("only/here", "x"))
            try await healthy.expect([0x90, 3, 0, 1, 0] + MQTTBytes.publish("only/here", "x"))
            #expect(await eventually { broker.connectionCount == 1 })
        }
    }
}
