import ClientTestSupport
import Synchronization
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

    @Test func `acknowledgements keep their order when a time of late answers ends`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let (client, server) = MemoryPair.make()
        broker.attach(server, as: Service(.mqtt))
        func send(_ bytes: [UInt8]) async {
            #expect(bytes.withUnsafeBytes { client.write(from: $0) } == .bytes(bytes.count))
            await clock.waitUntilQuiet()
        }
        await send(MQTTBytes.connect("a"))
        broker.hub.answerDelay.store(5_000_000_000, ordering: .relaxed)
        for number in 1...9 { await send(MQTTBytes.publish("t", "x", qos: 1, id: UInt8(number))) }
        broker.hub.answerDelay.store(0, ordering: .relaxed)
        // One of another kind has nothing to wait for.
        await send(MQTTBytes.publish("t", "x", qos: 2, id: 20) + MQTTBytes.publish("t", "x", qos: 1, id: 10))
        await clock.advance(by: .seconds(5))
        await send(MQTTBytes.publish("t", "x", qos: 1, id: 11))
        var got = [UInt8](repeating: 0, count: 100)
        let result = got.withUnsafeMutableBytes { client.read(into: $0) }
        guard case .bytes(let count) = result else { throw RawClient.Unexpected(description: "\(result)") }
        let answers = stride(from: 4, to: count, by: 4).map { (kind: got[$0], id: got[$0 + 3]) }
        #expect(answers.filter { $0.kind == 0x40 }.map(\.id) == Array(1...11))
        #expect(answers.first?.kind == 0x50)
        await broker.stop()
    }

    @Test func `answers that are held back take no more memory than the outbox may`() async throws {
        let clock = try ManualClock()
        var options = LoopbackBrokerOptions()
        options.limits.maximumOutboxBytes = 10_000
        let broker = try await LoopbackBroker.judged(options, clock: clock, judgesPromises: false)
        let (client, server) = MemoryPair.make()
        for stream in [client, server] { stream.changeFaults { $0.capacity = .max } }
        broker.attach(server, as: Service(.stomp))
        broker.hub.answerDelay.store(5_000_000_000, ordering: .relaxed)
        let receipt = "RECEIPT\nreceipt-id:r\n\n\0".utf8.count
        func receiptCount() -> Int {
            var got = [UInt8](repeating: 0, count: 100_000)
            guard case .bytes(let count) = got.withUnsafeMutableBytes({ client.read(into: $0) }) else { return 0 }
            return got[..<count].split(separator: 0).count { $0.starts(with: "RECEIPT".utf8) }
        }
        var question = Array("CONNECT\naccept-version:1.2\nhost:x\n\n\0".utf8)
        for _ in 0..<1_000 { question += Array("SEND\ndestination:/topic/x\nreceipt:r\n\n\0".utf8) }
        #expect(question.withUnsafeBytes { client.write(from: $0) } == .bytes(question.count))
        await clock.waitUntilQuiet()
        let early = receiptCount()
        #expect((1_000 - early) * receipt <= options.limits.maximumOutboxBytes)
        await clock.advance(by: .seconds(5))
        #expect(early + receiptCount() == 1_000)
        await broker.stop()
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
