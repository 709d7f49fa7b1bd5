import LoopbackBroker
import MQTT
import TestSupport
import Testing

@Suite("Client: leaving a server for another one", .turns)
struct MovingTests {
    /// Two brokers, a client of both, and what others see of its will.
    private struct Place {
        let clock: ManualClock
        let brokers: [LoopbackBroker]
        let client: MQTTClient

        init(_ change: (inout MQTTConfiguration) -> Void = { _ in }) async throws {
            clock = try ManualClock()
            brokers = [try await LoopbackBroker.start(clock: clock), try await LoopbackBroker.start(clock: clock)]
            var configuration = MQTTConfiguration(clientID: "moving")
            configuration.will = MQTTWill("gone", to: "status", retain: true)
            change(&configuration)
            client = MQTTClient(
                try brokers[0].mqttURL, try brokers[1].mqttURL, configuration: configuration, clock: clock)
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

    @Test func `clients that connected together do not leave together`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.start(clock: clock)
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
