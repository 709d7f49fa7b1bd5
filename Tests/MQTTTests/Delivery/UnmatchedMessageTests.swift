import LoopbackBroker
import TestSupport
import Testing
import Transport

@testable import MQTT

/// QoS 1 and 2 messages that come before anybody has subscribed to them.
@Suite("Delivery: kept messages", .turns)
struct UnmatchedMessageTests {
    /// A session with subscriptions to `k/#`, whose client is gone, and messages that wait for it.
    private func leave(_ count: Int, on bench: Bench, payload: Int = 1) async throws {
        let first = try await bench.connected("keeper") { $0.cleanStart = false }
        let subscription = try await first.subscribe(to: "k/#", qos: .exactlyOnce)
        await first.disconnect()
        // Dropped before, it would be unsubscribed.
        for try await _ in subscription {}
        let sender = try await bench.connected()
        for number in 0..<count {
            try await sender.publish(
                [UInt8](repeating: UInt8(number), count: payload), to: "k/\(number % 2)",
                qos: number % 3 == 0 ? .exactlyOnce : .atLeastOnce)
        }
        await sender.disconnect()
    }

    private func client(_ bench: Bench, _ change: (inout MQTTConfiguration) -> Void = { _ in }) -> MQTTClient {
        bench.client("keeper") {
            $0.cleanStart = false
            change(&$0)
        }
    }

    /// Waits until so many messages are kept.
    private func settled(_ client: MQTTClient, _ count: Int) async throws {
        #expect(await eventually { client.core.link.perform { $0.unmatched.count } == count })
    }

    private func drops(_ events: Updates<MQTTEvent>, _ count: Int) -> Task<
        [MQTTUnmatchedMessagePolicy.DropReason], Never
    > {
        var iterator = events.makeAsyncIterator()
        return Task {
            var reasons: [MQTTUnmatchedMessagePolicy.DropReason] = []
            while reasons.count < count, let event = await iterator.next() {
                if case .unmatchedMessageDropped(_, let reason) = event { reasons.append(reason) }
            }
            return reasons
        }
    }

    @Test func `the next matching subscriptions get them first, in order, each once`() async throws {
        let bench = try await Bench()
        try await leave(20, on: bench)
        let client = client(bench)
        try await client.connect()
        let other = try await client.subscribe(to: "other")
        try await settled(client, 20)
        let odd = try await client.subscribe(to: "k/1", qos: .exactlyOnce)
        let sender = try await bench.connected()
        try await sender.publish([99], to: "k/1", qos: .atLeastOnce)
        let odds = try await odd.first(11)
        #expect(odds.map { $0.bytes[0] } == [UInt8](stride(from: 1, to: 20, by: 2)) + [99])
        #expect(odds[0].qos == .atLeastOnce && odds[1].qos == .exactlyOnce)
        let all = try await client.subscribe(to: "k/+", qos: .exactlyOnce)
        let rest = try await all.first(10)
        #expect(rest.map { $0.bytes[0] } == (0..<20).filter { $0 % 2 == 0 })
        #expect(rest.map(\.captures) == Array(repeating: ["0"], count: 10))
        #expect(other.droppedCount == 0)
        let none = try await client.subscribe(to: "k/0", qos: .exactlyOnce)
        try await sender.publish([100], to: "k/0", qos: .atLeastOnce)
        #expect(try await none.first(1).first?.bytes == [100])
        await sender.disconnect()
        await client.disconnect()
        await bench.stop()
    }

    @Test func `whoever takes what nobody else gets takes these too`() async throws {
        let bench = try await Bench()
        try await leave(5, on: bench)
        let client = client(bench)
        try await client.connect()
        try await settled(client, 5)
        let rest = await client.unmatchedMessages()
        #expect(try await rest.first(5).map { $0.bytes[0] } == [0, 1, 2, 3, 4])
        await client.disconnect()
        await bench.stop()
    }

    @Test func `count, bytes and age are bounds, and a drop is told`() async throws {
        let bench = try await Bench()
        try await leave(6, on: bench, payload: 100)
        // Four of six by count; a topic has three bytes.
        var kept = MQTTUnmatchedMessagePolicy(maximumMessages: 4)
        var reasons: [MQTTUnmatchedMessagePolicy.DropReason] = [.count, .count]
        for round in 0..<3 {
            let client = client(bench) { $0.unmatchedMessagePolicy = kept }
            let drops = drops(client.events, reasons.count)
            try await client.connect()
            #expect(await drops.value == reasons)
            if round < 2 {
                let rest = await client.unmatchedMessages()
                #expect(try await rest.first(6 - reasons.count).first?.bytes[0] == UInt8(reasons.count))
            }
            await client.disconnect()
            try await leave(6, on: bench, payload: 100)
            kept =
                round == 0
                ? MQTTUnmatchedMessagePolicy(maximumBytes: 320)
                : MQTTUnmatchedMessagePolicy(timeToLive: .milliseconds(50))
            reasons = round == 0 ? [.bytes, .bytes, .bytes] : Array(repeating: .age, count: 6)
        }
        await bench.stop()
    }

