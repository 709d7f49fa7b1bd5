import MQTT
import STOMP
import Testing

@testable import LoopbackBroker
@testable import MessagingSimulation

/// Each option of a simulation does what it says.
@Suite struct SimulationOptionTests {
    /// What a client notices that publishes every second.
    struct Observation: Sendable {
        var connections = 0
        var longestPublish = Duration.zero
        var sessionWasForgotten = false
        /// Why publishing failed.
        var failures: Set<MQTTError.Code> = []
    }

    /// - Parameters:
    ///   - drops: whether the body cuts all connections now and then, so that there are attempts to connect.
    ///   - version: of the client, which publishes to a broker that it knows by a name.
    private static func observation(
        _ faults: SimulationFaults, seed: UInt64, drops: Bool = false, version: MQTTVersion = .v3_1_1
    ) async throws -> Observation {
        var options = SimulationOptions()
        options.faults = faults
        options.maximumEntries = 2
        let outcome = try await Simulation.outcome(seed: seed, options: options) { world in
            let broker = try await world.startBroker(host: "broker.example")
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.version = version
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(version == .v5_0 ? 3600 : 0)
            let client = MQTTClient(
                "mqtt://broker.example:\(try #require(broker.ports.mqtt))", configuration: configuration,
                clock: world.clock)
            try await client.connect()
            var seen = Observation()
            for second in 0..<150 {
                try await world.clock.sleep(for: .seconds(1))
                if broker.sessionCount == 0 { seen.sessionWasForgotten = true }
                if drops, second % 15 == 14 { await broker.dropAllConnections() }
                let start = world.clock.now
                do throws(MQTTError) {
                    // Larger than a packet of a broker with smaller limits.
                    let text = second % 2 == 0 ? "1" : String(repeating: "1", count: 600)
                    try await client.publish(text, to: "a", qos: .atLeastOnce)
                    seen.longestPublish = max(seen.longestPublish, start.duration(to: world.clock.now))
                } catch {
                    seen.failures.insert(error.code)
                    try await client.connect()
                }
            }
            seen.connections = client.counters.connections
            await client.disconnect()
            await broker.stop()
            return seen
        }
        return try outcome.result.get()
    }

    @Test func `Without faults nothing goes wrong`() async throws {
        for seed in 0..<UInt64(3) {
            let seen = try await Self.observation([], seed: seed)
            #expect(seen.connections == 1 && seen.longestPublish == .zero && !seen.sessionWasForgotten)
        }
    }

    @Test(arguments: [
        SimulationFaults.cuts, .latency, .silence, .restarts, .losses, .halfOpen, .slowness, .slowAnswers, .takeovers,
    ])
    func `Each fault has its effect and no other`(_ fault: SimulationFaults) async throws {
        var found = false
        for seed in 0..<UInt64(12) {
            let seen = try await Self.observation(fault, seed: seed)
            switch fault {
            case .cuts, .takeovers: found = found || seen.connections > 1
            case .halfOpen: found = found || seen.connections > 1 && seen.longestPublish > .seconds(20)
            case .latency, .silence, .slowness, .slowAnswers:
                #expect(seen.connections == 1)
                found = found || seen.longestPublish > .zero
            case .restarts:
                #expect(!seen.sessionWasForgotten)
                found = found || seen.connections > 1
            default: found = found || seen.sessionWasForgotten
            }
        }
        #expect(found)
    }

    @Test func `Connections are refused for a time`() async throws {
        var found = false
        for seed in 0..<UInt64(12) where !found {
            let usual = try await Self.observation([], seed: seed, drops: true)
            #expect(usual.longestPublish < .seconds(2))
            let seen = try await Self.observation(.refusals, seed: seed, drops: true)
            found = found || seen.longestPublish > .seconds(2)
        }
        #expect(found)
    }

    @Test func `Names are not found, or late, for a time`() async throws {
        var found = false
        for seed in 0..<UInt64(12) where !found {
            let seen = try await Self.observation(.names, seed: seed, drops: true)
            found = seen.longestPublish > .seconds(2)
        }
        #expect(found)
    }

    @Test func `A client of MQTT 5 is told that another took its session over`() async throws {
        var found = false
        for seed in 0..<UInt64(12) where !found {
            found = try await Self.observation(.takeovers, seed: seed, version: .v5_0).failures.contains(.takenOver)
        }
        #expect(found)
    }

    @Test func `Brokers grant less for a time`() async throws {
        var codes: Set<MQTTError.Code> = []
        for seed in 0..<UInt64(12) {
            let seen = try await Self.observation(.smallerLimits, seed: seed, version: .v5_0)
            codes.formUnion(seen.failures)
            #expect(!seen.sessionWasForgotten)
        }
        #expect(codes == [.notAllowed])
        #expect(try await Self.observation(.smallerLimits, seed: 0).failures.isEmpty, "3.1.1 knows no limits")
    }

