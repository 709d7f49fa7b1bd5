import ClientTestSupport
import LoopbackBroker
import TestSupport
import Testing
import Transport

@testable import MQTT

/// A program that reads a subscription and awaits answers of the same client does not wait for itself in silence.
@Suite("Delivery: answers behind messages", .turns)
struct StandstillTests {
    /// A client with a time limit of ten seconds and a sender, on one clock, at a broker of their own.
    private struct Clients {
        let clock: ManualClock
        let broker: LoopbackBroker
        let client: MQTTClient
        let sender: MQTTClient
        let events: Updates<MQTTEvent>

        init(_ change: (inout MQTTConfiguration) -> Void = { _ in }) async throws {
            clock = try ManualClock()
            broker = try await LoopbackBroker.judged(clock: clock)
            var configuration = MQTTConfiguration(clientID: "reader")
            configuration.requestTimeout = .seconds(10)
            change(&configuration)
            let url = try #require(broker.urls.mqtt)
            client = MQTTClient(url, configuration: configuration, clock: clock)
            sender = MQTTClient(url, configuration: MQTTConfiguration(clientID: "sender"), clock: clock)
            events = client.events
            try await client.connect()
            try await sender.connect()
        }

        /// Publishes one message after another, so that each is a read of its own at the client.
        func send(_ count: Int, to topic: String = "a", qos: QoS, bytes: Int = 1) async throws {
            for _ in 0..<count {
                try await sender.publish(Array(repeating: 120, count: bytes), to: topic, qos: qos)
                await clock.waitUntilQuiet()
            }
        }

        /// Stops everything, and returns the subscriptions that ``MQTTEvent/readingPaused(for:)`` named.
        func stop() async -> [String] {
            await client.disconnect()
            var names: [String] = []
            for await event in events {
                if case .readingPaused(let name) = event { names.append(name) }
                if case .stateChanged(.disconnected) = event { break }
            }
            await sender.disconnect()
            await broker.stop()
            return names
        }
    }

    /// The client waits for acknowledgements that it does not read, in three ways; each call ends with the same error.
    private func expectTimeouts(_ clients: Clients, after time: Duration, naming name: String) async throws {
        let client = clients.client
        let later = try await client.publishForConfirmation(MQTTOutgoingMessage("1", to: "out", qos: .atLeastOnce))
        let confirming = Task { try await later.confirmed() }
        let publishing = Task { try await client.publish("2", to: "out", qos: .exactlyOnce) }
        let array = Task { await client.publish([MQTTOutgoingMessage("3", to: "out", qos: .atLeastOnce)]) }
        #expect(await eventually { client.backlog.messagesInFlight == 3 })
        await clients.clock.waitUntilQuiet()
        await clients.clock.advance(by: time)
        var errors: [MQTTError?] = []
        errors.append(await #expect(throws: MQTTError.self) { _ = try await confirming.value })
        errors.append(await #expect(throws: MQTTError.self) { _ = try await publishing.value })
        errors.append(await #expect(throws: MQTTError.self) { try await array.value.check() })
        for error in errors {
            #expect(error?.code == .timedOut, "\(error as Any)")
            #expect(error?.message.contains("the buffer of '\(name)'") == true, "\(error as Any)")
        }
        #expect(client.state.isConnected)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `a loop that publishes for each message gets all messages with a guarantee, whatever its buffer`(
        version: MQTTVersion, qos: QoS
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let sender = try await bench.connected()
        let count = 300
        let input = try await client.subscribe(
            to: "in", qos: qos, buffer: BufferPolicy(messages: 10, overflow: .pauseReading))
        try await sender.publish((0..<count).map { .init(Array("\($0)".utf8), to: "in", qos: qos) }).check()
        var texts: [String?] = []
        for try await message in input {
            try await client.publish(message.bytes, to: "out", qos: .atLeastOnce)
            texts.append(message.text)
            if texts.count == count { break }
        }
        #expect(texts == (0..<count).map { "\($0)" })
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test func `a loop that asks for each message gets its replies while its messages fill the receive window`()
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected {
            $0.version = .v5_0
            $0.receiveMaximum = 2
        }
        let service = try await bench.connected { $0.version = .v5_0 }
        let questions = try await service.subscribe(to: "questions", qos: .atLeastOnce)
        let answering = Task {
            for try await question in questions {
                let topic = try #require(question.properties.responseTopic)
                var properties = MQTTProperties()
                properties.correlationData = question.properties.correlationData
                try await service.publish("yes", to: topic, qos: .atLeastOnce, properties: properties)
            }
        }
        let input = try await client.subscribe(to: "in", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1))
        for number in 0..<20 { try await service.publish("\(number)", to: "in", qos: .atLeastOnce) }
        var count = 0
        for try await _ in input {
            #expect(try await client.request("?", to: "questions").text == "yes")
            count += 1
            if count == 20 { break }
        }
        await client.disconnect()
        await service.disconnect()
        try await answering.value
        await bench.stop()
    }

    @Test func `QoS 0 that may not be dropped stops reading, and calls that wait meanwhile learn why`() async throws {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        try await clients.send(1, qos: .atLeastOnce)
        try await clients.send(1, qos: .atMostOnce)
        let output = try await clients.sender.subscribe(to: "out", qos: .exactlyOnce)
        try await expectTimeouts(clients, after: .seconds(10), naming: "a")
        // They were not taken back.
        #expect(try await messages.first(2).count == 2)
        #expect(try await output.first(3).map(\.text) == ["1", "2", "3"])
        #expect(await eventually { clients.client.backlog.messagesInFlight == 0 })
        #expect(await clients.stop() == ["a", "a"])
    }

    @Test func `messages of QoS 1 fill a buffer without a pause, and that of QoS 0 stops reading`() async throws {
        let clients = try await Clients()
        // Reading begins again when the reader has one message left, beside which the last one has room, however slow the reader is.
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 3, overflow: .pauseReading))
        try await clients.send(5, qos: .atLeastOnce)
        #expect(clients.client.counters.messagesReceived == 5)
        try await clients.client.publish("1", to: "out", qos: .atLeastOnce)
        try await clients.send(2, qos: .atMostOnce)
        // The one that did not fit.
        #expect(clients.client.counters.messagesReceived == 6)
        #expect(try await messages.first(7).count == 7)
        let names = await clients.stop()
        #expect(names == ["a"], "\(names)")
    }

