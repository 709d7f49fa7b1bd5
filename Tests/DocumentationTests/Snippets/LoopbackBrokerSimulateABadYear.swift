// The code of Sources/LoopbackBroker/LoopbackBroker.docc/SimulateABadYear.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT
import Testing

struct MeterTests {
    @Test func `Each reading is counted once`() async throws {
        try await Simulation.run(seeds: 0..<20) { try await Self.count(Meter.configuration, in: $0) }
    }

    static func count(_ configuration: MQTTConfiguration, in world: Simulation) async throws {
        let broker = try await world.startBroker()
        let (url, clock) = try (broker.mqttURL, world.clock)
        let house = MQTTClient(url, clientID: "house", configuration: Meter.configuration, clock: clock)
        let meter = MQTTClient(url, clientID: "meter", configuration: configuration, clock: clock)
        try await house.connect()
        try await meter.connect()
        let readings = try await house.subscribe(to: "meter/reading", qos: .exactlyOnce)
        let counting = Task {
            var sum = 0
            for try await reading in readings {
                guard let text = reading.text, let amount = Int(text) else { break }
                sum += amount
            }
            return sum
        }

        try await Meter(client: meter, clock: clock).run()

        try await world.faultsHaveEnded()
        try await meter.publish("end", to: "meter/reading", qos: .exactlyOnce)
        let sum = try await counting.value
        try world.require(sum == 20, "The house counted \(sum) of 20.")
        await meter.disconnect()
        await house.disconnect()
        await broker.stop()
    }
}

struct Meter {
    let client: MQTTClient
    let clock: any Clock<Duration>

    /// The session outlives a connection: otherwise what is published again after a loss is another message.
    static var configuration: MQTTConfiguration {
        var configuration = MQTTConfiguration()
        configuration.cleanStart = false
        return configuration
    }

    func run() async throws {
        for _ in 0..<20 {
            try await clock.sleep(for: .seconds(5))
            try await client.publish("1", to: "meter/reading", qos: .exactlyOnce)
        }
    }
}

func simulateAPhone() async throws {
    var options = SimulationOptions()
    options.acts = ["background"]
    options.faults = [.cuts, .restarts]
    try await Simulation.run(seeds: 0..<20, options: options) { world in
        let broker = try await world.startBroker()
        let phone = try MQTTClient(broker.mqttURL, clientID: "phone", clock: world.clock)
        await phone.start()
        world.onAct("background") { random in
            var random = random
            await phone.suspend()
            try? await world.clock.sleep(for: .seconds(Int.random(in: 1...30, using: &random)))
            phone.resume()
        }
        try await world.faultsHaveEnded()
        try await phone.connect()
        try await phone.publish("here", to: "phone/status", qos: .atLeastOnce)
        await phone.disconnect()
        await broker.stop()
    }
}
