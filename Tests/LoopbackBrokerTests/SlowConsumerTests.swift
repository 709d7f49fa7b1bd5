import LoopbackBroker
import TestSupport
import Testing

/// Clients that do not read what they asked for.
@Suite(.turns) struct SlowConsumerTests {
    @Test func keepsTheLatestUnreliableMessagesAndCountsWhatItDrops() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumOutboxBytes = 64 * 1024
        options.limits.maximumSessionMessages = 100
        try await withBroker(options) { broker in
            let reader = try await RawClient.mqtt(broker, MQTTBytes.connect("reader"))
            try await reader.send(MQTTBytes.subscribe("t"))
            try await reader.expect([0x90, 3, 0, 1, 0])
            let sender = try await RawClient.mqtt(broker, MQTTBytes.connect("sender"))
            let filler = String(repeating: "x", count: 64 * 1024)
            for _ in 0..<400 { try await sender.send(MQTTBytes.publish("t", filler)) }
            try await sender.send(MQTTBytes.publish("t", "the last") + MQTTBytes.publish("t", "of all", qos: 1))
            try await sender.expect([0x40, 2, 0, 1])
            #expect(broker.statistics.messagesDropped > 0)
            let last = MQTTBytes.publish("t", "the last") + MQTTBytes.publish("t", "of all")
            let got = try await reader.connection.receive { $0.suffix(last.count) == last[...] }
            #expect(got.count < 400 * 64 * 1024)
            // No packet was torn.
            #expect((got.count - last.count) % MQTTBytes.publish("t", filler).count == 0)
        }
    }

    @Test func losesNothingOfAQueueOfSTOMP() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumOutboxBytes = 64 * 1024
        try await withBroker(options) { broker in
            let reader = try await RawClient.stomp(broker)
            try await reader.sendAndWait("SUBSCRIBE\nid:1\ndestination:/queue/q")
            let sender = try await RawClient.stomp(broker)
            let filler = String(repeating: "x", count: 64 * 1024)
            for number in 0..<200 {
                try await sender.send("SEND\ndestination:/queue/q\n\n\(number):\(filler)\0")
            }
            try await sender.sendAndWait("SEND\ndestination:/queue/q", body: "end")
            let end = Array("\n\nend\0".utf8)
            let got = try await reader.connection.receive { $0.suffix(end.count) == end[...] }
            let frames = got.split(separator: 0)
            #expect(frames.count == 201)
            for (number, frame) in frames.dropLast().enumerated() {
                let start = frame.count - filler.utf8.count - "\n\n\(number):".utf8.count
                #expect(frame.dropFirst(start).starts(with: "\n\n\(number):".utf8))
            }
            #expect(broker.statistics.messagesDropped == 0)
        }
    }

    @Test func sendsNoMoreUnacknowledgedThanPrefetchAllows() async throws {
        try await withBroker { broker in
            let client = try await RawClient.stomp(broker)
            try await client.sendAndWait(
                "SUBSCRIBE\nid:1\ndestination:/queue/q\nack:client-individual\nprefetch-count:1")
            try await client.send("SEND\ndestination:/queue/q\n\na\0SEND\ndestination:/queue/q\n\nb\0")
            let first = try await client.expectMessage("a")
            try await client.sendAndWait("SEND\ndestination:/topic/other", body: "")
            try await client.send("ACK\nid:\(first["ack"] ?? "")\n\n\0")
            try await client.expectMessage("b")
        }
    }
}
