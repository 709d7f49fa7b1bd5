import LoopbackBroker
import MQTT
import MessagingSimulation
import STOMP
import Testing
import Transport

/// A system that sleeps, and one whose time of day is set.
@Suite struct SleepTests {
    private static var quiet: SimulationOptions {
        var options = SimulationOptions()
        options.faults = []
        return options
    }

    private func connect(
        in world: Simulation
    ) async throws -> (broker: LoopbackBroker, mqtt: MQTTClient, stomp: STOMPClient) {
        let broker = try await world.startBroker()
        let mqtt = try MQTTClient(broker.mqttURL, clientID: "laptop", clock: world.clock)
        let stomp = try STOMPClient(broker.stompURL, clock: world.clock)
        try await mqtt.connect()
        try await stomp.connect()
        return (broker, mqtt, stomp)
    }

    @Test(arguments: [3_600_000, -3_600_000])
    func `A time of day that is set is no sleep`(milliseconds: Int64) async throws {
        let numbers = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let (broker, mqtt, stomp) = try await connect(in: world)
            let start = world.clock.now
            var writes = [mqtt.counters.writes, stomp.counters.writes]
            world.world.setClock(forwardBy: milliseconds)
            // What the timer does that notices such a change: it ends the wait.
            await world.clock.waitUntilQuiet()
            // Less than any interval.
            try await world.clock.sleep(for: .seconds(5))
            writes = [mqtt.counters.writes - writes[0], stomp.counters.writes - writes[1]]
            try world.require(start.duration(to: world.clock.now) == .seconds(5), "time has passed otherwise")
            let connections = broker.statistics.connections
            await mqtt.disconnect()
            await stomp.disconnect()
            await broker.stop()
            return writes + [connections]
        }
        #expect(numbers == [0, 0, 2])
    }

    @Test func `After a sleep in which their connections died clients connect again`() async throws {
        let seconds = try await Simulation.run(seed: 1, options: Self.quiet) { world in
            let (broker, mqtt, stomp) = try await connect(in: world)
            for link in world.world.links { link.die(isUp: nil) }
            await world.clock.letSystemSleep(for: .seconds(3_600))
            let start = world.clock.now
            var seconds: [Int64] = []
            for client in [mqtt, stomp] as [any MessagingClient] {
                while client.counters.connections < 2 { try await world.clock.sleep(for: .milliseconds(100)) }
                seconds.append(start.duration(to: world.clock.now).components.seconds)
            }
            await mqtt.disconnect()
            await stomp.disconnect()
            await broker.stop()
            return seconds
        }
        // Its timeout, and up to a second of `spread`.
        #expect((10...11).contains(seconds[0]) && (25...26).contains(seconds[1]), "\(seconds)")
    }
}
