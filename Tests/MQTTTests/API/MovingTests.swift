import ClientTestSupport
import LoopbackBroker
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite("Client: leaving a server for another one", .turns)
struct MovingTests {
    /// Two brokers, a client of both, and what others see of its will.
    private struct Place {
        let clock: ManualClock
        let brokers: [LoopbackBroker]
        let client: MQTTClient

        init(_ change: (inout MQTTConfiguration) -> Void = { _ in }) async throws {
            clock = try ManualClock()
            brokers = [try await LoopbackBroker.judged(clock: clock), try await LoopbackBroker.judged(clock: clock)]
            var configuration = MQTTConfiguration(clientID: "moving")
            configuration.will = MQTTWill("gone", to: "status", retain: true)
            change(&configuration)
            client = MQTTClient(
                try brokers[0].mqttURL, try brokers[1].mqttURL, configuration: configuration, clock: clock)
        }

        /// Begins a task on the loop, so that the clock's next step waits until it has begun.
        func begin<Success: Sendable>(
            _ body: @escaping @Sendable () async throws -> Success
        ) -> Task<Success, any Error> {
            Task(executorPreference: clock.loop) { try await body() }
        }

        /// The place of the client's server in the list.
        var server: Int? { brokers.firstIndex { (try? $0.mqttURL) == client.server.map { "\($0)" } } }

        /// The wills that the brokers published.
        func wills() async throws -> Int {
            var count = 0
            for broker in brokers {
                let reader = MQTTClient(try broker.mqttURL, clientID: "reader", clock: clock)
                try await reader.connect()
                let messages = try await reader.subscribe(to: "status")
                await clock.waitUntilQuiet()
                count += reader.counters.messagesReceived
                await reader.disconnect()
                withExtendedLifetime(messages) {}
            }
            return count
        }

        func stop() async {
            await client.disconnect()
            for broker in brokers { await broker.stop() }
        }
    }

    /// Its session ends with the connection, so that DISCONNECT waits for the exchange, two seconds at most.
    @Test func `while the client moves, what cannot be sent says so, and not that the application has disconnected`()
        async throws
    {
        let place = try await Place()
        let client = place.client
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        place.brokers[0].changeFaults { $0.withholdsAcknowledgements = true }
        let publishing = place.begin { try await client.publish("waits", to: "b", qos: .exactlyOnce) }
        await place.clock.waitUntilQuiet()
        let moving = place.begin { try await client.reconnect() }
        await place.clock.waitUntilQuiet()
        // As for UNSUBSCRIBE and AUTH.
        let refusal = MQTTUsageError(.closing, "The connection is being closed.")
        let error = client.core.explain(refusal)
        #expect(error.code == .notConnected && error.message.contains("moving to another server"))
        await place.clock.advance(by: .seconds(2))
        try await moving.value
        _ = try await publishing.value
        // The connection is another one, and ends because the application says so.
        place.brokers[1].changeFaults { $0.withholdsAcknowledgements = true }
        let last = place.begin { try await client.publish("waits", to: "b", qos: .exactlyOnce) }
        await place.clock.waitUntilQuiet()
        let leaving = place.begin { await client.disconnect() }
        await place.clock.waitUntilQuiet()
        #expect(client.core.explain(refusal).code == .disconnected)
        await place.clock.advance(by: .seconds(2))
        try await leaving.value
        _ = await last.result
        // Asked for a moment later, when the state has changed.
        #expect(client.core.explain(refusal).code == .disconnected)
        withExtendedLifetime(messages) {}
        await place.stop()
    }

    @Test(arguments: [false, true])
    func `a client that stops while it moves does not say that it moves`(suspends: Bool) async throws {
        let place = try await Place()
        let client = place.client
        try await client.connect()
        place.brokers[0].changeFaults { $0.withholdsAcknowledgements = true }
        let publishing = place.begin { try await client.publish("waits", to: "b", qos: .exactlyOnce) }
        await place.clock.waitUntilQuiet()
        let moving = place.begin { try await client.reconnect() }
        await place.clock.waitUntilQuiet()
        let stopping = place.begin { if suspends { await client.suspend() } else { await client.disconnect() } }
        await place.clock.waitUntilQuiet()
        #expect(client.core.explain(MQTTUsageError(.closing, "The connection is being closed.")).code == .disconnected)
        await place.clock.advance(by: .seconds(2))
        try await stopping.value
        await client.disconnect()
        _ = await moving.result
        _ = await publishing.result
        await place.stop()
    }

