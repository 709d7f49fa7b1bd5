import MQTT
import MQTTCore
import TestSupport
import Testing
import Transport

/// An attempt that the caller has ended has no effect on the next one.
@Suite("Client: connecting again after an attempt was ended", .turns)
struct CancelledConnectTests {
    /// A server that answers CONNECT on even connections only.
    private func server() -> ScriptedServer {
        ScriptedServer { step in
            if case .connectReceived = step.event, step.connection % 2 == 0 { step.accept() }
        }
    }

    @Test func `a cancelled connect() does not end the next one`() async throws {
        let server = server()
        let client = server.client()
        for round in 1...40 {
            let first = Task { try await client.connect() }
            #expect(await eventually { server.connectionCount == 2 * round - 1 })
            first.cancel()
            try await client.connect()
            await #expect { try await first.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
            #expect(server.connectionCount == 2 * round && client.state.isConnected)
            await client.disconnect()
        }
    }

    @Test func `an attempt that disconnect() ended does not end the next one`() async throws {
        let server = server()
        let client = server.client()
        for round in 1...40 {
            let first = Task { try await client.connect() }
            #expect(await eventually { server.connectionCount == 2 * round - 1 })
            await client.disconnect()
            try await client.connect()
            await #expect { try await first.value } throws: { ($0 as? MQTTError)?.code == .disconnected }
            #expect(server.connectionCount == 2 * round && client.state.isConnected)
            await client.disconnect()
        }
    }

    @Test func `resume() while suspend() is under way connects again`() async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client()
        try await client.connect()
        for round in 2...40 {
            let states = client.states
            let suspending = Task { await client.suspend() }
            _ = await states.first { state in if case .disconnecting = state { true } else { false } }
            client.resume()
            await suspending.value
            #expect(await eventually { client.state.isConnected && server.connectionCount == round })
        }
        await client.disconnect()
    }
}
