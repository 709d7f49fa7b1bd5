import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

/// A store that hangs instead of failing.
@Suite("Session store: one that hangs", .turns)
struct HangingStoreTests {
    /// Connects with a store that hangs, which the error has to name, and once more when the store answers.
    ///
    /// - Parameter connections: those that the server has seen of the first attempt.
    private func connect(
        _ store: GatedStore, _ clock: ManualClock, connections: Int, answer: () -> Void
    ) async throws {
        let connects = Mutex(0)
        let server = ScriptedServer(clock: clock) { step in
            guard case .connectReceived = step.event else { return }
            connects.withLock { $0 += 1 }
            step.accept()
        }
        let client = server.client {
            $0.sessionStore = store
            // Before a session may begin at the server, the store has to know.
            $0.cleanStart = false
            $0.connectTimeout = .seconds(2)
        }
        let connecting = Task { try await client.connect() }
        #expect(await eventually { store.isHeld })
        async let advance: Void = clock.advance(by: .seconds(2))
        let error = await #expect(throws: MQTTError.self) {
            try await connecting.value(within: .patience, "an attempt whose store hangs")
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("session store") == true, "\(error as Any)")
        #expect(server.connectionCount == connections)
        #expect(connects.withLock { $0 } == 0)
        answer()
        await advance
        await client.start()
        for await state in client.states where state.isConnected { break }
        #expect(connects.withLock { $0 } > 0)
        await client.disconnect()
    }

    @Test func `a store that does not open in time fails the attempt, and is named`() async throws {
        let clock = try ManualClock()
        let store = GatedStore(clock)
        store.opens.store(false, ordering: .releasing)
        try await connect(store, clock, connections: 0) { store.opens.store(true, ordering: .releasing) }
    }

    @Test func `a store that does not answer before CONNECT is named, and not the server, which CONNECT never reached`()
        async throws
    {
        let clock = try ManualClock()
        let store = GatedStore(clock)
        store.appends.store(false, ordering: .releasing)
        try await connect(store, clock, connections: 1) { store.appends.store(true, ordering: .releasing) }
    }

    /// Servers close a connection on which no CONNECT comes, some of them within seconds.
    @Test func `a server that does not wait for CONNECT is not blamed for a store that hangs, and the version stays`()
        async throws
    {
        let store = GatedStore()
        store.appends.store(false, ordering: .releasing)
        let server = ScriptedServer { step in if case .connectReceived = step.event { step.accept() } }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
            $0.sessionStore = store
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
        }
        let connecting = Task { try await client.connect() }
        #expect(await eventually { server.connectionCount == 1 })
        server.link?.dropConnection()
        let error = await #expect(throws: MQTTError.self) {
            try await connecting.value(within: .patience, "an attempt whose store hangs")
        }
        #expect(error?.code == .timedOut && error?.message.contains("session store") == true, "\(error as Any)")
        store.appends.store(true, ordering: .releasing)
        await client.start()
        for await state in client.states where state.isConnected { break }
        #expect(server.versions == [.v5_0])
        await client.disconnect()
    }

    /// Seed 20261206003232: the store opened after the client had stopped, was closed, and opened again for the next start.
    @Test func `what is in a store that opens after the client has stopped comes once, when the client starts again`()
        async throws
    {
        let bench = try await Bench()
        let store = GatedStore()
        let client = bench.client("worker") {
            $0.version = .v5_0
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = store
        }
        let sender = try await bench.jobWaits(for: client)
        await client.disconnect()
        store.opens.store(false, ordering: .releasing)
        await client.start()
        #expect(await eventually { client.core.persistence?.waitingCount == 1 })
        let leaving = Task { await client.disconnect() }
        // Until it waits for the store, to close it.
        #expect(await eventually { client.core.persistence?.waitingCount ?? 0 >= 2 })
        let received = Mutex<[String?]>([])
        let working = Task {
            for try await job in client.subscription(to: "a", qos: .exactlyOnce, acknowledgement: .manual) {
                received.withLock { $0.append(job.text) }
            }
        }
        #expect(await eventually { client.core.subscriptions.knownRouter?.entries.isEmpty == false })
        store.opens.store(true, ordering: .releasing)
        await leaving.value
        try await client.connect()
        try await sender.publish("end", to: "a", qos: .exactlyOnce)
        #expect(await eventually { received.withLock { $0.last == "end" } })
        #expect(received.withLock { $0 } == ["job", "end"])
        await client.disconnect()
        try await working.value
        await bench.stop()
    }

    @Test func `a message that waits for a store that hangs is refused when the client stops`() async throws {
        let store = GatedStore()
        store.opens.store(false, ordering: .releasing)
        let client = ScriptedServer { _ in }.client { $0.sessionStore = store }
        await client.start()
        let publishing = Task { try await client.publish("never", to: "a", qos: .atLeastOnce) }
        let arrived = { client.core.persistence?.waitingCount == 2 }
        #expect(await eventually { arrived() })
        let leaving = Task { await client.disconnect() }
        let error = await #expect(throws: MQTTError.self) {
            try await publishing.value(within: .patience, "a message of a client that has stopped")
        }
        #expect(error?.code == .disconnected, "\(error as Any)")
        store.opens.store(true, ordering: .releasing)
        await leaving.value
        #expect(client.core.persistence?.journal == nil)
    }

    /// What waits for the store, directly or because messages and requests wait for it.
    enum Call: CaseIterable {
        case publish, publishTwice, enqueue, subscribe
    }

    @Test(arguments: Call.allCases)
    func `a call that waits for a store that hangs ends after requestTimeout, and may take effect later`(
        call: Call
    ) async throws {
        let server = SubscribingServer()
        let received = Atomic(0)
        server.scriptedServer.remark { _ in
            received.add(1, ordering: .relaxed)
            return []
        }
        let store = GatedStore()
        let client = server.scriptedServer.client {
            $0.cleanStart = false
            $0.sessionStore = store
            $0.requestTimeout = .seconds(1)
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        store.appends.store(false, ordering: .releasing)
        let error = await #expect(throws: MQTTError.self) {
            switch call {
            case .publish: try await client.publish("1", to: "a", qos: .atLeastOnce)
            case .publishTwice:
                async let first = client.publish("1", to: "a", qos: .exactlyOnce)
                try await client.publish("2", to: "a", qos: .exactlyOnce)
                _ = try await first
            case .enqueue: try await client.enqueue(MQTTOutgoingMessage("1", to: "a", qos: .atLeastOnce))
            case .subscribe: _ = try await client.subscribe(to: "new", qos: .atLeastOnce)
            }
        }
        #expect(error?.code == .timedOut && error?.message.contains("session store") == true, "\(error as Any)")
        while let event = await events.next() { if case .storeUnanswered = event { break } }
        store.appends.store(true, ordering: .releasing)
        // What was published may still be sent, what was enqueued was not accepted, and the client goes on.
        let count = [.subscribe, .enqueue].contains(call) ? 0 : call == .publishTwice ? 2 : 1
        #expect(await eventually { received.load(ordering: .relaxed) == count && !store.isHeld })
        #expect(client.state.isConnected)
        await client.disconnect()
    }
}
