import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import TestSupport
import Testing
import Transport

/// A receiver that is slow never stops the connection's own traffic.
@Suite("Delivery: slow consumers", .turns)
struct SlowConsumerTests {
    @Test func `a receiver that has ended holds up no other one`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        var first: MQTTSubscription.Iterator? = messages.makeAsyncIterator()
        var other = messages.makeAsyncIterator()
        // When the server has answered this, the loop knows the receivers.
        _ = try await client.subscribe(to: "b")
        try await client.publish("both", to: "a")
        #expect(try await first?.next()?.text == "both")
        #expect(try await other.next()?.text == "both")
        first = nil
        for number in 0..<20 {
            try await client.publish("\(number)", to: "a")
            #expect(try await other.next()?.text == "\(number)")
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `what a receiver leaves that no other one gets comes to the oldest of them, before anything newer`(qos: QoS)
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: qos)
        var first: MQTTSubscription.Iterator? = messages.makeAsyncIterator()
        try await client.publish((0..<5).map { .init(Array("\($0)".utf8), to: "a", qos: qos) }).check()
        #expect(await eventually { client.counters.messagesReceived == 5 })
        #expect(try await first?.next()?.text == "0")
        var others = (0..<2).map { _ in messages.makeAsyncIterator() }
        // When the server has answered this, the loop knows the receivers.
        _ = try await client.subscribe(to: "b")
        for number in 5..<8 { try await client.publish("\(number)", to: "a", qos: qos) }
        #expect(await eventually { client.counters.messagesReceived == 8 })
        first = nil
        // And when it has answered this, that one of them is gone.
        _ = try await client.subscribe(to: "c")
        await client.disconnect()
        for (index, numbers) in [1..<8, 5..<8].enumerated() {
            var texts: [String?] = []
            while let message = try await others[index].next() { texts.append(message.text) }
            #expect(texts == numbers.map { "\($0)" })
        }
        #expect(messages.droppedCount == 0)
        await bench.stop()
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `a receiver that begins after the end of its subscription gets what another one leaves`(
        qos: QoS
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: qos)
        var first: MQTTSubscription.Iterator? = messages.makeAsyncIterator()
        try await client.publish((0..<3).map { .init(Array("\($0)".utf8), to: "a", qos: qos) }).check()
        #expect(await eventually { client.counters.messagesReceived == 3 })
        #expect(try await first?.next()?.text == "0")
        await client.disconnect()
        var other = messages.makeAsyncIterator()
        first = nil
        for text in ["1", "2", nil] { #expect(try await other.next()?.text == text) }
        await bench.stop()
    }

