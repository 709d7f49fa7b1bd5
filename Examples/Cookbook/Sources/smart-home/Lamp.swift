import MQTT

extension MQTTTopic<String> {
    /// What each lamp does: "on", "off", or "offline" from its will.
    static let states = MQTTTopic.text("home/+/lamp", retain: true)
}

/// A lamp, as its own device would be programmed.
struct Lamp: Sendable {
    enum Power: String { case on, off }

    private let client: MQTTClient
    private let work: [Task<Void, any Error>]

    /// What the lamp does, and how the house learns of it.
    private actor Bulb {
        private let client: MQTTClient
        private let topic: String
        private var power = Power.off

        init(_ client: MQTTClient, _ topic: String) { (self.client, self.topic) = (client, topic) }

        func turn(_ power: Power, by person: String) async throws {
            self.power = power
            try await show([.userProperty("by", person)])
        }

        func show(_ properties: MQTTProperties = []) async throws {
            try await client.publish(
                power.rawValue, to: topic, qos: .atLeastOnce, retain: true, properties: properties)
        }
    }

    /// Returns when the lamp is ready for commands.
    init(room: String, _ url: String) async throws {
        let state = try MQTTTopic.states.at(room)
        var configuration = MQTTConfiguration(clientID: "lamp-\(room)")
        configuration.version = .v5_0
        // Five seconds to come back, then the house knows.
        configuration.sessionExpiry = .seconds(5)
        configuration.will = try MQTTWill("offline", to: state, delay: .seconds(5))
        let client = MQTTClient(url, configuration: configuration)
        let bulb = Bulb(client, state.name)
        let connections = client.states.filter(\.isConnected).dropFirst()
        let commands: MQTTSubscription
        do {
            try await client.connect()
            try await bulb.show()
            commands = try await client.subscribe(to: "home/\(room)/lamp/set", qos: .atLeastOnce)
        } catch {
            await client.disconnect()
            throw error
        }
        self.client = client
        work = [
            Task {
                for try await command in commands {
                    guard let power = command.text.flatMap({ Power(rawValue: $0) }) else { continue }
                    try await bulb.turn(power, by: command.properties.userProperty("from") ?? "unknown")
                }
            },
            // The will may have replaced the state while there was no connection.
            Task { for await _ in connections { try await bulb.show() } },
        ]
    }

    func stop() async {
        for task in work { task.cancel() }
        await client.disconnect()
    }
}
