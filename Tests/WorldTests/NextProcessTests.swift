import MQTT
import Testing

@testable import LoopbackBroker

/// What a process finds in the store of the one before it.
@Suite struct NextProcessTests {
    private static let directory = "/store"

    /// A client whose store the next one of the same world continues.
    private static func makeClient(_ world: Simulation, _ broker: LoopbackBroker) throws -> MQTTClient {
        var configuration = session
        configuration.sessionStore = FileSessionStore(directory: directory)
        return try MQTTClient(broker.mqttURL, clientID: "app", configuration: configuration, clock: world.clock)
    }

    private static var session: MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(86_400)
        return configuration
    }

    private static func run<Result: Sendable>(
        _ body: @escaping @Sendable (Simulation, LoopbackBroker) async throws -> Result
    ) async throws -> Result {
        var options = SimulationOptions()
        options.faults = []
        return try await Simulation.run(seed: 1, options: options) { world in
            let broker = try await world.startBroker()
            let result = try await body(world, broker)
            await broker.stop()
            return result
        }
    }

    /// The process of a client ends.
    private static func end(_ client: MQTTClient, _ world: Simulation) async {
        world.endProcess(usingStoreIn: directory)
        await client.disconnect()
    }

    @Test func `A request that has not left is not sent by the next process`() async throws {
        let asked = try await Self.run { world, broker in
            let door = try MQTTClient(
                broker.mqttURL, clientID: "door", configuration: Self.session, clock: world.clock)
            try await door.connect()
            let requests = try await door.subscribe(to: "door", qos: .atLeastOnce)
            let answering = Task {
                var asked: [String?] = []
                for try await request in requests {
                    asked.append(request.text)
                    try await door.reply(to: request, with: "done")
                }
                return asked
            }
            let first = try Self.makeClient(world, broker)
            try await first.connect()
            _ = try await first.request("look", to: "door")
            world.world.changeNetwork { $0.refuses = true }
            _ = await broker.dropConnection(of: "app")
            try await world.clock.sleep(for: .seconds(1))
            let asking = Task { _ = try await first.request("unlock", to: "door", timeout: .seconds(10)) }
            try await world.clock.sleep(for: .seconds(1))
            let waiting = first.backlog.queuedMessages
            try world.require(waiting == 1, "\(waiting) messages wait.")
            await Self.end(first, world)
            _ = await asking.result
            try await world.clock.sleep(for: .seconds(3600))
            world.world.changeNetwork { $0.refuses = false }
            let second = try Self.makeClient(world, broker)
            try await second.connect()
            try await world.clock.sleep(for: .seconds(60))
            await second.disconnect()
            await door.disconnect()
            return try await answering.value
        }
        #expect(asked == ["look"])
    }

    @Test(arguments: [7200, -7200])
    func `A message that is stored after the clock was set keeps its time to live`(change: Int64) async throws {
        let texts = try await Self.run { world, broker in
            let first = try Self.makeClient(world, broker)
            try await first.enqueue(MQTTOutgoingMessage("1", to: "t"))
            world.world.setClock(forwardBy: change * 1000)
            for (text, time) in [("2", 60), ("3", 600)] {
                var message = MQTTOutgoingMessage(text, to: "t")
                message.timeToLive = .seconds(time)
                try await first.enqueue(message)
            }
            await Self.end(first, world)
            try await world.clock.sleep(for: .seconds(120))
            let arrivals = broker.arrivals()
            let second = try Self.makeClient(world, broker)
            try await second.connect()
            try await second.publish("4", to: "t", qos: .atLeastOnce)
            await second.disconnect()
            await broker.stop()
            var texts: [String] = []
            for await arrival in arrivals where arrival.packet == .mqtt(.publish) { texts.append(arrival.text) }
            return texts
        }
        #expect(texts == ["1", "3", "4"])
    }

    @Test func `A message that is kept for a subscription after the clock was set is there for the next process`()
        async throws
    {
        let text = try await Self.run { world, broker in
            let first = try Self.makeClient(world, broker)
            try await first.connect()
            let subscription = try await first.subscribe(to: "t", qos: .atLeastOnce)
            await first.disconnect()
            for try await _ in subscription {}
            try await first.connect()
            world.world.setClock(forwardBy: 7_200_000)
            await broker.publish("kept", to: "t")
            try await world.clock.sleep(for: .seconds(1))
            await Self.end(first, world)
            let second = try Self.makeClient(world, broker)
            var messages = second.subscription(to: "t", qos: .atLeastOnce).makeAsyncIterator()
            try await second.connect()
            await broker.publish("new", to: "t")
            let text = try await messages.next()?.text
            await second.disconnect()
            return text
        }
        #expect(text == "kept")
    }
}
