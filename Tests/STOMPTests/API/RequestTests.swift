import LoopbackBroker
import STOMP
import TestSupport
import Testing

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
        // Without a correlation-id there is but one request that it can be for.
        connection.send(
            "MESSAGE\nsubscription:\(replyTo)\nmessage-id:1\ndestination:/reply-queue/amq.gen-1\n\nanswer\0")
        #expect(try await asking.text == "answer")
        connection.close()
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
