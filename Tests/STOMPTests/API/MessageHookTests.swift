import LoopbackBroker
import STOMP
import Synchronization
import TestSupport
import Testing

@Suite("STOMP client: a hook for messages", .turns)
struct MessageHookTests {
    /// What a hook has seen.
    private final class Seen: Sendable {
        let lines = Mutex<[String]>([])
        func note(_ line: String) { lines.withLock { $0.append(line) } }
        func take() -> [String] {
            lines.withLock { lines in
                defer { lines = [] }
                return lines
            }
        }

        /// Adds a header, and notes what becomes of each message.
        var hook: STOMPMessageHook {
            STOMPMessageHook { message in
                message.options.headers["trace"] = message.destination
                let destination = message.destination
                return { outcome in
                    switch outcome {
                    case .success: self.note("sent \(destination)")
                    case .failure(let error): self.note("failed \(destination) \(error.code)")
                    }
                }
            } receiving: { message in
                self.note("received \(message.header("trace") ?? "nothing")")
            }
        }
    }

    private typealias Send = @Sendable (STOMPClient) async throws -> Void

    private static let ways: [Send] = [
        { try await $0.send("x", to: "/queue/a") }, { try await $0.send(STOMPOutgoingMessage("x", to: "/queue/a")) },
        { try await $0.send([STOMPOutgoingMessage("x", to: "/queue/a")]) },
        { try await $0.sendAndConfirm("x", to: "/queue/a") },
        { try await $0.sendAndConfirm([STOMPOutgoingMessage("x", to: "/queue/a")]).check() },
        { try await $0.sendForReceipt(STOMPOutgoingMessage("x", to: "/queue/a")).confirmed() },
    ]

    @Test func `every way to send passes the hook once, with its outcome`() async throws {
        try await withBroker { broker in
            let seen = Seen()
            let client = try await broker.connected { $0.messageHook = seen.hook }
            var messages = try await client.subscribe(to: "/queue/a").makeAsyncIterator()
            for (place, way) in Self.ways.enumerated() {
                try await way(client)
                let message = try #require(try await messages.next())
                #expect(message.header("trace") == "/queue/a", "way \(place)")
                #expect(seen.take() == ["sent /queue/a", "received /queue/a"], "way \(place)")
            }
            await client.disconnect()
            await #expect(throws: STOMPError.self) { try await client.send("x", to: "/queue/b") }
            #expect(seen.take() == ["failed /queue/b notConnected"])
        }
    }

    @Test func `a message whose body a hook has changed still tells how many were dropped before it`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected {
                $0.messageHook = STOMPMessageHook(receiving: { $0 = $0.with(body: $0.bytes.reversed()) })
            }
            let sender = try await broker.connected()
            let messages = try await client.subscribe(to: "/topic/a", buffer: BufferPolicy(messages: 1))
            for number in 10..<20 { try await sender.sendAndConfirm("\(number)", to: "/topic/a") }
            #expect(await eventually { messages.droppedCount == 9 })
            let last = try #require(try await messages.first(1).first)
            #expect(last.text == "91" && last.droppedBefore == 9)
            await client.disconnect()
            await sender.disconnect()
        }
    }

    @Test func `a hook may change bodies on both sides`() async throws {
        try await withBroker { broker in
            let plain = try await broker.connected()
            let client = try await broker.connected {
                $0.messageHook = STOMPMessageHook { message in
                    message.body.reverse()
                    return nil
                } receiving: {
                    $0 = $0.with(body: $0.body.reversed() + Array("!".utf8))
                }
            }
            let outside = try await plain.subscribe(to: "/topic/a")
            let inside = try await client.subscribe(to: "/topic/a", acknowledgement: .clientIndividual)
            let texts = (0..<20).map { "text \($0)" }
            try await client.sendAndConfirm(texts.map { STOMPOutgoingMessage($0, to: "/topic/a") }).check()
            #expect(try await outside.first(20).map(\.text) == texts.map { String($0.reversed()) })
            let received = try await inside.first(20)
            #expect(received.map(\.text) == texts.map { $0 + "!" })
            #expect(received.allSatisfy { $0.destination == "/topic/a" && $0.messageID != nil })
            for message in received { try message.acknowledge() }
            #expect(throws: STOMPError.self) { try received[7].acknowledge() }
            await client.disconnect()
            await plain.disconnect()
        }
    }

    @Test func `the answer to a request is seen`() async throws {
        try await withBroker { broker in
            let seen = Seen()
            let client = try await broker.connected {
                $0.messageHook = STOMPMessageHook(receiving: { seen.note($0.text ?? "") })
            }
            let server = try await broker.connected()
            let requests = try await server.subscribe(to: "/queue/ask")
            let serving = Task {
                for try await request in requests {
                    try await server.reply(to: request, with: "answer")
                    break
                }
            }
            _ = try await client.request("x", to: "/queue/ask")
            #expect(seen.take() == ["answer"])
            try await serving.value
            await client.disconnect()
            await server.disconnect()
        }
    }
}
