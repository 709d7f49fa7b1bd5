import ClientTestSupport
import LoopbackBroker
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite("Client: messages that wait, and are given up", .turns)
struct WaitingMessageTests {
    /// The code with which a call fails; nil for success.
    private func code<Answer>(
        _ body: @escaping @Sendable () async throws(MQTTError) -> Answer
    ) async -> MQTTError.Code? {
        do throws(MQTTError) {
            _ = try await body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `publish ends when its time to live is over, without a connection`(version: MQTTVersion) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "sensor")
        configuration.version = version
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        try await client.connect()
        await client.suspend()
        var message = MQTTOutgoingMessage("x", to: "a", qos: .atLeastOnce)
        message.timeToLive = .seconds(30)
        let once = message
        let single = Task { await code { () throws(MQTTError) in try await client.publish(once) } }
        let many = Task { await client.publish([once, once]).map { try? $0.get() } }
        let confirmation = try await client.publishForConfirmation(once)
        while client.backlog.queuedMessages < 4 { await clock.waitUntilQuiet() }
        await clock.advance(by: .seconds(29))
        #expect(client.backlog.queuedMessages == 4)
        await clock.advance(by: .seconds(1))
        #expect(client.backlog.queuedMessages == 0)
        #expect(await single.value == .expired)
        #expect(await many.value == [nil, nil])
        #expect(await code { () throws(MQTTError) in try await confirmation.confirmed() } == .expired)
        #expect(client.state == .suspended)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `a client that is released is not held by what it has enqueued`() async throws {
        weak var link: Link<MQTTMachine>?
        do {
            let client = MQTTClient("mqtt://localhost:1", clientID: "sensor")
            var message = MQTTOutgoingMessage("x", to: "a")
            message.timeToLive = .seconds(3_600)
            try await client.enqueue(message)
            link = client.core.link
            // The loop knows of the deadline.
            await client.core.loop.result {}
        }
        #expect(await eventually { link == nil })
    }

