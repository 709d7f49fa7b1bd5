import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing

@Suite("Client: sessions", .turns)
struct SessionTests {
    private func infos(_ events: Updates<MQTTEvent>, _ count: Int) -> Task<[MQTTConnectionInfo], Never> {
        var iterator = events.makeAsyncIterator()
        return Task {
            var infos: [MQTTConnectionInfo] = []
            while infos.count < count, let event = await iterator.next() {
                if case .connected(let info) = event { infos.append(info) }
            }
            return infos
        }
    }

    @Test func `5.0: a clean start is made once, and a client that comes back goes on with its session`() async throws {
        let bench = try await Bench()
        let client = bench.client("again") {
            $0.version = .v5_0
            $0.sessionExpiry = .seconds(60)
        }
        let infos = infos(client.events, 3)
        try await client.connect()
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 })
        await client.disconnect()
        try await client.connect()
        #expect(await infos.value.map(\.sessionPresent) == [false, true, true])
        await client.disconnect()
        await bench.stop()
    }

    @Test func `5.0: another client of the same name begins anew, unless it says otherwise`() async throws {
        let bench = try await Bench()
        for (cleanStart, present) in [(true, false), (false, true), (true, false)] {
            let client = bench.client("name") {
                $0.version = .v5_0
                $0.cleanStart = cleanStart
                $0.sessionExpiry = .seconds(60)
            }
            let infos = infos(client.events, 1)
            try await client.connect()
            #expect(await infos.value.map(\.sessionPresent) == [present])
            await client.disconnect()
        }
        await bench.stop()
    }

    @Test(arguments: [true, false])
    func `3.1.1: one flag for both ends, kept over reconnects`(cleanStart: Bool) async throws {
        let bench = try await Bench()
        let client = bench.client("old") {
            $0.version = .v3_1_1
            $0.cleanStart = cleanStart
        }
        let infos = infos(client.events, 2)
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 })
        #expect(await infos.value.map(\.sessionPresent) == [false, !cleanStart])
        #expect(
            await eventually {
                _ = try? await client.publish("x", to: "a", qos: .atLeastOnce)
                return client.counters.messagesReceived > 0
            })
        #expect(try await messages.first(1).first?.text == "x")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `suspending ends the connection, keeps the subscriptions and goes on with resume`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected("mobile") {
            $0.version = .v5_0
            $0.sessionExpiry = .seconds(60)
        }
        let other = try await bench.connected()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
        await client.suspend()
        guard case .suspended = client.state else {
            Issue.record("\(client.state)")
            return
        }
        #expect(await eventually { bench.broker.connectionCount == 1 })
        try await other.publish("while suspended", to: "a", qos: .atLeastOnce)
        let waiting = Task { try await client.publish("waits", to: "b", qos: .atLeastOnce) }
        try await Task.sleep(for: .milliseconds(50))
        #expect(bench.broker.connectionCount == 1)
        client.resume()
        #expect(try await messages.first(1).first?.text == "while suspended")
        #expect(try await waiting.value.isError == false)
        // Twice, and from a state where it means nothing.
        await client.suspend()
        await client.suspend()
        try await client.connect()
        client.resume()
        #expect(client.state.isConnected)
        await client.suspend()
        await client.disconnect()
        for try await _ in messages {}
        await other.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `destroying makes the server forget too`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        let client = try await bench.connected("gone") {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = store
        }
        let messages = try await client.subscribe(to: "a")
        bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "b"))
        #expect(store.messageCount == 1)
        try await client.discardSession()
        #expect(store.messageCount == 0)
        for try await _ in messages {}
        #expect(await eventually { bench.broker.sessionCount == 0 })
        await bench.stop()
    }

    /// Before 5.0 a connection with Clean Session makes the server forget, and is for that alone.
    @Test(arguments: [nil, false, true])
    func `messages of a session that is discarded are not sent again`(storeIsStuck: Bool?) async throws {
        let bench = try await Bench { $0.faults.withholdsAcknowledgements = true }
        let store = storeIsStuck.map { StuckStore(isStuck: $0) }
        let client = bench.client("gone") {
            $0.version = .v3_1_1
            $0.cleanStart = false
            $0.maximumInFlight = 1
            $0.sessionStore = store
        }
        let events = client.events
        let arrivals = bench.broker.arrivals()
        try await client.connect()
        for text in ["1", "2"] { try await client.enqueue(MQTTOutgoingMessage(text, to: "b", qos: .exactlyOnce)) }
        _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        if storeIsStuck == true {
            await #expect { try await client.discardSession() } throws: { ($0 as? MQTTError)?.code == .storeFailed }
        } else {
            try await client.discardSession()
            #expect(client.backlog.queuedMessages + client.backlog.messagesInFlight == 0)
        }
        #expect(await eventually { bench.broker.sessionCount == 0 })
        await bench.stop()
        var repeated: [String] = []
        for await arrival in arrivals where arrival.packet == .mqtt(.publish) { repeated.append(arrival.text) }
        #expect(repeated == [])
        // The last state.
        var undelivered = 0
        var connections = 0
        for await event in events {
            if case .connected = event { connections += 1 }
            if case .undelivered = event { undelivered += 1 }
            if connections == 2, case .stateChanged(.disconnected) = event { break }
        }
        #expect(undelivered == (storeIsStuck == true ? 0 : 2))
    }

    @Test func `a client that connects while its session is discarded loses the session all the same`() async throws {
        let bench = try await Bench { $0.faults.withholdsAcknowledgements = true }
        let store = GatedStore()
        let client = try await bench.connected("gone") {
            $0.version = .v5_0
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = store
        }
        try await client.enqueue(MQTTOutgoingMessage("1", to: "b", qos: .exactlyOnce))
        store.removals.store(false, ordering: .releasing)
        let discarding = Task { try await client.discardSession() }
        #expect(await eventually { store.isRemoving.load(ordering: .acquiring) })
        try await client.connect()
        store.removals.store(true, ordering: .releasing)
        try await discarding.value
        #expect(client.state == .disconnected(nil))
        #expect(client.backlog.queuedMessages + client.backlog.messagesInFlight == 0)
        #expect(await eventually { bench.broker.sessionCount == 0 })
        await bench.stop()
    }
}