    @Test func `The device has no network for a time`() async throws {
        var found = false
        for seed in 0..<UInt64(12) where !found {
            let seen = try await Self.observation(.networkChanges, seed: seed)
            found = seen.connections > 1 && seen.longestPublish > .seconds(2)
        }
        #expect(found)
    }

    @Test func `Clients know whether their device has a network`() async throws {
        var options = SimulationOptions()
        options.faults = .networkChanges
        for seed in 0..<UInt64(12) {
            let plan = SimulationPlan(seed: seed, options: options, leavingOut: [])
            guard let first = plan.entries.first, case .offline(let lasting) = first.event, lasting > .seconds(10)
            else { continue }
            let wasWithout = try await Simulation.run(seed: seed, options: options) { world in
                let broker = try await world.startBroker(host: "broker.example")
                var configuration = MQTTConfiguration()
                // Without a network the end of the connection does not arrive: the missing PINGRESP shows it.
                configuration.keepAlive = .seconds(2)
                configuration.pingTimeout = .seconds(2)
                let client = MQTTClient(
                    "mqtt://broker.example:\(try #require(broker.ports.mqtt))", configuration: configuration,
                    clock: world.clock)
                await client.start()
                let states = client.states
                let watching = Task {
                    for await state in states where state == .waitingForNetwork { return true }
                    return false
                }
                try await world.clock.sleep(for: first.time + .seconds(1))
                await broker.dropAllConnections()
                return await watching.value
            }
            #expect(wasWithout)
            return
        }
        Issue.record("No plan has a long time without a network.")
    }

