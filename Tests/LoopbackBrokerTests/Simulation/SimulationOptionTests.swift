import MQTT
import Testing

@testable import LoopbackBroker

/// Each option of a simulation does what it says.
@Suite struct SimulationOptionTests {
    /// What a client notices that publishes every second.
    struct Observation: Sendable {
        var connections = 0
        var longestPublish = Duration.zero
        var sessionWasForgotten = false
    }

    /// - Parameter drops: whether the body cuts all connections now and then, so that there are attempts to connect.
    private static func observation(
        _ faults: SimulationFaults, seed: UInt64, drops: Bool = false
    ) async throws -> Observation {
        var options = SimulationOptions()
        options.faults = faults
        options.maximumEntries = 2
        let outcome = try await Simulation.outcome(seed: seed, options: options) { world in
            let broker = try await world.startBroker()
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.cleanStart = false
            let client = try MQTTClient(broker.mqttURL, configuration: configuration, clock: world.clock)
            try await client.connect()
            var seen = Observation()
            for second in 0..<150 {
                try await world.clock.sleep(for: .seconds(1))
                if broker.sessionCount == 0 { seen.sessionWasForgotten = true }
                if drops, second % 15 == 14 { await broker.dropAllConnections() }
                let start = world.clock.now
                try await client.publish("1", to: "a", qos: .atLeastOnce)
                seen.longestPublish = max(seen.longestPublish, start.duration(to: world.clock.now))
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

    @Test(arguments: [SimulationFaults.cuts, .latency, .silence, .restarts, .losses])
    func `Each fault has its effect and no other`(_ fault: SimulationFaults) async throws {
        var found = false
        for seed in 0..<UInt64(12) {
            let seen = try await Self.observation(fault, seed: seed)
            switch fault {
            case .cuts: found = found || seen.connections > 1
            case .latency, .silence:
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
