import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite("Client: suspending", .turns)
struct SuspendTests {
    @Test func `suspending ends the connection and keeps the subscriptions, which resuming makes again`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let other = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/a")
            await client.suspend()
            guard case .suspended = client.state else {
                Issue.record("\(client.state)")
                return
            }
            #expect(await eventually { broker.connectionCount == 1 })
            try await other.sendAndConfirm("while suspended", to: "/queue/a")
            await expectError(.notConnected) { try await client.send("x", to: "/queue/b") }
            let waiting = Task { try await client.subscribe(to: "/queue/b") }
            client.resume()
            #expect(try await messages.texts(1) == ["while suspended"])
            let later = try await waiting.value
            try await other.send("later", to: "/queue/b")
            #expect(try await later.texts(1) == ["later"])
            // Twice, and from a state where it has no effect.
            await client.suspend()
            await client.suspend()
            try await client.connect()
            client.resume()
            #expect(client.state.isConnected)
            await client.suspend()
            await client.disconnect()
            for try await _ in messages {}
            await other.disconnect()
        }
    }
}
