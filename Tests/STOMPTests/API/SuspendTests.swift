import LoopbackBroker
import STOMP
import TestSupport
import Testing
import Transport

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

    @Test func `resume() or connect() while DISCONNECT waits for its receipt connects again`() async throws {
        let server = FakeServer()
        let client = server.client()
        let connecting = Task { try await client.connect() }
        var connection = try await server.accept(0)
        try await connecting.value
        for round in 1...6 {
            let suspending = Task { await client.suspend() }
            let receipt = try await connection.expect("DISCONNECT")
            let again = Task(executorPreference: EventLoop.shared) {
                if round.isMultiple(of: 2) { try await client.connect() } else { client.resume() }
            }
            // The loop has handled the call before it reads the receipt.
            for _ in 0..<4 { await EventLoop.shared.result {} }
            connection.send("RECEIPT\nreceipt-id:\(receipt)\n\n\0")
            await suspending.value
            connection = try await server.accept(round)
            try await again.value
            #expect(await eventually { client.state.isConnected })
        }
        let disconnecting = Task { await client.disconnect() }
        try await connection.confirm("DISCONNECT")
        await disconnecting.value
    }

    @Test func `a cancelled connect() does not end the next one`() async throws {
        let server = FakeServer()
        let client = server.client()
        for round in 0..<20 {
            let first = Task { try await client.connect() }
            _ = try await server.connection(3 * round)
            first.cancel()
            let second = Task { try await client.connect() }
            _ = try await server.connection(3 * round + 1)
            await client.disconnect()
            await expectError(.disconnected) { try await second.value }
            let third = Task { try await client.connect() }
            let connection = try await server.accept(3 * round + 2)
            try await third.value
            await expectError(.cancelled) { try await first.value }
            let disconnecting = Task { await client.disconnect() }
            try await connection.confirm("DISCONNECT")
            await disconnecting.value
        }
    }
}
