import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing

@Suite("Client: start() and run()", .turns)
struct StartTests {
    @Test func `connect() reports that no descriptor is left for the event loop, and the client can be used later`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        try await ClientChecks.startWithoutDescriptor { loop in
            STOMPClient([try #require(broker.urls.stomp)], configuration: STOMPConfiguration(), loop: loop)
        }
        await broker.stop()
    }

    @Test func `no call waits for an event loop for which no descriptor is left`() async throws {
        let broker = try await LoopbackBroker.judged()
        try await ClientChecks.callsWithoutDescriptor([
            ("subscribe(to:)", { @Sendable (client: STOMPClient) in _ = try await client.subscribe(to: "/queue/a") }),
            ("request(_:to:)", { @Sendable in _ = try await $0.request("x", to: "/queue/a") }),
        ]) { loop in
            STOMPClient([try #require(broker.urls.stomp)], configuration: STOMPConfiguration(), loop: loop)
        }
        await broker.stop()
    }

    @Test func `start() returns while the server refuses, and everything waits for the connection`() async throws {
        try await withBroker { broker in
            broker.changeFaults { $0.refusesConnections = true }
            let client = broker.client()
            await client.start()
            let subscribing = Task { try await client.subscribe(to: "/queue/a") }
            for await state in client.states {
                // On a busy machine there may have been more before the states are read.
                if case .waiting(_, let attempt, _) = state, attempt >= 3 { break }
            }
            broker.changeFaults { $0.refusesConnections = false }
            let messages = try await subscribing.value
            try await client.sendAndConfirm("1", to: "/queue/a")
            #expect(try await messages.texts(1) == ["1"])
            await client.start()
            #expect(client.state.isConnected && client.counters.connections == 1)
            await client.disconnect()
        }
    }

    @Test func `a cancelled run() disconnects gracefully and returns without an error`() async throws {
        try await withBroker { broker in
            let client = broker.client()
            let running = Task { try await client.run() }
            for await state in client.states { if state.isConnected { break } }
            running.cancel()
            try await running.value
            guard case .disconnected(nil) = client.state else {
                Issue.record("\(client.state)")
                return
            }
            // By another task.
            let again = Task { try await client.run() }
            // Only run() connects here: a disconnect before its task has begun would not end it.
            for await state in client.states { if state.isConnected { break } }
            await client.disconnect()
            try await again.value
        }
    }

    @Test func `run() throws why the client stopped, and the first failure of connect() names start()`() async throws {
        try await withBroker { broker in
            broker.changeFaults { $0.refusesConnections = true }
            await expectError(.refused) { try await broker.client { $0.reconnect.maximumAttempts = 2 }.run() }
            #expect(broker.statistics.connections == 2)
            await #expect { try await broker.client().connect() } throws: { error in
                let message = (error as? STOMPError)?.message ?? ""
                return message.contains("start()") && message.contains("ReconnectPolicy.firstConnectAttempts")
            }
        }
    }
}
