import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

@Suite(.turns) struct ResubscribeTests {
    private func heartless(_ configuration: inout STOMPConfiguration) {
        (configuration.outgoingHeartBeat, configuration.incomingHeartBeat) = (.zero, .zero)
        configuration.requestTimeout = .seconds(30)
    }

    /// A client whose second connection has got SUBSCRIBE again, and has not answered it.
    private func resubscribing(
        _ server: FakeServer, _ clock: ManualClock
    ) async throws -> (client: STOMPClient, messages: STOMPSubscription, second: FakeConnection, id: String) {
        let (client, first) = try await server.connected(clock: clock, heartless)
        async let subscribing = client.subscribe(to: "/queue/q")
        try await first.confirm("SUBSCRIBE")
        let messages = try await subscribing
        first.close()
        await clock.advance(by: .seconds(5))
        let second = try await server.accept(1)
        return (client, messages, second, try await second.expect("SUBSCRIBE", "id"))
    }

    @Test func `a resubscription without an answer moves to the next connection, and its loop continues`() async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        // Answers CONNECT, and nothing after it.
        let (client, messages, wedged, id) = try await resubscribing(server, clock)
        let reading = Task { try await messages.texts(1) }
        var events = client.events.makeAsyncIterator()
        await clock.advance(by: .seconds(31))
        var lost: STOMPError?
        while lost == nil, let event = await events.next() {
            if case .subscriptionLost(_, let error) = event {
                Issue.record("the subscription ended: \(error)")
                return await client.disconnect()
            }
            if case .connectionLost(let error) = event { lost = error }
        }
        #expect(lost?.message.contains("/queue/q") == true, "the event names what had no answer: \(lost as Any)")
        await clock.advance(by: .seconds(5))
        let healthy = try await server.accept(2)
        #expect(await eventually { wedged.isEnded() })
        try await healthy.confirm("SUBSCRIBE")
        healthy.send("MESSAGE\nsubscription:\(id)\nmessage-id:1\ndestination:/queue/q\n\nhello\0")
        #expect(try await reading.value == ["hello"])
        healthy.close()
        await client.disconnect()
    }

    /// Longer than the connection needs to be stable. With the longer time the receipt is missed by `acknowledgementTimeout` too.
    @Test(arguments: [Duration.seconds(15), .seconds(30)])
    func `a server that does not confirm a resubscription is left for another`(requestTimeout: Duration) async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let client = server.client(urls: ["stomp://one", "stomp://two"], clock: clock) {
            heartless(&$0)
            $0.requestTimeout = requestTimeout
            $0.reconnect.stableAfter = .seconds(1)
        }
        let connecting = Task { try await client.connect() }
        let first = try await server.accept(0)
        try await connecting.value
        async let subscribing = client.subscribe(to: "/queue/q")
        try await first.confirm("SUBSCRIBE")
        let messages = try await subscribing
        await clock.advance(by: .seconds(5))
        first.close()
        // A server that does not answer CONNECT within five seconds is left, too.
        await clock.advance(by: .seconds(1))
        // It answers CONNECT, and nothing after it.
        let wedged = try await server.accept(1)
        try await wedged.expect("SUBSCRIBE")
        #expect(client.server?.host == "one")
        await clock.advance(by: requestTimeout)
        #expect(await eventually { wedged.isEnded() })
        await clock.advance(by: .seconds(1))
        let healthy = try await server.accept(2)
        try await healthy.confirm("SUBSCRIBE")
        #expect(client.server?.host == "two")
        _ = messages
        healthy.close()
        await client.disconnect()
    }

    /// The time for the receipt of SUBSCRIBE is over between DISCONNECT and its receipt.
    @Test func `messages leave before the end also where a resubscription has no answer`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, messages, second, _) = try await resubscribing(server, clock)
        await clock.advance(by: .seconds(29))
        second.client.changeFaults { $0.capacity = 10 }
        for number in 0..<10 { try await client.send("\(number)", to: "/queue/a") }
        let leaving = Task { await client.disconnect() }
        #expect(await eventually { !client.state.isConnected })
        await clock.advance(by: .milliseconds(1_500))
        second.client.changeFaults { $0.capacity = .max }
        for _ in 0..<10 { try await second.expect("SEND") }
        try await second.confirm("DISCONNECT")
        await leaving.value
        second.close()
        withExtendedLifetime(messages) {}
    }

    @Test func `a connection that is left before SUBSCRIBE is answered does not count when later ones end`()
        async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, messages, second, _) = try await resubscribing(server, clock)
        await clock.advance(by: .seconds(10))
        let later = client.subscription(to: "/queue/later")
        try await second.expect("SUBSCRIBE")
        var events = client.events.makeAsyncIterator()
        // It is left because of the other subscription.
        await clock.advance(by: .seconds(21))
        #expect(await eventually { second.isEnded() })
        for number in 2...4 {
            await clock.advance(by: .seconds(5))
            let next = try await server.accept(number)
            try await next.confirm("SUBSCRIBE")
            if number == 2 { try await next.confirm("SUBSCRIBE") } else { try await next.expect("SUBSCRIBE") }
            next.close()
        }
        var losses = 0
        while losses < 4, let event = await events.next() {
            guard case .connectionLost(let error) = event else { continue }
            losses += 1
            #expect(!error.message.contains("/queue/later"), "only the last two ended before it was answered")
        }
        await client.disconnect()
        withExtendedLifetime((messages, later)) {}
    }

    private func subscribeAndRelease(_ client: STOMPClient, _ connection: FakeConnection) async throws {
        async let subscribing = client.subscribe(to: "/queue/a")
        try await connection.confirm("SUBSCRIBE")
        _ = try await subscribing
    }

    /// A message that RabbitMQ delivers while it handles UNSUBSCRIBE makes it end the connection.
    @Test func `an error about a subscription that was released does not fail the next one`() async throws {
        let server = FakeServer()
        let (client, first) = try await server.connected(server: "RabbitMQ/3.10.8")
        try await subscribeAndRelease(client, first)
        let id = try await first.expect("UNSUBSCRIBE", "id")
        let next = Task { try await client.subscribe(to: "/queue/b") }
        try await first.expect("SUBSCRIBE")
        first.send(
            "ERROR\nmessage:Subscription not found\n\nThere is no current subscription with tag 'T_\(id)'.\0")
        let second = try await server.accept(1, server: "RabbitMQ/3.10.8")
        #expect(try await second.expect("SUBSCRIBE", "destination") == "/queue/b")
        second.close()
        let third = try await server.accept(2, server: "RabbitMQ/3.10.8")
        try await third.confirm("SUBSCRIBE")
        #expect(try await next.value.destination == "/queue/b")
        third.close()
        await client.disconnect()
    }

    @Test func `a new subscription fails when connections end before its answer, for longer than requestTimeout`()
        async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, first) = try await server.connected(clock: clock) {
            heartless(&$0)
            $0.requestTimeout = .seconds(10)
        }
        let subscribing = Task {
            try await withTimeout(.patience, "the subscription") { try await client.subscribe(to: "/queue/q") }
        }
        try await first.expect("SUBSCRIBE")
        first.close()
        for number in 1...3 {
            await clock.advance(by: .seconds(5))
            let next = try await server.accept(number)
            if number < 3 { try await next.expect("SUBSCRIBE") }
            next.close()
        }
        await expectError(.timedOut, containing: "/queue/q") { _ = try await subscribing.value }
        await client.disconnect()
    }

    @Test func `a new subscription without an answer fails, is unsubscribed, and the connection stays`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, connection) = try await server.connected(clock: clock) {
            heartless(&$0)
            // Shorter than `acknowledgementTimeout`, which ends the connection.
            $0.requestTimeout = .seconds(10)
        }
        let subscribing = Task { try await client.subscribe(to: "/queue/q") }
        let id = try await connection.expect("SUBSCRIBE", "id")
        await clock.advance(by: .seconds(11))
        await expectError(.timedOut) { _ = try await subscribing.value }
        #expect(try await connection.expect("UNSUBSCRIBE", "id") == id)
        #expect(client.state.isConnected)
        connection.close()
        await client.disconnect()
    }
}