    @Test func `a client is released although what it returned for its messages is kept`() async throws {
        let broker = try await LoopbackBroker.judged()
        let kept:
            (
                acknowledged: MQTTClient.Confirmation, unanswered: MQTTClient.Confirmation,
                enqueued: MQTTClient.EnqueuedMessage
            )
        let answer: MQTTPublishResult
        do {
            let client = MQTTClient(try broker.mqttURL, clientID: "sensor")
            try await client.connect()
            let message = MQTTOutgoingMessage("x", to: "a", qos: .atLeastOnce)
            let acknowledged = try await client.publishForConfirmation(message)
            answer = try await acknowledged.confirmed()
            broker.inject(.drop, .sent, .mqtt(.puback))
            kept = (acknowledged, try await client.publishForConfirmation(message), try await client.enqueue(message))
        }
        #expect(await eventually { broker.connectionCount == 0 })
        #expect(try await kept.acknowledged.confirmed() == answer)
        await #expect { try await kept.unanswered.confirmed() } throws: { error in
            let error = error as? MQTTError
            return error?.code == .disconnected && error?.message.contains("released") == true
        }
        #expect(!kept.unanswered.withdraw() && !kept.enqueued.withdraw())
        await broker.stop()
    }

    @Test func `a message whose time ends after the store was closed is not both given up and delivered`() async throws
    {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "sensor")
        configuration.cleanStart = false
        configuration.sessionStore = MemorySessionStore()
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        let given = Task { [events = client.events] in
            var count = 0
            for await event in events { if case .undelivered = event { count += 1 } }
            return count
        }
        try await client.connect()
        await client.suspend()
        var message = MQTTOutgoingMessage("x", to: "a", qos: .atLeastOnce)
        message.timeToLive = .seconds(30)
        try await client.enqueue(message)
        await client.disconnect()
        await clock.advance(by: .seconds(31))
        let arrivals = broker.arrivals()
        try await client.connect()
        try await client.publish("last", to: "a", qos: .atLeastOnce)
        var delivered = 0
        for await arrival in arrivals where arrival.packet == .mqtt(.publish) {
            if arrival.text == "last" { break }
            delivered += 1
        }
        await client.disconnect()
        given.cancel()
        #expect(await given.value + delivered == 1)
        await broker.stop()
    }

    @Test(arguments: [false, true])
    func `a message that has not been sent is withdrawn, from the store too`(hasStore: Bool) async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        func client() -> MQTTClient {
            bench.client("sensor") {
                $0.cleanStart = false
                if hasStore { $0.sessionStore = store }
            }
        }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "#")
        var first: MQTTClient? = client()
        try await first?.connect()
        await first?.suspend()
        let taken = try #require(
            try await first?.publishForConfirmation(MQTTOutgoingMessage("taken back", to: "a", qos: .exactlyOnce)))
        try await first?.enqueue(MQTTOutgoingMessage("kept", to: "a", qos: .exactlyOnce))
        let waiting = Task { await code { () throws(MQTTError) in try await taken.confirmed() } }
        #expect(taken.withdraw())
        #expect(await waiting.value == .cancelled)
        #expect(!taken.withdraw())
        #expect(first?.backlog.queuedMessages == 1)
        if hasStore {
            await first?.disconnect()
            first = client()
            try await first?.connect()
        } else {
            first?.resume()
        }
        #expect(try await messages.first(1).map(\.text) == ["kept"])
        try await first?.publish("last", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).map(\.text) == ["last"])
        await first?.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test(arguments: [false, true])
    func `an enqueued message that has not been sent is withdrawn, from the store too`(hasStore: Bool) async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        func client() -> MQTTClient {
            bench.client("sensor") {
                $0.cleanStart = false
                if hasStore { $0.sessionStore = store }
            }
        }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "#")
        let first = client()
        let kept = try await first.enqueue(MQTTOutgoingMessage("kept", to: "a"))
        let taken = try await first.enqueue(MQTTOutgoingMessage("taken back", to: "a"))
        let late = try await first.enqueue(MQTTOutgoingMessage("late", to: "a"))
        #expect(taken.withdraw())
        #expect(!taken.withdraw())
        #expect(first.backlog.queuedMessages == 2)
        await first.disconnect()
        // A store that is closed has the message still.
        #expect(late.withdraw() == !hasStore)
        let second = hasStore ? client() : first
        try await second.connect()
        #expect(try await messages.first(hasStore ? 2 : 1).map(\.text) == (hasStore ? ["kept", "late"] : ["kept"]))
        try await second.publish("last", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).map(\.text) == ["last"])
        #expect(!kept.withdraw(), "sent")
        await second.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `a message that was sent is not withdrawn, and one of QoS 0 never is`() async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        server.remark { _ in [] }
        let client = server.client { $0.acknowledgementTimeout = nil }
        try await client.connect()
        let sent = try await client.publishForConfirmation(MQTTOutgoingMessage("x", to: "a", qos: .atLeastOnce))
        #expect(await eventually { client.counters.messagesSent == 1 })
        #expect(!sent.withdraw())
        let unconfirmed = try await client.publishForConfirmation(MQTTOutgoingMessage("x", to: "a", qos: .atMostOnce))
        #expect(!unconfirmed.withdraw())
        await client.disconnect()
    }

    /// The second message is larger than what is left of the queue, of which more than half is free.
    @Test func `withdrawing what was sent does not keep a publisher waiting`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.maximumQueuedBytes = 300
            $0.queueOverflow = .wait
        }
        let sent = try await client.publishForConfirmation(MQTTOutgoingMessage("0", to: "a", qos: .atLeastOnce))
        _ = try await sent.confirmed()
        await client.suspend()
        let (small, large) = (String(repeating: "1", count: 100), String(repeating: "2", count: 250))
        let first = try await client.publishForConfirmation(MQTTOutgoingMessage(small, to: "a", qos: .atLeastOnce))
        let second = Task {
            await code { () throws(MQTTError) in try await client.publish(large, to: "a", qos: .atLeastOnce) }
        }
        #expect(await eventually { client.core.link.perform { $0.publishers.queueWaiters.count == 1 } })
        #expect(!sent.withdraw())
        #expect(first.withdraw())
        #expect(await eventually { client.backlog.queuedBytes > 250 })
        client.resume()
        #expect(await second.value == nil)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `withdrawing makes room for a publisher that waits`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .wait
        }
        await client.suspend()
        let first = try await client.publishForConfirmation(MQTTOutgoingMessage("1", to: "a", qos: .atLeastOnce))
        let second = Task {
            await code { () throws(MQTTError) in try await client.publish("2", to: "a", qos: .atLeastOnce) }
        }
        #expect(await eventually { client.core.link.perform { $0.engine.owesRoomNotice } })
        #expect(first.withdraw())
        #expect(await eventually { client.backlog.queuedMessages == 1 })
        client.resume()
        #expect(await second.value == nil)
        await client.disconnect()
        await bench.stop()
    }
}