    @Test func `Session stores find the disk full or broken for a time`() async throws {
        var options = SimulationOptions()
        options.faults = .disk
        var errors: Set<String> = []
        for seed in 0..<UInt64(20) {
            let outcome = try await Simulation.outcome(seed: seed, options: options) { world in
                let broker = try await world.startBroker()
                var configuration = MQTTConfiguration()
                configuration.sessionStore = FileSessionStore(directory: "/store")
                let client = try MQTTClient(
                    broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
                var errors: Set<String> = []
                for _ in 0..<120 {
                    try await world.clock.sleep(for: .seconds(1))
                    do throws(MQTTError) {
                        try await client.connect()
                        try await client.publish("1", to: "t", qos: .atLeastOnce)
                    } catch {
                        try world.require(error.code == .storeFailed, "\(error)")
                        for text in ["No space left", "Input/output error"] where "\(error)".contains(text) {
                            errors.insert(text)
                        }
                    }
                }
                await client.disconnect()
                await broker.stop()
                return errors
            }
            errors.formUnion(try outcome.result.get())
        }
        #expect(errors.count == 2, "\(errors)")
    }

    /// Whether a message that expires after an hour is sent by the next process.
    private static func isSent(
        after time: Duration, _ faults: SimulationFaults = [], seed: UInt64 = 1
    ) async throws -> Bool {
        var options = SimulationOptions()
        options.faults = faults
        return try await Simulation.run(seed: seed, options: options) { world in
            let broker = try await world.startBroker()
            @Sendable func makeClient() throws -> MQTTClient {
                var configuration = MQTTConfiguration()
                configuration.version = .v5_0
                configuration.sessionStore = FileSessionStore(directory: "store")
                return try MQTTClient(
                    broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
            }
            let first = try makeClient()
            var properties = MQTTProperties()
            properties.messageExpiryInterval = 3600
            try await first.enqueue(MQTTOutgoingMessage("1", to: "t", properties: properties))
            world.endProcess(usingStoreIn: "store")
            await first.disconnect()
            try await world.clock.sleep(for: time)
            let arrivals = broker.arrivals()
            let second = try makeClient()
            try await second.connect()
            try await second.publish("2", to: "t", qos: .atLeastOnce)
            let arrival = await arrivals.first { $0.packet == .mqtt(.publish) }
            await second.disconnect()
            await broker.stop()
            return arrival?.payload.elementsEqual("1".utf8) == true
        }
    }

    @Test func `The time of day passes with the clock of the world`() async throws {
        #expect(try await Self.isSent(after: .seconds(3500)))
        #expect(try await !Self.isSent(after: .seconds(3700)))
    }

    /// The `expires` header of a STOMP message that expires after a minute.
    private static func expires(seed: UInt64) async throws -> String? {
        var options = SimulationOptions()
        options.faults = []
        return try await Simulation.run(seed: seed, options: options) { world in
            let broker = try await world.startBroker()
            let client = STOMPClient(try broker.stompURL, clock: world.clock)
            try await client.connect()
            let minute = STOMPSendOptions(expiresAfter: .seconds(60))
            try await client.sendAndConfirm("1", to: "/queue/a", options: minute)
            try await world.clock.sleep(for: .seconds(61))
            try await client.sendAndConfirm("2", to: "/queue/a", options: minute)
            var messages = try await client.subscribe(to: "/queue/a").makeAsyncIterator()
            let message = try await messages.next()
            await client.disconnect()
            await broker.stop()
            try world.require(message?.text == "2", "\(message?.text ?? "nothing") has arrived")
            return message?.headers["expires"]
        }
    }

    @Test func `STOMP messages expire by the clock of the world, and say the same in each run`() async throws {
        let expires = try #require(try await Self.expires(seed: 1).flatMap { Int64($0) })
        // The world begins with 2026.
        #expect((1_767_225_600_000..<1_767_312_000_000).contains(expires))
        #expect(try await Self.expires(seed: 1) == "\(expires)")
    }

    @Test func `The time of day is set forward and back`() async throws {
        var results: Set<Bool> = []
        for seed in 0..<UInt64(12) {
            results.insert(try await Self.isSent(after: .seconds(130), .clockChanges, seed: seed))
        }
        #expect(results == [true, false])
    }

    @Test(arguments: [true, false])
    func `What a process has stored outlives it, and the power if it was synced`(_ syncs: Bool) async throws {
        var options = SimulationOptions()
        options.faults = []
        var lost = [false: 0, true: 0]
        for seed in 0..<UInt64(20) {
            for losingPower in [false, true] {
                let arrived = try await Simulation.run(seed: seed, options: options) { world in
                    let broker = try await world.startBroker()
                    @Sendable func makeClient() throws -> MQTTClient {
                        var store = FileSessionStore.Options()
                        store.sync = syncs ? .always : .never
                        var configuration = MQTTConfiguration()
                        configuration.cleanStart = false
                        configuration.sessionStore = FileSessionStore(directory: "/store", options: store)
                        return try MQTTClient(
                            broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
                    }
                    let first = try makeClient()
                    try await first.enqueue(MQTTOutgoingMessage("1", to: "t"))
                    world.endProcess(usingStoreIn: "/store", losingPower: losingPower)
                    await first.disconnect()
                    var arrivals = broker.arrivals().makeAsyncIterator()
                    let second = try makeClient()
                    try await second.connect()
                    try await second.publish("2", to: "t", qos: .atLeastOnce)
                    while let arrival = await arrivals.next() {
                        guard arrival.packet == .mqtt(.publish) else { continue }
                        await second.disconnect()
                        await broker.stop()
                        return arrival.payload.elementsEqual("1".utf8)
                    }
                    return false
                }
                if !arrived { lost[losingPower, default: 0] += 1 }
            }
        }
        #expect(lost[false] == 0)
        #expect(syncs ? lost[true] == 0 : lost[true] ?? 0 > 0)
    }

    @Test func `Nothing goes wrong before the calm is over or after the duration`() {
        var options = SimulationOptions()
        options.calm = .seconds(30)
        options.duration = .seconds(31)
        options.maximumEntries = 5
        var count = 0
        for seed in 0..<UInt64(50) {
            let plan = SimulationPlan(seed: seed, options: options, leavingOut: [])
            #expect(plan.entries.count <= 5)
            #expect(plan.entries.allSatisfy { $0.time >= .seconds(30) && $0.time < .seconds(31) })
            count += plan.entries.count
        }
        #expect(count > 50)
    }

    @Test func `A cut that has found no packet by the end of the duration does not happen`() async throws {
        var options = SimulationOptions()
        options.faults = .cuts
        options.duration = .seconds(20)
        for seed in 0..<UInt64(20) {
            try await Simulation.run(seed: seed, options: options) { world in
                let broker = try await world.startBroker()
                let client = try MQTTClient(broker.mqttURL, clock: world.clock)
                try await client.connect()
                // Without traffic, so that no cut finds a packet.
                try await world.faultsHaveEnded()
                for number in 0..<10 { try await client.publish("\(number)", to: "t", qos: .atLeastOnce) }
                let count = client.counters.connections
                try world.require(count == 1, "The client made \(count) connections.")
                await client.disconnect()
                await broker.stop()
            }
        }
    }

    @Test(arguments: [true, false])
    func `A failing world is shrunk unless the options say otherwise`(_ shrinks: Bool) async throws {
        var options = SimulationOptions()
        options.shrinks = shrinks
        let plan = SimulationPlan(seed: 3, options: options, leavingOut: [])
        #expect(plan.entries.count > 1)
        let failure = try await SimulationTests.failure(3, options) { _ in throw SimulationError("It fails always.") }
        #expect(failure.plan.entries.count == (shrinks ? 0 : plan.entries.count))
        #expect(failure.leftOut.count == (shrinks ? plan.entries.count : 0))
    }
}
