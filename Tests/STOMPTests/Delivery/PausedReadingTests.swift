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

    /// Returns the name of the next subscription that makes reading pause.
    private func pause(_ events: inout Updates<STOMPEvent>.AsyncIterator) async -> String? {
        while let event = await events.next() {
            if case .readingPaused(let name) = event { return name }
        }
        return nil
    }

    @Test func `a receipt that the client does not read is late by its own doing, which the error says`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, connection) = try await server.connected(clock: clock, heartless)
        var events = client.events.makeAsyncIterator()
        async let subscribing = client.subscribe(
            to: "/queue/full", buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        let lines = try await connection.frame().split(separator: "\n")
        let id = try #require(lines.first { $0.hasPrefix("id:") }).dropFirst(3)
        let receipt = try #require(lines.first { $0.hasPrefix("receipt:") }).dropFirst(8)
        connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
        let messages = try await subscribing
        connection.send(message(id, 0) + message(id, 1))
        #expect(await pause(&events) == "/queue/full")
        let sending = Task { try await client.sendAndConfirm("x", to: "/queue/other") }
        try await connection.confirm("SEND")
        await clock.advance(by: .seconds(11))
        let error = await #expect(throws: STOMPError.self) { try await sending.value }
        #expect(error?.code == .timedOut && error?.message.contains("readingPaused") == true, "\(error as Any)")
        #expect(client.state.isConnected)
        #expect(try await messages.texts(2) == ["0", "1"])
        connection.close()
        await client.disconnect()
    }

    @Test func `a subscription whose receipt the client does not read keeps the next connection`() async throws {
        let server = FakeServer()
        let clock = try ManualClock()
        let (client, first) = try await server.connected(clock: clock, heartless)
        async let subscribing = client.subscribe(
            to: "/queue/full", buffer: BufferPolicy(messages: 1, overflow: .pauseReading))
        try await first.confirm("SUBSCRIBE")
        let messages = try await subscribing
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
}
