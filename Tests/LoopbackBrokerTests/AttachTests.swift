import TestSupport
import Testing
import Transport

@testable import LoopbackBroker

/// Streams that come from no port.
@Suite(.turns) struct AttachTests {
    @Test func servesAPairInMemoryOneByteAtATime() async throws {
        try await withBroker { broker in
            let (client, server) = MemoryPair.make()
            client.changeFaults { $0.bytesPerRead = 1 }
            broker.attach(server, as: Service(.mqtt))
            let question = MQTTBytes.connect("a") + MQTTBytes.subscribe("t") + MQTTBytes.publish("t", "x")
            #expect(question.withUnsafeBytes { client.write(from: $0) } == .bytes(question.count))
            let answer = [0x20, 2, 0, 0, 0x90, 3, 0, 1, 0] + MQTTBytes.publish("t", "x")
            var got: [UInt8] = []
            let isComplete = await eventually {
                var buffer = [UInt8](repeating: 0, count: 64)
                if case .bytes(let count) = buffer.withUnsafeMutableBytes({ client.read(into: $0) }) {
                    got += buffer[..<count]
                }
                return got.count >= answer.count
            }
            #expect(isComplete)
            #expect(got == answer)
            #expect(broker.statistics == LoopbackStatistics(connections: 1, messagesIn: 1, messagesOut: 1))
        }
    }

    @Test func doesWrongWhatItIsToldTo() async throws {
        var options = LoopbackBrokerOptions()
        options.faults.refusedFilters = ["no", "/topic/no"]
        options.faults.highestGrantedQoS = 1
        try await withBroker(options) { broker in
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
            try await client.send(MQTTBytes.subscribe("no", id: 1) + MQTTBytes.subscribe("yes", qos: 2, id: 2))
            try await client.expect([0x90, 3, 0, 1, 0x80, 0x90, 3, 0, 2, 1])
            let stomp = try await RawClient.stomp(broker)
            try await stomp.send("SUBSCRIBE\nid:1\ndestination:/topic/no\nreceipt:r\n\n\0")
            #expect(try await stomp.readFrame().contains("receipt-id:r\n"))
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            try await client.send(MQTTBytes.publish("yes", "x", qos: 1, id: 5))
            try await client.expect(MQTTBytes.publish("yes", "x", qos: 1))
            try await client.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
            broker.changeFaults { $0.refusesConnections = true }
            let refused = try await RawClient.open(broker.ports.mqtt)
            try await refused.send(MQTTBytes.connect("b"))
            try await refused.expect([0x20, 2, 0, 3])
            try await refused.expectEnd()
        }
    }
}
