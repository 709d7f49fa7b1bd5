import STOMP
import TestSupport
import Testing
import Transport

/// Answers wait behind the messages that are not read.
@Suite(.turns) struct PausedReadingTests {
    private func heartless(_ configuration: inout STOMPConfiguration) {
        (configuration.outgoingHeartBeat, configuration.incomingHeartBeat) = (.zero, .zero)
        configuration.requestTimeout = .seconds(10)
    }

    private func message(_ id: some StringProtocol, _ number: Int) -> String {
        "MESSAGE\nsubscription:\(id)\nmessage-id:\(number)\ndestination:/queue/full\n\n\(number)\0"
    }

    /// Reads SUBSCRIBE, and makes its receipt.
    private func subscribe(_ connection: FakeConnection) async throws -> (id: String, receipt: String) {
        let lines = try await connection.frame().split(separator: "\n")
        let id = try #require(lines.first { $0.hasPrefix("id:") }).dropFirst(3)
        let receipt = try #require(lines.first { $0.hasPrefix("receipt:") }).dropFirst(8)
        return (String(id), "RECEIPT\nreceipt-id:\(receipt)\n\n\0")
    }

    /// Returns the name of the next subscription that makes reading pause.
    private func pause(_ events: inout Updates<STOMPEvent>.AsyncIterator) async -> String? {
        while let event = await events.next() {
            if case .readingPaused(let name) = event { return name }
        }
        return nil
    }

    /// A client that has paused reading because its subscription to "/queue/full" is full.
    private func paused(
        _ server: FakeServer, _ clock: ManualClock, broker: String
    ) async throws -> (STOMPClient, FakeConnection, STOMPSubscription) {
        let (client, connection) = try await server.connected(clock: clock, server: broker, heartless)
        var events = client.events.makeAsyncIterator()
        async let subscribing = client.subscribe(
            to: "/queue/full", buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        let (id, receipt) = try await subscribe(connection)
        connection.send(receipt)
        let messages = try await subscribing
        connection.send(message(id, 0) + message(id, 1))
        #expect(await pause(&events) == "/queue/full")
        return (client, connection, messages)
    }

    @Test func `a receipt that the client does not read is late by its own doing, which the error says`() async throws {
        let clock = try ManualClock()
        let (client, connection, messages) = try await paused(FakeServer(), clock, broker: "fake/1")
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/other") }
        try await connection.confirm("SEND")
        await clock.advance(by: .seconds(11))
        let error = await #expect(throws: STOMPError.self) { try await sending.value }
        #expect(error?.code == .timedOut, "\(error as Any)")
        #expect(error?.message.contains("the buffer of '/queue/full'") == true, "\(error as Any)")
        #expect(client.state.isConnected)
        #expect(try await messages.texts(2) == ["0", "1"])
        connection.close()
        await client.disconnect()
    }

    @Test func `a reply that the client does not read is late by its own doing, which the error says`() async throws {
        let clock = try ManualClock()
        // Its temporary queues need no SUBSCRIBE.
        let (client, connection, messages) = try await paused(FakeServer(), clock, broker: "RabbitMQ/3.10.8")
        let asking = Task { try await client.request("x", to: "/queue/other", timeout: .seconds(5)) }
        try await connection.expect("SEND")
        await clock.advance(by: .seconds(6))
        let error = await #expect(throws: STOMPError.self) { _ = try await asking.value }
        #expect(error?.code == .timedOut, "\(error as Any)")
        #expect(error?.message.contains("the buffer of '/queue/full'") == true, "\(error as Any)")
        #expect(try await messages.texts(2) == ["0", "1"])
        connection.close()
        await client.disconnect()
    }

    @Test func `requests are sent after a pause in which the receipt of their subscription was not read`() async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        let broker = "ActiveMQ/5.17.2"
        let (client, first) = try await server.connected(clock: clock, server: broker, heartless)
        /// Answers the next request, which comes from the subscription `id`.
        func answer(_ connection: FakeConnection, _ id: String) async throws {
            let correlation = try await connection.expect("SEND", "correlation-id")
            connection.send(
                "MESSAGE\nsubscription:\(id)\nmessage-id:9\ndestination:/q\ncorrelation-id:\(correlation)\n\nyes\0")
        }
        async let asking = client.request("1", to: "/queue/questions")
        let (replies, receipt) = try await subscribe(first)
        first.send(receipt)
        try await answer(first, replies)
        #expect(try await asking.text == "yes")
        let messages = try await subscribeToFull(client, first)
        var events = client.events.makeAsyncIterator()
        first.close()
        await clock.advance(by: .seconds(5))
        let second = try await server.accept(1, server: broker)
        let (sameReplies, receiptOfReplies) = try await subscribe(second)
        #expect(sameReplies == replies)
        let (full, _) = try await subscribe(second)
        second.send(message(full, 0) + message(full, 1) + receiptOfReplies)
        #expect(await pause(&events) == "/queue/full")
        await clock.advance(by: .seconds(11))
        #expect(try await messages.texts(2) == ["0", "1"])
        let again = Task { try await client.request("2", to: "/queue/questions") }
        try await answer(second, replies)
        #expect(try await again.value.text == "yes")
        second.close()
        await client.disconnect()
    }