    @Test func `what a receiver leaves counts in the buffer of another one, where the oldest go`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 3))
        var first: MQTTSubscription.Iterator? = messages.makeAsyncIterator()
        server.send("1", "2", "3", to: "a")
        #expect(try await first?.next()?.text == "1")
        server.send("4", "5", "6", to: "a")
        #expect(await eventually { client.counters.messagesReceived == 6 })
        var other = messages.makeAsyncIterator()
        first = nil
        // When the server has answered this, the other one has what the first one has left.
        _ = try await client.subscribe(to: "b")
        #expect(messages.droppedCount == 2)
        server.send("7", to: "a")
        // And by now this one as well.
        _ = try await client.subscribe(to: "c")
        for (text, dropped) in [("5", 3), ("6", 0), ("7", 0)] {
            let message = try #require(try await other.next())
            #expect(message.text == text && message.droppedBefore == dropped)
        }
        #expect(messages.droppedCount == 3)
        await client.disconnect()
    }

    @Test func `a subscription that makes reading pause is named, once for each time`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let events = client.events
        let messages = try await client.subscribe(
            to: [
                MQTTSubscriptionRequest(filter: "a", qos: .atMostOnce),
                MQTTSubscriptionRequest(filter: "b/+", qos: .atMostOnce),
            ],
            buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        let sender = try await bench.connected("sender")
        for number in 0..<10 { try await sender.publish("\(number)", to: "a") }
        var name: String?
        for await event in events {
            guard case .readingPaused(let paused) = event else { continue }
            name = paused
            break
        }
        #expect(name == "a, b/+")
        #expect(try await messages.first(10).map(\.text) == (0..<10).map { "\($0)" })
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    /// A client on a clock of its own that has paused reading because its subscription to "a" is full.
    private struct PausedClient {
        let clock: ManualClock
        let broker: LoopbackBroker
        let client: MQTTClient
        let messages: MQTTSubscription

        /// Makes a request of the client, which begins with SUBSCRIBE, and lets time pass once that is written. Returns the
        /// error of the request.
        func failure(of request: @escaping @Sendable (MQTTClient) async throws -> Void) async -> MQTTError? {
            let writes = client.counters.writes
            let requesting = Task { [client] in try await request(client) }
            #expect(await eventually { client.counters.writes > writes })
            await clock.advance(by: .seconds(4))
            return await #expect(throws: MQTTError.self) {
                try await requesting.value(within: .patience, "a request whose answer the client does not read")
            }
        }

        func end() async throws {
            #expect(client.state.isConnected)
            #expect(try await messages.first(2).map(\.text) == ["0", "1"])
            await client.disconnect()
            await broker.stop()
        }
    }

    private func paused(_ change: (inout MQTTConfiguration) -> Void) async throws -> PausedClient {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "slow")
        change(&configuration)
        let client = MQTTClient(try #require(broker.urls.mqtt), configuration: configuration, clock: clock)
        try await client.connect()
        var events = client.events.makeAsyncIterator()
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        for number in 0..<2 { await broker.publish("\(number)", to: "a") }
        while let event = await events.next() { if case .readingPaused = event { break } }
        return PausedClient(clock: clock, broker: broker, client: client, messages: messages)
    }

    @Test func `a SUBACK that the client does not read is late by its own doing, which the error says`() async throws {
        let paused = try await paused { $0.requestTimeout = .seconds(3) }
        let error = await paused.failure { _ = try await $0.subscribe(to: "b") }
        #expect(error?.code == .timedOut && error?.message.contains("readingPaused") == true, "\(error as Any)")
        try await paused.end()
    }

    @Test(arguments: [false, true])
    func `a response that the client does not read is late by its own doing, which the error says`(
        byTopics: Bool
    ) async throws {
        let paused = try await paused { $0.version = .v5_0 }
        let error = await paused.failure { client in
            _ =
                byTopics
                ? try await client.request("?", to: "b", responseTopic: "c", timeout: .seconds(2))
                : try await client.request("?", to: "b", timeout: .seconds(2))
        }
        #expect(error?.code == .timedOut && error?.message.contains("readingPaused") == true, "\(error as Any)")
        try await paused.end()
    }

    @Test func `a re-authentication whose answer the client does not read ends, and says so`() async throws {
        let clock = try ManualClock()
        let renewed = PendingCall<Void>()
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: [.success], at: step.link.loop.now)
                    for _ in 0..<2 {
                        let packet = MQTTPacket.publish(MQTTPacket.Publish(topic: "a", payload: [1]))
                        try? packet.encode(into: &machine.engine.output, version: .v5_0)
                    }
                }
            case .authenticationReceived: renewed.end(())
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.connectTimeout = .seconds(10)
            $0.authentication = MQTTAuthentication(method: "M") {
                [1]
            } respond: { _ in
                nil
            }
        }
        try await client.connect()
        var events = client.events.makeAsyncIterator()
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        while let event = await events.next() { if case .readingPaused = event { break } }
        let renewing = Task {
            try await withTimeout(.patience, "the re-authentication") { try await client.reauthenticate() }
        }
        await renewed.answer()
        await clock.advance(by: .seconds(11))
        let error = await #expect(throws: MQTTError.self) { try await renewing.value }
        #expect(error?.code == .timedOut && error?.message.contains("readingPaused") == true, "\(error as Any)")
        #expect(client.state.isConnected)
        #expect(try await messages.first(2).count == 2)
        await client.disconnect()
    }

    @Test func `a bound of a buffer is at least one, however it is set`() {
        var policy = BufferPolicy(messages: 0, bytes: -1)
        #expect(policy.messages == 1 && policy.bytes == 1)
        policy.messages = -2
        policy.bytes = 0
        #expect(policy.messages == 1 && policy.bytes == 1)
    }

    @Test func `each of several receivers learns of the messages that were dropped from its own buffer`() async throws {
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived: step.accept()
            case .subscribeReceived(let subscribe):
                step.perform { machine in
                    try? machine.engine.acknowledgeSubscribe(
                        subscribe.packetID, codes: [.success], at: MonotonicClock.now)
                }
            default: break
            }
        }
        let client = server.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 2))
        let receivers = (0..<3).map { _ in messages.makeAsyncIterator() }
        // When the server has answered this, the loop knows the receivers.
        _ = try await client.subscribe(to: "b")
        // In one read.
        server.link?.perform { machine in
            for number in UInt8(0)..<5 {
                let packet = MQTTPacket.publish(MQTTPacket.Publish(topic: "a", payload: [number]))
                try? packet.encode(into: &machine.engine.output, version: .v3_1_1)
            }
        }
        #expect(await eventually { client.counters.messagesReceived == 5 })
        // And by now they are in the buffers of all of them.
        _ = try await client.subscribe(to: "c")
        for var receiver in receivers {
            let first = try #require(await receiver.next())
            #expect(first.droppedBefore == 3 && first.bytes == [3])
            #expect(try await receiver.next()?.bytes == [4])
        }
        // Three for each of them.
        #expect(messages.droppedCount == 9)
        await client.disconnect()
    }

    @Test func `what any receiver has lost is counted, also after it has gone`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 10))
        let batches = messages.batches.makeAsyncIterator()
        var other: MQTTSubscription.Iterator? = messages.makeAsyncIterator()
        // The second one is registered on the loop's thread, as this subscription is.
        _ = try await client.subscribe(to: "b")
        for number in 0..<100 { try await client.publish("\(number)", to: "a") }
        #expect(await eventually { messages.droppedCount == 180 })
        #expect(try await other?.next()?.text == "90")
        other = nil
        #expect(messages.droppedCount == 180)
        withExtendedLifetime(batches) {}
        await client.disconnect()
        await bench.stop()
    }

    @Test func `QoS 0 with pauseReading: nothing is lost, and everybody waits`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let sender = try await bench.connected()
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 10, overflow: .pauseReading))
        for number in 0..<500 {
            try await sender.publish("\(number)", to: "a")
            if number % 20 == 0 { try await Task.sleep(for: .milliseconds(1)) }
        }
        let received = try await messages.first(500)
        #expect(received.map(\.text) == (0..<500).map { "\($0)" })
        #expect(messages.droppedCount == 0)
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test func `the bound of a buffer counts the memory of small messages, which is more than their bytes`()
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected()
        let sender = try await bench.connected()
        let bound = 64 << 10
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 100_000, bytes: bound))
        // One read each: the most memory for a message.
        for number in 1...600 {
            try await sender.publish("24 bytes, or nearly that", to: "a")
            #expect(await eventually(every: .zero) { client.counters.messagesReceived == number })
        }
        // The object of a batch, its two arrays and a place in a queue take more than 200 bytes.
        #expect(600 - messages.droppedCount <= bound / 256, "\(600 - messages.droppedCount) wait")
        #expect(600 - messages.droppedCount > bound / 1024)
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test func `reading pauses when all subscriptions together have too much unread, and nothing is lost`() async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected { $0.maximumUnreadBytes = 10_000 }
        let sender = try await bench.connected()
        let one = try await client.subscribe(to: "one", qos: .atLeastOnce)
        let two = try await client.subscribe(to: "two", qos: .atLeastOnce)
        let body = String(repeating: "x", count: 2_000)
        try await sender.publish(
            (0..<1_000).map { number in
                MQTTOutgoingMessage(Array(body.utf8), to: number % 2 == 0 ? "one" : "two", qos: .atLeastOnce)
            }
        ).check()
        // What one read may bring beside the bound.
        let bound = 10_000 + (128 << 10)
        var last = -1
        while last != client.counters.messagesReceived {
            last = client.counters.messagesReceived
            try await Task.sleep(for: .milliseconds(30))
        }
        #expect(last * body.utf8.count < bound)
        async let others = two.first(500).count
        #expect(try await one.first(500).count == 500)
        #expect(try await others == 500)
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test func `a subscription that ends while reading waits for it lets reading go on`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let sender = try await bench.connected()
        let other = try await client.subscribe(to: "b", qos: .atLeastOnce)
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 10, overflow: .pauseReading))
        for number in 0..<100 { try await sender.publish("\(number)", to: "a") }
        #expect(await eventually { client.counters.messagesReceived >= 10 })
        let unsubscribing = Task { try await messages.unsubscribe() }
        try await sender.publish("x", to: "b", qos: .atLeastOnce)
        #expect(try await other.first(1).first?.text == "x")
        try await unsubscribing.value
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `acknowledgements are withheld, so that the server stops sending, and nothing is lost`(qos: QoS) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let url = try #require(broker.urls.mqtt)
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        configuration.receiveMaximum = 20
        let client = MQTTClient(url, configuration: configuration, clock: clock)
        let sender = MQTTClient(url, clock: clock)
        for client in [client, sender] { try await client.connect() }
        let messages = try await client.subscribe(to: "a", qos: qos, buffer: BufferPolicy(messages: 10))
        for number in 0..<300 { try await sender.publish("\(number)", to: "a", qos: qos) }
        var pings = client.events.makeAsyncIterator()
        // The broker ends a connection after one and a half times the keep alive without a packet.
        await clock.advance(by: configuration.keepAlive * 2)
        // What is in the buffer, and what the server may send without an acknowledgement.
        #expect(client.counters.messagesReceived <= 50)
        // Pings flow all the while.
        while let event = await pings.next() {
            if case .pingAnswered = event { break }
        }
        #expect(client.state.isConnected)
        let received = try await messages.first(300)
        #expect(received.map(\.text) == (0..<300).map { "\($0)" })
        #expect(received.allSatisfy { $0.droppedBefore == 0 })
        await client.disconnect()
        await sender.disconnect()
        await broker.stop()
    }

    @Test func `manual acknowledgements bound what is outstanding, and leave in order`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.receiveMaximum = 5
        }
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce, acknowledgement: .manual)
        let publishing = Task {
            for number in 0..<20 { try await client.publish("\(number)", to: "a", qos: .atLeastOnce) }
        }
        let five = try await messages.first(5)
        try await publishing.value
        try await Task.sleep(for: .milliseconds(50))
        #expect(client.counters.messagesReceived == 5)
        // Given backwards: nothing leaves before the first is acknowledged.
        for message in five.dropFirst().reversed() { message.acknowledge() }
        try await Task.sleep(for: .milliseconds(50))
        #expect(client.counters.messagesReceived == 5)
        five[0].acknowledge()
        let more = try await messages.first(5)
        #expect(more.map(\.text) == (5..<10).map { "\($0)" })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `leaving a loop for good does not hold the others up once the subscription is released`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.receiveMaximum = 5
        }
        let other = try await client.subscribe(to: "a", qos: .atLeastOnce)
        do {
            let messages = try await client.subscribe(to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1))
            try await client.publish("0", to: "a", qos: .atLeastOnce)
            _ = try await messages.first(1)
        }
        for number in 1..<100 { try await client.publish("\(number)", to: "a", qos: .atLeastOnce) }
        #expect(try await other.first(100).count == 100)
        await client.disconnect()
        await bench.stop()
    }
}
