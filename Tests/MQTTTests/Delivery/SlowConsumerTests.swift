import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// A receiver that is slow never stops the connection's own traffic.
@Suite("Delivery: slow consumers", .turns)
struct SlowConsumerTests {
    @Test(arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `what a reader leaves comes to the next one before anything newer, and the first one learns why`(qos: QoS)
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: qos)
        var first = messages.makeAsyncIterator()
        try await client.publish((0..<5).map { .init(Array("\($0)".utf8), to: "a", qos: qos) }).check()
        #expect(await eventually { client.counters.messagesReceived == 5 })
        #expect(try await first.next()?.text == "0")
        for number in 5..<8 { try await client.publish("\(number)", to: "a", qos: qos) }
        #expect(await eventually { client.counters.messagesReceived == 8 })
        var other = messages.makeAsyncIterator()
        #expect(try await other.next()?.text == "1")
        let error = await #expect(throws: MQTTError.self) { _ = try await first.next() }
        #expect(
            error?.code == .cancelled && error?.message.contains("subscribe once for each") == true, "\(error as Any)")
        await client.disconnect()
        var texts: [String?] = []
        while let message = try await other.next() { texts.append(message.text) }
        #expect(texts == (2..<8).map { "\($0)" })
        #expect(messages.droppedCount == 0)
        await bench.stop()
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `a reader that begins after the end of its subscription gets what another one has not read`(
        qos: QoS
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: qos)
        var first = messages.makeAsyncIterator()
        try await client.publish((0..<3).map { .init(Array("\($0)".utf8), to: "a", qos: qos) }).check()
        #expect(await eventually { client.counters.messagesReceived == 3 })
        #expect(try await first.next()?.text == "0")
        await client.disconnect()
        var other = messages.makeAsyncIterator()
        for text in ["1", "2", nil] { #expect(try await other.next()?.text == text) }
        await bench.stop()
    }

    @Test func `what a reader has begun is not dropped, and does not count in the buffer, where the oldest go`()
        async throws
    {
        let server = SubscribingServer()
        let client = server.scriptedServer.client()
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 3))
        server.send("1", "2", "3", to: "a")
        #expect(await eventually { client.counters.messagesReceived == 3 })
        #expect(try await messages.first(1).first?.text == "1")
        server.send("4", "5", "6", "7", to: "a")
        #expect(await eventually { client.counters.messagesReceived == 7 })
        var other = messages.makeAsyncIterator()
        for (text, dropped) in [("2", 0), ("3", 0), ("5", 1), ("6", 0), ("7", 0)] {
            let message = try #require(try await other.next())
            #expect(message.text == text && message.droppedBefore == dropped)
        }
        #expect(messages.droppedCount == 1)
        await client.disconnect()
    }

    /// A reader that waits passes no bound: three reads with 3,000 messages each, for a buffer of 100.
    @Test(arguments: [BufferPolicy.Overflow.dropOldest, .pauseReading])
    func `what one read brings to a reader that waits keeps the bounds of its buffer`(
        overflow: BufferPolicy.Overflow
    ) async throws {
        let clock = try ManualClock()
        let server = SubscribingServer(clock: clock)
        let client = server.scriptedServer.client()
        try await client.connect()
        var events = client.events.makeAsyncIterator()
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 100, overflow: overflow))
        let received = Mutex<[(text: String?, dropped: Int)]>([])
        let reading = Task(executorPreference: clock.loop) {
            for try await message in messages { received.withLock { $0.append((message.text, message.droppedBefore)) } }
        }
        let (bursts, size) = (3, 3_000)
        for burst in 0..<bursts {
            await clock.waitUntilQuiet()
            server.send((0..<size).map { "\(burst * size + $0)" }, to: "a")
            await clock.waitUntilQuiet()
        }
        await client.disconnect()
        try await reading.value
        var pauses = 0
        while let event = await events.next() {
            if case .readingPaused = event { pauses += 1 }
            if case .stateChanged(.disconnected) = event { break }
        }
        let all = received.withLock { $0 }
        let kept = overflow == .pauseReading ? size : 100
        var expected: [String] = []
        for end in stride(from: size, through: bursts * size, by: size) {
            expected += (end - kept..<end).map { "\($0)" }
        }
        #expect(all.map(\.text) == expected)
        #expect(all.reduce(0) { $0 + $1.dropped } == messages.droppedCount)
        #expect(messages.droppedCount == bursts * (size - kept))
        #expect(pauses == (overflow == .pauseReading ? bursts : 0))
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
        #expect(error?.code == .timedOut && error?.message.contains("'a' is full") == true, "\(error as Any)")
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
        #expect(error?.code == .timedOut && error?.message.contains("'a' is full") == true, "\(error as Any)")
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
        #expect(error?.code == .timedOut && error?.message.contains("'a' is full") == true, "\(error as Any)")
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
