import MQTT
import STOMP
import TestSupport
import Testing

@testable import LoopbackBroker

/// Worlds of fifty reconnects, in which everything is used on each connection, and each of them ends at another moment: what
/// has an entry more for each of them is named.
@Suite struct NothingStaysTests {
    private static let warmUp = 20
    private static let reconnects = 50
    private static var options: SimulationOptions {
        var options = SimulationOptions()
        options.faults = []
        return options
    }

    /// What the body of a world compares after some connections with what it counted before.
    private static func run(
        _ world: Simulation, _ client: some MessagingClient,
        connection: (_ number: Int, inout SimulationRandom) async throws -> Void
    ) async throws {
        var random = world.makeRandom()
        var before: Census?
        for number in 0..<warmUp + reconnects {
            if number == warmUp { before = try await count(client, world) }
            try await client.connect()
            let count = client.counters.connections
            // After any packet of either side, or at any moment.
            let links = world.world.links
            let cut = Int.random(in: 0..<40, using: &random)
            links.first?.cut(
                [.before, .within, .after].randomElement(using: &random) ?? .after,
                isUp: Bool.random(using: &random), after: cut)
            try await connection(number, &random)
            if client.counters.connections == count { for link in world.world.links { link.cut() } }
            while client.counters.connections == count { try await world.clock.sleep(for: .milliseconds(100)) }
        }
        let after = try await count(client, world)
        let grown = before.map { after.grown(since: $0, by: reconnects / 5, except: Census.varying) } ?? []
        try world.require(grown.isEmpty, "after \(reconnects) more connections \(grown)")
    }

    /// When nothing is under way.
    private static func count(_ client: some MessagingClient, _ world: Simulation) async throws -> Census {
        try await world.clock.sleep(for: .seconds(60))
        let census = Census.of([client])
        try world.require(census.unknown.isEmpty, "WorldCensus.swift has to know \(census.unknown.sorted())")
        return census
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `Fifty reconnects leave nothing in an MQTT client`(_ version: MQTTVersion) async throws {
        for seed in 0..<UInt64(Campaign.rounds(200)) {
            try await Simulation.run(seed: seed, options: Self.options) { world in
                let broker = try await world.startBroker()
                var configuration = MQTTConfiguration()
                configuration.version = version
                configuration.cleanStart = seed % 2 == 1
                if version == .v5_0, seed % 2 == 0 { configuration.sessionExpiry = .seconds(86_400) }
                if seed % 4 == 0 { configuration.sessionStore = MemorySessionStore() }
                let client = try MQTTClient(
                    broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
                let events = client.events
                let watching = Task { for await _ in events {} }
                let work = client.subscription(to: "work/#", qos: .exactlyOnce, acknowledgement: .manual)
                let working = Task { for try await job in work { job.acknowledge() } }
                try await Self.run(world, client) { number, random in
                    try await Self.use(client, number, &random, world)
                }
                await client.disconnect()
                try await working.value
                watching.cancel()
                await broker.stop()
                let new = try MQTTClient(
                    broker.mqttURL, clientID: "meter", configuration: configuration, clock: world.clock)
                try world.requireNothingLeft(in: client, unlike: new)
            }
        }
    }

    /// Everything at once, of which some calls are cancelled and some end with their connection.
    private static func use(
        _ client: MQTTClient, _ number: Int, _ random: inout SimulationRandom, _ world: Simulation
    ) async throws {
        let patience = Duration.milliseconds(Int.random(in: 0...300, using: &random))
        let calls = [
            Task {
                let messages = try await client.subscribe(to: "late/\(number)", qos: .atLeastOnce)
                try await client.publish("\(number)", to: "late/\(number)", qos: .exactlyOnce)
                for try await _ in messages { break }
                try await messages.unsubscribe()
            },
            Task { _ = try await client.publish("\(number)", to: "work/\(number % 5)", qos: .exactlyOnce) },
            Task { _ = try await client.publish("\(number)", to: "work/\(number % 5)", qos: .atLeastOnce) },
            Task { _ = try await client.enqueue(MQTTOutgoingMessage("\(number)", to: "work/1")) },
            Task { _ = try await client.request("\(number)", to: "nobody", timeout: .seconds(5)) },
            Task {
                var message = MQTTOutgoingMessage("\(number)", to: "work/2", qos: .atLeastOnce)
                message.timeToLive = .seconds(1)
                _ = try await client.publishForConfirmation(message).withdraw()
            },
            Task {
                _ = await client.publish((0..<3).map { MQTTOutgoingMessage("\($0)", to: "work/3", qos: .atLeastOnce) })
            },
        ]
        try await world.clock.sleep(for: patience)
        for (place, call) in calls.enumerated() where (number + place) % 3 == 0 { call.cancel() }
        // Those that wait for an answer that does not come.
        try await world.clock.sleep(for: .seconds(20))
        for call in calls {
            call.cancel()
            _ = await call.result
        }
    }

    @Test func `Fifty reconnects leave nothing in a STOMP client`() async throws {
        for seed in 0..<UInt64(Campaign.rounds(200)) {
            try await Simulation.run(seed: seed, options: Self.options) { world in
                let broker = try await world.startBroker()
                var configuration = STOMPConfiguration()
                configuration.versions = [STOMPVersion.v10, .v11, .v12].suffix(1 + Int(seed % 3))
                let client = STOMPClient(try broker.stompURL, configuration: configuration, clock: world.clock)
                let events = client.events
                let watching = Task { for await _ in events {} }
                let work = client.subscription(to: "/queue/work", acknowledgement: .clientIndividual)
                let working = Task { for try await job in work { try? job.acknowledge() } }
                try await Self.run(world, client) { number, random in
                    try await Self.use(client, number, &random, world)
                }
                await client.disconnect()
                try await working.value
                watching.cancel()
                await broker.stop()
                let new = STOMPClient(try broker.stompURL, configuration: configuration, clock: world.clock)
                try world.requireNothingLeft(in: client, unlike: new)
            }
        }
    }

    private static func use(
        _ client: STOMPClient, _ number: Int, _ random: inout SimulationRandom, _ world: Simulation
    ) async throws {
        let patience = Duration.milliseconds(Int.random(in: 0...300, using: &random))
        let calls = [
            Task {
                let messages = try await client.subscribe(to: "/topic/late/\(number)", acknowledgement: .client)
                try await client.sendAndConfirm("\(number)", to: "/topic/late/\(number)")
                for try await message in messages {
                    try message.reject()
                    break
                }
                try await messages.unsubscribe()
            },
            Task { try await client.sendAndConfirm("\(number)", to: "/queue/work") },
            Task { try await client.send("\(number)", to: "/queue/work") },
            Task { _ = try await client.request("\(number)", to: "/queue/nobody", timeout: .seconds(5)) },
            Task {
                try await client.withTransaction { transaction in
                    try await client.sendAndConfirm("\(number)", to: "/queue/work", in: transaction)
                    try await world.clock.sleep(for: patience)
                }
            },
            Task {
                let transaction = try client.begin()
                try await client.send("\(number)", to: "/queue/work", in: transaction)
                try await world.clock.sleep(for: patience)
                try client.abort(transaction)
            },
        ]
        try await world.clock.sleep(for: patience)
        for (place, call) in calls.enumerated() where (number + place) % 3 == 0 { call.cancel() }
        try await world.clock.sleep(for: .seconds(20))
        for call in calls {
            call.cancel()
            _ = await call.result
        }
    }
}
