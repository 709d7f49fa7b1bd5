import STOMP
import STOMPCore
import TestSupport
import Testing
import Transport

/// Brokers that send no RECEIPT, as Spring's simple broker does.
@Suite(.turns) struct ReceiptlessBrokerTests {
    private func heartless(_ configuration: inout STOMPConfiguration) {
        (configuration.outgoingHeartBeat, configuration.incomingHeartBeat) = (.zero, .zero)
        configuration.requestTimeout = .seconds(30)
    }

    private func message(_ id: String, _ body: String) -> String {
        "MESSAGE\nsubscription:\(id)\nmessage-id:1\ndestination:/topic/t\n\n\(body)\0"
    }

    @Test func `the first message confirms a subscription, and its connection stays`() async throws {
        let clock = try ManualClock()
        let (client, connection) = try await FakeServer().connected(clock: clock, heartless)
        async let subscribing = client.subscribe(to: "/topic/t")
        let id = try await connection.expect("SUBSCRIBE", "id")
        connection.send(message(id, "hello"))
        await clock.waitUntilQuiet()
        // Fails the test, instead of letting it wait for ever.
        await clock.advance(by: .seconds(40))
        #expect(try await subscribing.texts(1) == ["hello"])
        #expect(client.state.isConnected && client.counters.connections == 1)
        connection.close()
        await client.disconnect()
    }

    @Test func `a declared subscription whose messages arrive does not end its connection`() async throws {
        let clock = try ManualClock()
        let server = FakeServer()
        let client = server.client(clock: clock, heartless)
        let messages = client.subscription(to: "/topic/t")
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        let id = try await connection.expect("SUBSCRIBE", "id")
        connection.send(message(id, "hello"))
        #expect(try await messages.texts(1) == ["hello"])
        await clock.advance(by: .seconds(100))
        #expect(client.state.isConnected && client.counters.connections == 1)
        connection.close()
        await client.disconnect()
    }

    @Test func `with a profile without receipts a subscription counts as made when SUBSCRIBE is written`() async throws
    {
        let clock = try ManualClock()
        let (client, connection) = try await FakeServer().connected(clock: clock) {
            heartless(&$0)
            $0.profile = .springSimple
        }
        let subscribing = Task {
            try await withTimeout(.patience, "the subscription") { try await client.subscribe(to: "/topic/t") }
        }
        let asked = try await connection.frame()
        #expect(asked.hasPrefix("SUBSCRIBE\n") && !asked.contains("receipt"))
        let messages = try await subscribing.value
        await clock.advance(by: .seconds(100))
        #expect(client.state.isConnected && client.counters.connections == 1)
        await expectError(.unsupportedByBroker, containing: "Spring") {
            try await client.sendAndConfirm("x", to: "/app/a")
        }
        try await client.send("x", to: "/app/a")
        try await connection.expect("SEND")
        let leaving = Task {
            try await withTimeout(.patience, "the end of the subscription") { try await messages.unsubscribe() }
        }
        #expect(try await !connection.frame().contains("receipt"))
        try await leaving.value
        connection.close()
        await client.disconnect()
    }

    @Test func `a receipt that is late names the profile, if the server has never sent one`() async throws {
        let clock = try ManualClock()
        let (client, connection) = try await FakeServer().connected(clock: clock) {
            heartless(&$0)
            $0.requestTimeout = .seconds(10)
        }
        func late() async throws -> STOMPError? {
            let sending = Task { try await client.sendAndConfirm("x", to: "/queue/a") }
            try await connection.expect("SEND")
            await clock.advance(by: .seconds(11))
            do { try await sending.value } catch { return error as? STOMPError }
            return nil
        }
        let first = try #require(try await late())
        #expect(first.code == .timedOut && first.message.contains(".springSimple"), "\(first)")
        async let confirmed: Void = client.sendAndConfirm("x", to: "/queue/a")
        try await connection.confirm("SEND")
        try await confirmed
        let second = try #require(try await late())
        #expect(second.code == .timedOut && !second.message.contains(".springSimple"), "\(second)")
        connection.close()
        await client.disconnect()
    }

