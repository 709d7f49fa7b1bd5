import MQTT
import Synchronization
import TestSupport
import Testing

/// A store that hangs instead of failing.
@Suite("Session store: one that hangs", .turns)
struct HangingStoreTests {
    /// Connects with a store that hangs, which the error has to name, and once more when the store answers.
    ///
    /// - Parameter connections: those that the server has seen of the first attempt.
    private func connect(_ store: GatedStore, connections: Int, answer: () -> Void) async throws {
        let connects = Mutex(0)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            connects.withLock { $0 += 1 }
            step.accept()
        }
        let client = server.client {
            $0.sessionStore = store
            // Before a session may begin at the server, the store has to know.
            $0.cleanStart = false
            $0.connectTimeout = .milliseconds(200)
        }
        let error = await #expect(throws: MQTTError.self) {
            try await withTimeout(.patience, "an attempt whose store hangs") { try await client.connect() }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("session store") == true, "\(error as Any)")
        #expect(server.connectionCount == connections)
        #expect(connects.withLock { $0 } == 0)
        answer()
        await client.start()
        for await state in client.states where state.isConnected { break }
        #expect(connects.withLock { $0 } > 0)
        await client.disconnect()
    }

    @Test func `a store that does not open in time fails the attempt, and is named`() async throws {
        let store = GatedStore()
        store.opens.store(false, ordering: .releasing)
        try await connect(store, connections: 0) { store.opens.store(true, ordering: .releasing) }
    }

    @Test func `a store that does not answer before CONNECT is named, and not the server, which CONNECT never reached`()
        async throws
    {
        let store = GatedStore()
        store.appends.store(false, ordering: .releasing)
        try await connect(store, connections: 1) { store.appends.store(true, ordering: .releasing) }
    }
}