    @Test func `a message of QoS 0 that waits for room in the outbox learns why there is none`() async throws {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        try await clients.send(3, qos: .atMostOnce)
        let error = try await ClientChecks.fullOutbox(clients.broker, clients.clock, requestTimeout: .seconds(10)) {
            try await clients.client.publish($0, to: "out")
        }
        #expect((error as? MQTTError)?.code == .timedOut && "\(error as Any)".contains("the buffer of 'a'"))
        #expect(try await messages.first(3).count == 3)
        _ = await clients.stop()
    }

    @Test func `a reader has its whole time again when the system wakes`() async throws {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 2, overflow: .pauseReading))
        try await clients.send(3, qos: .atMostOnce)
        await clients.clock.letSystemSleep(for: .seconds(3_600))
        try await expectTimeouts(clients, after: .seconds(10), naming: "a")
        #expect(try await messages.first(1).count == 1)
        // The third message fills the buffer again.
        await clients.clock.waitUntilQuiet()
        #expect(try await messages.first(2).count == 2)
        let names = await clients.stop()
        #expect(names == ["a", "a", "a"], "\(names)")
    }

    @Test func `subscriptions that are full together stop reading, and the error names the one with the most`()
        async throws
    {
        let clients = try await Clients { $0.maximumUnreadBytes = 20_000 }
        let few = try await clients.client.subscribe(to: "few", qos: .atLeastOnce)
        let many = try await clients.client.subscribe(to: "many", qos: .atLeastOnce)
        try await clients.send(2, to: "many", qos: .atLeastOnce, bytes: 9_000)
        try await clients.send(1, to: "few", qos: .atLeastOnce, bytes: 4_000)
        try await expectTimeouts(clients, after: .seconds(10), naming: "many")
        #expect(try await many.first(2).count == 2)
        #expect(try await few.first(1).count == 1)
        #expect(await clients.stop() == ["many", "many"])
    }

    @Test func `a reader that takes one message in the time limit lets no call fail`() async throws {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 8, overflow: .pauseReading))
        try await clients.send(8, qos: .atMostOnce)
        let publishing = Task { try await clients.client.publish("1", to: "out", qos: .atLeastOnce) }
        #expect(await eventually { clients.client.backlog.messagesInFlight == 1 })
        for _ in 0..<3 {
            await clients.clock.advance(by: .seconds(9))
            #expect(try await messages.first(1).count == 1)
        }
        // Until half of the buffer is free.
        #expect(clients.client.backlog.messagesInFlight == 1)
        #expect(try await messages.first(1).count == 1)
        #expect(try await publishing.value == .success)
        #expect(await clients.stop() == ["a"])
    }

    @Test func `each full buffer has the whole time limit`() async throws {
        let clients = try await Clients()
        let slow = try await clients.client.subscribe(to: "slow", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1))
        let full = try await clients.client.subscribe(
            to: "full", qos: .atMostOnce, buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        try await clients.send(1, to: "slow", qos: .atLeastOnce)
        await clients.clock.advance(by: .seconds(9))
        try await clients.send(1, to: "full", qos: .atMostOnce)
        let publishing = Task { try await clients.client.publish("1", to: "out", qos: .atLeastOnce) }
        #expect(await eventually { clients.client.backlog.messagesInFlight == 1 })
        await clients.clock.advance(by: .seconds(9))
        #expect(try await full.first(1).count == 1)
        #expect(try await publishing.value == .success)
        withExtendedLifetime(slow) {}
        #expect(await clients.stop() == ["full"])
    }

    @Test func `callers that wait for room in the queue learn that nothing was published`() async throws {
        let clients = try await Clients {
            $0.maximumInFlight = 1
            $0.maximumQueuedMessages = 1
            $0.queueOverflow = .wait
        }
        let client = clients.client
        let messages = try await client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        try await clients.send(1, qos: .atMostOnce)
        let calls = (0..<3).map { number in
            Task { try await client.publish("\(number)", to: "out", qos: .atLeastOnce) }
        }
        #expect(
            await eventually {
                client.core.link.perform { $0.publishers.waiters.count + $0.publishers.queueWaiters.count } == 3
            })
        await clients.clock.advance(by: .seconds(10))
        var texts: [String] = []
        for call in calls {
            let error = await #expect(throws: MQTTError.self) { _ = try await call.value }
            #expect(error?.code == .timedOut)
            texts.append(error?.message ?? "")
        }
        #expect(texts.count { $0.contains("The message was not published.") } == 1, "\(texts)")
        #expect(try await messages.first(1).count == 1)
        #expect(await eventually { client.backlog.messagesInFlight + client.backlog.queuedMessages == 0 })
        _ = await clients.stop()
    }

    @Test func `a subscribe whose answer is behind what nobody reads fails`() async throws {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        try await clients.send(1, qos: .atMostOnce)
        let subscribing = Task { try await clients.client.subscribe(to: "b") }
        let unsubscribing = Task { try await clients.client.unsubscribe(from: "c") }
        await clients.clock.waitUntilQuiet()
        await clients.clock.advance(by: .seconds(10))
        for error in [
            await #expect(throws: MQTTError.self) { _ = try await subscribing.value },
            await #expect(throws: MQTTError.self) { _ = try await unsubscribing.value },
        ] {
            #expect(error?.code == .timedOut && error?.message.contains("the buffer of 'a'") == true, "\(error as Any)")
        }
        #expect(try await messages.first(1).count == 1)
        _ = await clients.stop()
    }

    @Test func `a reader that begins a read with many messages and takes each in time lets no call fail`() async throws
    {
        let clients = try await Clients()
        let messages = try await clients.client.subscribe(
            to: "a", qos: .atMostOnce, buffer: BufferPolicy(messages: 4, overflow: .pauseReading))
        // One read, of which the reader has begun all, and another one that fills the buffer again.
        try await clients.sender.publish(
            (0..<20).map { .init(Array("\($0)".utf8), to: "a", qos: .atMostOnce) }
        ).check()
        await clients.clock.waitUntilQuiet()
        var reader = messages.makeAsyncIterator()
        #expect(try await reader.next() != nil)
        await clients.clock.waitUntilQuiet()
        try await clients.send(4, qos: .atMostOnce)
        let publishing = Task { try await clients.client.publish("1", to: "out", qos: .atLeastOnce) }
        #expect(await eventually { clients.client.backlog.messagesInFlight == 1 })
        for _ in 0..<5 {
            await clients.clock.advance(by: .seconds(9))
            #expect(try await reader.next() != nil)
        }
        for _ in 0..<18 { #expect(try await reader.next() != nil) }
        #expect(try await publishing.value == .success)
        _ = await clients.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a reader whose messages keep others from coming is named after the time limit`(version: MQTTVersion)
        async throws
    {
        let clients = try await Clients {
            $0.version = version
            $0.receiveMaximum = 3
        }
        let messages = try await clients.client.subscribe(to: "a", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1))
        try await clients.send(2, qos: .atLeastOnce)
        // With 5.0 the server could send one more.
        await clients.clock.advance(by: .seconds(10))
        try await clients.send(2, qos: .atLeastOnce)
        await clients.clock.advance(by: .seconds(10))
        #expect(try await messages.first(3).count == 3)
        #expect(await clients.stop() == (version == .v5_0 ? ["a"] : ["a", "a"]))
    }

    @Test func `a reader whose messages keep acknowledgements of others back is named after the time limit`()
        async throws
    {
        let clients = try await Clients { $0.version = .v5_0 }
        let slow = try await clients.client.subscribe(to: "slow", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1))
        let fast = try await clients.client.subscribe(to: "fast", qos: .atLeastOnce)
        try await clients.send(2, to: "slow", qos: .atLeastOnce)
        try await clients.sender.publish("1", to: "fast", qos: .atLeastOnce)
        #expect(try await fast.first(1).count == 1)
        await clients.clock.advance(by: .seconds(10))
        #expect(try await slow.first(2).count == 2)
        #expect(await clients.stop() == ["slow"])
    }
}