    @Test func `a message is kept no longer than it is valid`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            step.perform { machine in
                var properties = MQTTProperties()
                properties.messageExpiryInterval = 1
                properties.contentType = "x"
                for number in UInt8(0)..<2 {
                    _ = try? machine.engine.publish(
                        topic: "a", payload: [number], qos: .atLeastOnce, properties: number == 0 ? properties : [],
                        at: 0)
                }
            }
        }
        let client = server.client { $0.version = .v5_0 }
        let drops = drops(client.events, 1)
        try await client.connect()
        #expect(await drops.value == [.age])
        let messages = await client.unmatchedMessages()
        #expect(try await messages.first(1).map(\.bytes) == [[1]])
        await client.disconnect()
    }

    @Test func `nothing is kept where that is off`() async throws {
        let bench = try await Bench()
        try await leave(5, on: bench)
        let client = client(bench) { $0.unmatchedMessagePolicy = .off }
        let drops = drops(client.events, 5)
        try await client.connect()
        #expect(await drops.value == Array(repeating: .count, count: 5))
        // What the session held is there before the answer to a request.
        _ = try await client.subscribe(to: "other")
        let rest = await client.unmatchedMessages()
        let sender = try await bench.connected()
        try await sender.publish([99], to: "k/0", qos: .atLeastOnce)
        #expect(try await rest.first(1).first?.bytes == [99])
        await sender.disconnect()
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a refused subscription takes nothing with it`() async throws {
        let bench = try await Bench()
        try await leave(4, on: bench)
        let client = client(bench)
        try await client.connect()
        try await settled(client, 4)
        bench.broker.changeFaults { $0.refusedFilters = ["k/+"] }
        await #expect { _ = try await client.subscribe(to: "k/+") } throws: { ($0 as? MQTTError)?.code == .refused }
        #expect(
            await eventually {
                guard let messages = try? await client.subscribe(to: "k/#", acknowledgement: .manual) else {
                    return false
                }
                let messages4 = try? await messages.first(4)
                return messages4?.map { $0.bytes[0] } == [0, 1, 2, 3]
            })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `they wait over the end of the process, until they were taken`() async throws {
        let bench = try await Bench()
        let scratch = try ScratchDirectory()
        func next() -> MQTTClient {
            client(bench) { $0.sessionStore = FileSessionStore(directory: scratch.file("s")) }
        }
        try await leave(6, on: bench)
        do {
            let first = next()
            try await first.connect()
            try await settled(first, 6)
            // Returns when this, and what was kept before it, is stored.
            try await first.enqueue(MQTTOutgoingMessage([0], to: "elsewhere"))
            await first.suspend()
        }
        do {
            let second = next()
            // The store of the one before is free when that is gone.
            #expect(await eventually { (try? await second.connect()) != nil })
            let messages = try await second.subscribe(to: "k/1", qos: .exactlyOnce, acknowledgement: .manual)
            let received = try await messages.first(3)
            #expect(received.map { $0.bytes[0] } == [1, 3, 5])
            received[1].acknowledge()
            let even = try await second.subscribe(to: "k/0", qos: .exactlyOnce)
            #expect(try await even.first(3).map { $0.bytes[0] } == [0, 2, 4])
            try await second.enqueue(MQTTOutgoingMessage([0], to: "elsewhere"))
            await second.suspend()
        }
        let third = next()
        #expect(await eventually { (try? await third.connect()) != nil })
        let rest = await third.unmatchedMessages()
        #expect(try await rest.first(2).map { $0.bytes[0] } == [1, 5])
        #expect(third.counters.messagesReceived == 2)
        await third.disconnect()
        await bench.stop()
    }

    @Test(arguments: [true, false])
    func `what nobody wants or can read is acknowledged`(keeps: Bool) async throws {
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let packet):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: [.grantedQoS2], at: 0)
                }
            case .unsubscribeReceived(let packet):
                step.perform { machine in
                    try? machine.engine.acknowledgeUnsubscribe(packet.packetID, codes: [.success], at: 0)
                }
            default: break
            }
        }
        func publish(_ topic: String) {
            server.link?.perform(urgent: true) { machine in
                for qos in [QoS.atLeastOnce, .exactlyOnce] {
                    _ = try? machine.engine.publish(topic: topic, payload: [0xFF], qos: qos, at: 0)
                }
            }
        }
        func isAcknowledged() async -> Bool {
            await eventually { server.link?.perform { $0.engine.inFlightCount } == 0 }
        }
        let client = server.client {
            $0.version = .v5_0
            if !keeps { $0.unmatchedMessagePolicy = .off }
        }
        try await client.connect()
        publish("never/wanted")
        #expect(await isAcknowledged())
        let texts = try await client.subscribe(to: MQTTTopic.text("unreadable"))
        publish("unreadable")
        #expect(await isAcknowledged())
        var iterator = texts.makeAsyncIterator()
        let element = try #require(await iterator.next())
        #expect(throws: DecodeFailure.self) { try element.get() }
        try await texts.subscription.unsubscribe()
        publish("unreadable")
        #expect(await isAcknowledged())
        #expect(client.counters.messagesReceived == 2)
        await client.disconnect()
    }
}