    @Test func `connections that end for a missing receipt name the profile too`() async throws {
        let clock = try ManualClock()
        let server = FakeServer()
        let client = server.client(clock: clock) {
            heartless(&$0)
            $0.acknowledgementTimeout = nil
        }
        let messages = client.subscription(to: "/topic/t")
        let events = client.events
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        try await connection.expect("SUBSCRIBE")
        await clock.advance(by: .seconds(31))
        let lost = await events.first { if case .connectionLost = $0 { true } else { false } }
        guard case .connectionLost(let error)? = lost else { return }
        #expect(error.message.contains("/topic/t") && error.message.contains(".springSimple"), "\(error)")
        await clock.advance(by: .seconds(5))
        let next = try await server.accept(1)
        await clock.waitUntilQuiet()
        #expect(client.state.isConnected)
        next.close()
        await client.disconnect()
        for try await message in messages { Issue.record("\(message)") }
    }

    @Test func `after the acknowledgement timeout the profile is named`() async throws {
        let clock = try ManualClock()
        let (client, connection) = try await FakeServer().connected(clock: clock) {
            heartless(&$0)
            $0.requestTimeout = .seconds(100)
            $0.reconnect = .never
        }
        let events = client.events
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/a") }
        try await connection.expect("SEND")
        await clock.advance(by: .seconds(31))
        let lost = await events.first { if case .connectionLost = $0 { true } else { false } }
        guard case .connectionLost(let error)? = lost else { return }
        #expect(error.message.contains(".springSimple"), "\(error)")
        _ = await sending.result
        await client.disconnect()
    }

    /// RabbitMQ before 3.11.6 closes a WebSocket before its ERROR arrives.
    @Test func `the third connection in a row that ends before the same SUBSCRIBE is answered names it`() async throws {
        let clock = try ManualClock()
        let server = FakeServer()
        let client = server.client(clock: clock, heartless)
        let good = client.subscription(to: "/topic/good")
        let bad = client.subscription(to: "/exchange/missing")
        let events = client.events
        async let connecting: Void = client.connect()
        for number in 0..<4 {
            let connection = try await server.accept(number)
            if number == 0 { try await connecting }
            try await connection.confirm("SUBSCRIBE")
            try await connection.expect("SUBSCRIBE")
            await clock.waitUntilQuiet()
            connection.close()
            await clock.waitUntilQuiet()
            await clock.advance(by: .seconds(5))
        }
        var names: [Bool] = []
        for await event in events {
            guard case .connectionLost(let error) = event else { continue }
            names.append(error.message.contains("'/exchange/missing'"))
            #expect(!error.message.contains("/topic/good"))
            if names.count == 4 { break }
        }
        #expect(names == [false, false, true, true])
        let last = try await server.accept(4)
        for _ in 0..<2 { try await last.confirm("SUBSCRIBE") }
        await clock.waitUntilQuiet()
        #expect(client.state.isConnected)
        last.close()
        await client.disconnect()
        for try await message in good { Issue.record("\(message)") }
        for try await message in bad { Issue.record("\(message)") }
    }

    @Test func `a server that declines heart-beats is reported, if the client asked for them`() async throws {
        for (asked, answer, isReported) in [
            (Duration.seconds(10), "heart-beat:0,0\n", true), (.seconds(10), "", true),
            (.seconds(10), "heart-beat:0,5000\n", true), (.seconds(10), "heart-beat:5000,0\n", false),
            (.zero, "heart-beat:0,0\n", false),
        ] {
            let server = FakeServer()
            let client = server.client { $0.incomingHeartBeat = asked }
            let events = client.events
            async let connecting: Void = client.connect()
            let connection = try await server.accept(0, headers: answer)
            try await connecting
            connection.close()
            await client.disconnect()
            var reports: [String] = []
            for await event in events {
                if case .heartBeatsDeclined(let url) = event { reports.append(url.host) }
                if case .stateChanged(.disconnected) = event, !reports.isEmpty || !isReported { break }
                if case .stateChanged(.disconnected) = event, client.counters.connections == 1 { break }
            }
            #expect(reports == (isReported ? ["fake"] : []), "\(asked) \(answer)")
        }
    }
}