    @Test func `reconnect() moves to the next server, with what waits, and no will is published`() async throws {
        let place = try await Place()
        let client = place.client
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        place.brokers[0].changeFaults { $0.withholdsAcknowledgements = true }
        let arrivals = place.brokers[0].arrivals()
        let publishing = Task { try await client.publish("waits", to: "a", qos: .atLeastOnce) }
        _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        await place.clock.advance(by: .seconds(20))
        try await client.reconnect()
        #expect(place.server == 1)
        _ = try await publishing.value
        #expect(try await messages.first(2).map(\.text) == ["waits", "waits"])
        place.brokers[0].changeFaults { $0.withholdsAcknowledgements = false }
        try await client.reconnect()
        #expect(place.server == 0)
        try await client.publish("again", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(1).map(\.text) == ["again"])
        try await #expect(place.wills() == 0)
        await place.stop()
        var seen: [String] = []
        while let event = await events.next() {
            switch event {
            case .moving(let server, let age):
                seen.append("moving \(server == client.server ? "from the first" : "from the second") \(age)")
            case .stateChanged(let state) where state != .connected: seen.append("\(state)")
            case .connectionLost: seen.append("lost")
            default: break
            }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(
            seen == [
                "connecting, attempt 1", "moving from the first 20.0 seconds", "disconnecting", "connecting, attempt 1",
                "moving from the second 0.0 seconds", "disconnecting", "connecting, attempt 1", "disconnecting",
                "disconnected",
            ])
    }

    @Test func `reconnect() with servers that are gone comes back to the present one`() async throws {
        let place = try await Place()
        try await place.client.connect()
        await place.brokers[1].stop()
        async let moved: Void = place.client.reconnect()
        // Time that passes before the call has begun is no time of the move.
        #expect(await eventually { place.client.state != .connected })
        await place.clock.advance(by: .seconds(1))
        try await moved
        #expect(place.server == 0 && place.client.counters.connections == 2)
        await place.stop()
    }

    @Test func `reconnect() of a client that is not connected connects it`() async throws {
        let place = try await Place()
        try await place.client.reconnect()
        #expect(place.server == 0 && place.client.counters.connections == 1)
        await place.client.suspend()
        try await place.client.reconnect()
        #expect(place.client.counters.connections == 2)
        await place.stop()
    }

    @Test func `a connection that has reached its age is followed by another one`() async throws {
        let place = try await Place { $0.reconnect.maximumConnectionAge = .seconds(3_600) }
        let client = place.client
        try await client.connect()
        let messages = try await client.subscribe(to: "a")
        await place.clock.advance(by: .seconds(1_799))
        #expect(client.counters.connections == 1)
        await place.clock.advance(by: .seconds(1_801))
        #expect(client.counters.connections == 2)
        #expect(place.server == 0)
        // From another server it returns to the preferred one.
        try await client.reconnect()
        #expect(place.server == 1)
        await place.clock.advance(by: .seconds(3_600))
        #expect(place.server == 0)
        let before = client.counters.connections
        for hour in 0..<20 {
            try await client.publish("\(hour)", to: "a", qos: .exactlyOnce)
            await place.clock.advance(by: .seconds(3_600))
        }
        #expect((20...40).contains(client.counters.connections - before))
        #expect(try await messages.first(20).map(\.text) == (0..<20).map { "\($0)" })
        try await #expect(place.wills() == 0)
        await place.stop()
    }

    /// Begins to move while messages of QoS 2 hold DISCONNECT back: one of the client's own, whose session ends with the
    /// connection, or else one that it receives.
    private func beginMoving(_ place: Place, receives: Bool = false) async throws -> Task<Void, any Error> {
        let (broker, client) = (place.brokers[0], place.client)
        try await client.connect()
        if receives {
            // SUBSCRIBE waits for the store's thread.
            let messages = try await client.subscribe(to: "in", qos: .exactlyOnce)
            let arrivals = broker.arrivals()
            await broker.setLatency(.milliseconds(500))
            await broker.publish("1", to: "in", qos: .exactlyOnce)
            await place.clock.advance(by: .milliseconds(600))
            _ = await arrivals.first { $0.packet == .mqtt(.pubrec) }
            withExtendedLifetime(messages) {}
        } else {
            await broker.setLatency(.milliseconds(500))
            let arrivals = broker.arrivals()
            Task { try await client.publish("1", to: "own", qos: .exactlyOnce) }
            _ = await arrivals.first { $0.packet == .mqtt(.publish) }
        }
        let moving = Task { try await client.reconnect() }
        #expect(await eventually { client.state == .disconnecting })
        return moving
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a message of QoS 2 under way in a session that ends with its connection arrives once`(
        version: MQTTVersion
    ) async throws {
        let place = try await Place { $0.version = version }
        var events = place.client.events.makeAsyncIterator()
        let moving = try await beginMoving(place)
        for _ in 0..<20 { await place.clock.advance(by: .milliseconds(100)) }
        try await moving.value
        #expect(place.server == 1)
        #expect(place.brokers.map(\.statistics.messagesIn) == [1, 0])
        await place.stop()
        while let event = await events.next() {
            if case .sessionLost(let republished, _) = event { Issue.record("\(republished) messages came again") }
            if case .stateChanged(.disconnected) = event { break }
        }
    }

    @Test func `disconnect(reason:) while the client moves says so to the server`() async throws {
        let place = try await Place { $0.version = .v5_0 }
        let moving = try await beginMoving(place)
        let ending = place.begin { try await place.client.disconnect(reason: .disconnectWithWillMessage) }
        for _ in 0..<20 { await place.clock.advance(by: .milliseconds(100)) }
        try await ending.value
        await #expect(throws: MQTTError.self) { try await moving.value }
        #expect(place.client.state == .disconnected(nil))
        await place.brokers[0].setLatency(.zero)
        try await #expect(place.wills() == 1)
        await place.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `discardSession() while the client moves makes the server forget`(version: MQTTVersion) async throws {
        let place = try await Place {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(version == .v5_0 ? 3_600 : 0)
        }
        let moving = try await beginMoving(place, receives: true)
        #expect(place.brokers[0].sessionCount == 1)
        let discarding = place.begin { try await place.client.discardSession() }
        for _ in 0..<40 { await place.clock.advance(by: .milliseconds(100)) }
        try await discarding.value
        await #expect(throws: MQTTError.self) { try await moving.value }
        #expect(place.brokers.map(\.sessionCount) == [0, 0])
        await place.stop()
    }

    @Test func `a store that fails while the client moves stops it`() async throws {
        final class FailingStore: SessionStore {
            struct Full: Error {}
            let limits = SessionStoreLimits()
            let fails = Atomic(false)
            func open() throws -> StoredSession { StoredSession() }
            func setClientID(_ clientID: String) throws {}
            func append(_ records: [MQTTStoreRecord]) throws { if fails.load(ordering: .relaxed) { throw Full() } }
            func removeAll() throws {}
            func close() {}
        }
        let store = FailingStore()
        let place = try await Place {
            $0.cleanStart = false
            $0.sessionStore = store
        }
        let moving = try await beginMoving(place, receives: true)
        store.fails.store(true, ordering: .relaxed)
        let enqueuing = Task { try await place.client.enqueue(MQTTOutgoingMessage("2", to: "a")) }
        await #expect { try await enqueuing.value } throws: { ($0 as? MQTTError)?.code == .storeFailed }
        store.fails.store(false, ordering: .relaxed)
        for _ in 0..<40 { await place.clock.advance(by: .milliseconds(100)) }
        await #expect { try await moving.value } throws: { ($0 as? MQTTError)?.code == .storeFailed }
        guard case .disconnected(let failure?) = place.client.state else {
            Issue.record("The client is \(place.client.state).")
            return
        }
        #expect(failure.code == .storeFailed)
        // It begins anew.
        await place.brokers[0].setLatency(.zero)
        try await place.client.connect()
        await place.stop()
    }

    @Test func `a client that is released leaves nothing on its loop`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let url = try broker.mqttURL
        func alarms() async -> Int { await clock.loop.result { clock.loop.alarms.count } }
        let before = await alarms()
        var configuration = MQTTConfiguration()
        configuration.reconnect.maximumConnectionAge = .seconds(86_400)
        do {
            let client = MQTTClient(url, configuration: configuration, clock: clock)
            try await client.connect()
            let during = await alarms()
            #expect(during > before)
        }
        #expect(await eventually { broker.connectionCount == 0 })
        // What a connection leaves for a moment.
        await clock.advance(by: .seconds(5))
        let after = await alarms()
        #expect(after == before)
        await broker.stop()
    }

    @Test func `clients that connected together do not leave together`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let clients = try (0..<50).map { number in
            var configuration = MQTTConfiguration(clientID: "c\(number)")
            configuration.reconnect.maximumConnectionAge = .seconds(3_600)
            return MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        }
        for client in clients { try await client.connect() }
        await clock.advance(by: .seconds(1_790))
        var before = 50
        for _ in 0..<19 {
            await clock.advance(by: .seconds(100))
            let count = clients.map(\.counters.connections).reduce(0, +)
            #expect(count - before <= 15)
            before = count
        }
        #expect(clients.allSatisfy { $0.counters.connections >= 2 })
        for client in clients { await client.disconnect() }
        await broker.stop()
    }
}