    /// A subscription that pauses reading as soon as it has one message.
    private func subscribeToFull(
        _ client: STOMPClient, _ connection: FakeConnection
    ) async throws -> STOMPSubscription {
        async let subscribing = client.subscribe(
            to: "/queue/full", buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        try await connection.confirm("SUBSCRIBE")
        return try await subscribing
    }

    @Test func `a subscription whose receipt the client does not read keeps the next connection`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, first) = try await server.connected(clock: clock, heartless)
        let messages = try await subscribeToFull(client, first)
        var events = client.events.makeAsyncIterator()
        first.close()
        await clock.advance(by: .seconds(5))
        let second = try await server.accept(1)
        let id = try await second.expect("SUBSCRIBE", "id")
        second.send(message(id, 0) + message(id, 1))
        #expect(await pause(&events) == "/queue/full")
        await clock.advance(by: .seconds(11))
        #expect(client.state.isConnected && !second.isEnded())
        let reading = Task { try await messages.texts(3) }
        second.send(message(id, 2))
        #expect(try await reading.value == ["0", "1", "2"])
        second.close()
        await client.disconnect()
    }

    /// A client whose second connection has paused reading since it asked for three subscriptions.
    private struct PausedAgain {
        var client: STOMPClient
        var second: FakeConnection
        /// Which fills its buffer.
        var messages: STOMPSubscription
        var others: [STOMPSubscription]
        /// Those of `others`.
        var receipts: [String]
    }

    private func pausedAgain(_ server: FakeServer, _ clock: ManualClock) async throws -> PausedAgain {
        let (client, first) = try await server.connected(clock: clock, heartless)
        let messages = try await subscribeToFull(client, first)
        async let subscribingOther = client.subscribe(to: "/queue/other")
        try await first.confirm("SUBSCRIBE")
        let other = try await subscribingOther
        let declared = client.subscription(to: "/queue/declared")
        try await first.expect("SUBSCRIBE")
        var events = client.events.makeAsyncIterator()
        first.close()
        await clock.advance(by: .seconds(5))
        let second = try await server.accept(1)
        let id = try await second.expect("SUBSCRIBE", "id")
        let receipts = [try await second.expect("SUBSCRIBE"), try await second.expect("SUBSCRIBE")]
        second.send(message(id, 0) + message(id, 1))
        #expect(await pause(&events) == "/queue/full")
        return PausedAgain(
            client: client, second: second, messages: messages, others: [other, declared], receipts: receipts)
    }

    /// The receipt waits in the second connection, behind the messages that are not read.
    @Test(arguments: [false, true])
    func `a subscription whose receipt is read after a pause is reported as subscribed`(resumesSoon: Bool) async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        let paused = try await pausedAgain(server, clock)
        let (client, second) = (paused.client, paused.second)
        var events = client.events.makeAsyncIterator()
        // The time for receipts is over while the client does not read, or shortly after that.
        await clock.advance(by: .seconds(resumesSoon ? 9 : 11))
        #expect(try await paused.messages.texts(2) == ["0", "1"])
        await clock.advance(by: .seconds(2))
        #expect(client.state.isConnected && !second.isEnded())
        for receipt in paused.receipts { second.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0") }
        var reports: [String] = []
        while reports.count < 2, let event = await events.next() {
            switch event {
            // Its first message has confirmed it before.
            case .resubscribed(destination: "/queue/full"): break
            case .subscribed, .resubscribed: reports.append("\(event)")
            case .connectionLost(let error): Issue.record(error)
            default: break
            }
        }
        #expect(reports == ["resubscribed(destination: /queue/other)", "subscribed(destination: /queue/declared)"])
        second.close()
        await client.disconnect()
        withExtendedLifetime(paused) {}
    }

    /// Its receipt does not come, neither during the pause nor in the time for receipts after it.
    @Test(arguments: [false, true])
    func `a subscription that is not confirmed after a pause either moves to the next connection`(
        resumesSoon: Bool
    ) async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let paused = try await pausedAgain(server, clock)
        let (client, second) = (paused.client, paused.second)
        var events = client.events.makeAsyncIterator()
        await clock.advance(by: .seconds(resumesSoon ? 9 : 11))
        #expect(try await paused.messages.texts(2) == ["0", "1"])
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/other") }
        try await second.confirm("SEND")
        try await sending.value
        await clock.advance(by: .seconds(8))
        #expect(client.state.isConnected && !second.isEnded())
        await clock.advance(by: .seconds(3))
        try #require(await eventually { second.isEnded() })
        var lost: STOMPError?
        while lost == nil, let event = await events.next() {
            if case .connectionLost(let error) = event { lost = error }
        }
        #expect(lost?.message.contains("/queue/other") == true, "\(lost as Any)")
        await clock.advance(by: .seconds(5))
        let third = try await server.accept(2)
        for _ in 0..<3 { try await third.confirm("SUBSCRIBE") }
        third.close()
        await client.disconnect()
        withExtendedLifetime(paused) {}
    }
}
