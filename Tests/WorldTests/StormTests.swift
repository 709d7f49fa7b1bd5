import MQTT
import Synchronization
import TestSupport
import Testing

@testable import LoopbackBroker

/// A day of many clients at one broker that is dark three times: how many of them come back in each second. Clusters.md has
/// the table that `CAMPAIGN=1` prints, of a thousand clients; a plain run has fewer of them, for a shorter time.
@Suite struct StormTests {
    private static let darknesses: [Duration] = [.seconds(1), .seconds(10), .seconds(300)]

    /// One return of all clients.
    struct Storm: Sendable {
        var darkness: Duration
        /// Connections that the broker was offered in each second after the darkness.
        var connections: [Int] = []
        /// From the end of the darkness until each client was connected again.
        var last = Duration.zero
        var most: Int { connections.max() ?? 0 }
    }

    /// What a day was like.
    struct Day: Sendable {
        var storms: [Storm] = []
        /// PINGREQ packets of all clients.
        var pings = 0
    }

    /// - Parameter quiet: the time before each darkness.
    static func day(clients count: Int, quiet: Duration) async throws -> Day {
        var options = SimulationOptions()
        options.faults = []
        options.maximumTime = .seconds(2 * 86_400)
        return try await Simulation.run(seed: 1, options: options) { world in
            let broker = try await world.startBroker()
            let clients = try (0..<count).map {
                try MQTTClient(broker.mqttURL, clientID: "client \($0)", clock: world.clock)
            }
            for client in clients { await client.start() }
            try await Self.wait(for: count, broker, world)
            let connect = clients.map(\.counters.bytesSent)
            var day = Day()
            for darkness in darknesses {
                try await world.clock.sleep(for: quiet)
                #expect(broker.connectionCount == count)
                day.storms.append(try await storm(darkness, clients: count, broker, world))
            }
            try await world.clock.sleep(for: quiet)
            #expect(clients.map(\.counters.connections) == Array(repeating: 4, count: count))
            // Besides four CONNECT packets they have sent nothing but these, of two bytes.
            day.pings = zip(clients, connect).reduce(0) { $0 + ($1.0.counters.bytesSent - 4 * $1.1) / 2 }
            for client in clients { await client.disconnect() }
            await broker.stop()
            return day
        }
    }

    private static func storm(
        _ darkness: Duration, clients count: Int, _ broker: LoopbackBroker, _ world: Simulation
    ) async throws -> Storm {
        var storm = Storm(darkness: darkness)
        world.world.changeNetwork { $0.refuses = true }
        await broker.dropAllConnections()
        try await world.clock.sleep(for: darkness)
        world.world.changeNetwork { $0.refuses = false }
        let light = world.clock.now
        let arrivals = broker.arrivals(maximumCount: 1_000_000)
        let counting = Task {
            var connections: [Int] = []
            for await arrival in arrivals where arrival.packet == .mqtt(.connect) {
                let second = Int(light.duration(to: world.clock.now).components.seconds)
                while connections.count <= second { connections.append(0) }
                connections[second] += 1
                if connections.reduce(0, +) == count { break }
            }
            return connections
        }
        try await wait(for: count, broker, world)
        storm.last = light.duration(to: world.clock.now)
        storm.connections = await counting.value
        return storm
    }

    private static func wait(for count: Int, _ broker: LoopbackBroker, _ world: Simulation) async throws {
        while broker.connectionCount < count { try await world.clock.sleep(for: .milliseconds(100)) }
    }

    @Test func `After a darkness all clients come back, and not at once`() async throws {
        let isWhole = Campaign.scale >= 0.05
        let count = isWhole ? 1000 : 100
        let quiet = Duration.seconds(isWhole ? 21_500 : 600)
        let clock = ContinuousClock()
        let start = clock.now
        let day = try await Self.day(clients: count, quiet: quiet)
        let time = start.duration(to: clock.now)
        print("\(count) clients, \(day.pings) pings, in \(time):")
        for storm in day.storms {
            let seconds = [1, 2, 5, 10, 30].map { "\(storm.connections.prefix($0).reduce(0, +)) after \($0) s" }
            print(
                "dark for \(storm.darkness): at most \(storm.most) connects in a second; "
                    + "\(seconds.joined(separator: ", ")), all after \(storm.last)")
        }
        // One each 45 seconds, except for the last one before each darkness and before the end.
        let intervals = Int(quiet.components.seconds) / 45 * 4
        #expect(day.pings >= count * (intervals - 4) && day.pings <= count * (intervals + 8))
        // The first wait is at most a second, the next ones grow to a minute.
        let policy = ReconnectPolicy()
        #expect(policy.spread == .seconds(1) && policy.maximumDelay == .seconds(60))
        for (storm, (most, last)) in zip(day.storms, [(1.0, 3), (0.35, 20), (0.08, 61)]) {
            #expect(storm.connections.reduce(0, +) == count)
            #expect(Double(storm.most) <= Double(count) * most)
            #expect(storm.last <= .seconds(last))
        }
    }
}
