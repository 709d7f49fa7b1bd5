import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

@Suite(.turns) struct RequestTests {
    @Test func repliesFindTheirRequests() async throws {
        try await withBroker { broker in
            let service = try await broker.connected()
            let questions = try await service.subscribe(to: "/queue/questions")
            let answering = Task {
                for try await question in questions {
                    try await service.reply(to: question, with: question.bytes + [33])
                }
            }
            let client = try await broker.connected()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<50 {
                    group.addTask {
                        let reply = try await client.request("\(number)", to: "/queue/questions")
                        #expect(reply.text == "\(number)!")
                    }
                }
                try await group.waitForAll()
            }
            // The temporary queue went with the connection; the next one has another.
            await broker.dropAllConnections()
            #expect(await eventually { client.counters.connections == 2 && service.counters.connections == 2 })
            #expect(await eventually { client.state.isConnected && service.state.isConnected })
            #expect(try await client.request("again", to: "/queue/questions").text == "again!")
            await client.disconnect()
            try await client.connect()
            #expect(try await client.request("and again", to: "/queue/questions").text == "and again!")
            await client.disconnect()
            await service.disconnect()
            try await answering.value
        }
    }

    @Test func requestWithoutAReplyEnds() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let arrivals = broker.arrivals().filter { $0.packet == .stomp(.send) }
            await expectError(.timedOut, containing: "the request to '/queue/nobody'") {
                _ = try await client.request("x", to: "/queue/nobody", timeout: .milliseconds(50))
            }
            let cancelled = Task { try await client.request("x", to: "/queue/cancelled") }
            _ = await arrivals.first { $0.topic == "/queue/cancelled" }
            cancelled.cancel()
            await expectError(.cancelled) { _ = try await cancelled.value }
            let lost = Task { try await client.request("x", to: "/queue/lost") }
            _ = await arrivals.first { $0.topic == "/queue/lost" }
            await broker.dropAllConnections()
            await expectError(.connectionLost) { _ = try await lost.value }
            #expect(await eventually { client.counters.connections == 2 })
            let stopped = Task { try await client.request("x", to: "/queue/stopped") }
            _ = await arrivals.first { $0.topic == "/queue/stopped" }
            await client.disconnect()
            await expectError(.disconnected) { _ = try await stopped.value }
        }
    }

    @Test func rabbitMQsReplyQueueIsNamedAndNeverSubscribed() async throws {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0, server: "RabbitMQ/3.10.8")
        try await connecting
        async let asking = client.request("question", to: "/queue/questions")
        let frame = try await connection.frame()
        #expect(frame.hasPrefix("SEND\n"))
        let lines = frame.split(separator: "\n")
        let replyTo = try #require(lines.first { $0.hasPrefix("reply-to:") }).dropFirst(9)
        #expect(replyTo.hasPrefix("/temp-queue/"))
        let correlation = try #require(lines.first { $0.hasPrefix("correlation-id:") })
        // A message without it may be the late reply to another request.
        for (header, text) in [("", "whose?"), ("\(correlation)\n", "answer")] {
            connection.send(
                "MESSAGE\nsubscription:\(replyTo)\nmessage-id:1\ndestination:/reply-queue/amq.gen-1\n\(header)\n\(text)\0"
            )
        }
        #expect(try await asking.text == "answer")
        connection.close()
        await client.disconnect()
    }

    @Test func `a request that is made before the broker is known declares its destination's queue`() async throws {
        let server = FakeServer()
        let client = server.client { $0.requestTimeout = .patience }
        await client.start()
        #expect(await eventually { server.count == 1 })
        let destination = STOMPDestination.text("/queue/a", queue: .rabbitMQ(deadLetterExchange: "dead"))
        let asking = Task { try await client.request("x", to: destination, returning: Int.self) }
        try await Task.sleep(for: .milliseconds(20))
        let connection = try await server.accept(0, server: "RabbitMQ/3.10.8")
        let lines = try await connection.frame().split(separator: "\n")
        #expect(lines.first == "SEND" && lines.contains("x-dead-letter-exchange:dead"))
        let replyTo = try #require(lines.first { $0.hasPrefix("reply-to:") }).dropFirst(9)
        let correlation = try #require(lines.first { $0.hasPrefix("correlation-id:") })
        connection.send(
            "MESSAGE\nsubscription:\(replyTo)\nmessage-id:1\ndestination:/queue/b\n\(correlation)\n\n7\0")
        #expect(try await asking.value.value == 7)
        connection.close()
        await client.disconnect()
    }

    @Test func `a request without a connection is sent over the next one, after those that were sent have failed`()
        async throws
    {
        let server = FakeServer()
        let client = server.client { $0.requestTimeout = .patience }
        async let connecting: Void = client.connect()
        let first = try await server.accept(0, server: "RabbitMQ/3.10.8")
        try await connecting
        let sent = Task { try await client.request("sent", to: "/queue/a") }
        try await first.expect("SEND")
        first.close()
        await expectError(.connectionLost) { _ = try await sent.value }
        #expect(await eventually { server.count == 2 })
        // While the server does not answer CONNECT.
        await expectError(.timedOut) { _ = try await client.request("late", to: "/queue/a", timeout: .milliseconds(1)) }
        let cancelled = Task { try await client.request("cancelled", to: "/queue/a") }
        cancelled.cancel()
        await expectError(.cancelled) { _ = try await cancelled.value }
        async let asking = client.request("waits", to: "/queue/a")
        let second = try await server.accept(1, server: "RabbitMQ/3.10.8")
        let frame = try await second.frame()
        #expect(frame.hasPrefix("SEND\n") && frame.hasSuffix("\nwaits"))
        let lines = frame.split(separator: "\n")
        let replyTo = try #require(lines.first { $0.hasPrefix("reply-to:") }).dropFirst(9)
        let correlation = try #require(lines.first { $0.hasPrefix("correlation-id:") })
        second.send("MESSAGE\nsubscription:\(replyTo)\nmessage-id:1\ndestination:/queue/b\n\(correlation)\n\nanswer\0")
        #expect(try await asking.text == "answer")
        second.close()
        #expect(await eventually { server.count == 3 })
        let stopped = Task { try await client.request("stopped", to: "/queue/a") }
        await client.disconnect()
        // Made before disconnect() or after it.
        do {
            _ = try await stopped.value
            Issue.record("a request without a reply returned")
        } catch let error as STOMPError {
            #expect(error.code == .disconnected || error.code == .notConnected)
        }
    }

    @Test func `a request that timed out without a connection names why there was none`() async throws {
        let clock = try ManualClock()
        // Nothing listens there.
        let client = STOMPClient("stomp://127.0.0.1:1", clock: clock)
        await client.start()
        let request = Task(executorPreference: clock.loop) {
            try await client.request("x", to: "/queue/a", timeout: .seconds(10))
        }
        #expect(await eventually { if case .waiting = client.state { true } else { false } })
        // The request's time has begun.
        await clock.waitUntilQuiet()
        await clock.advance(by: .seconds(20))
        await #expect {
            _ = try await request.value
        } throws: { error in
            guard let error = error as? STOMPError, error.code == .timedOut else { return false }
            return error.message.contains("The client was not connected: ")
                && !error.message.contains("Check that a client answers there")
        }
        await client.disconnect()
    }

    @Test func messageThatAsksForNoReplyGetsNone() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/q")
            try await client.send("x", to: "/queue/q")
            let message = try #require(try await messages.first(1).first)
            await expectError(.invalidRequest) { try await client.reply(to: message, with: []) }
            await client.disconnect()
        }
    }
}
