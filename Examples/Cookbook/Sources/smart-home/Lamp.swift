import MQTT

extension MQTTTopic<String> {
    /// What each lamp does: "on", "off", or "offline" from its will.
    static let states = MQTTTopic.text("home/+/lamp", retain: true)
}

/// A lamp, as its own device would be programmed.
struct Lamp: Sendable {
    enum Power: String { case on, off }

    private let client: MQTTClient
    private let bulb: Bulb
    private let commands: MQTTSubscription
    private let states: Updates<MQTTConnectionState>

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
        let states = client.states
        let commands: MQTTSubscription
        do {
            try await client.connect()
            try await bulb.show()
            commands = try await client.subscribe(to: "home/\(room)/lamp/set", qos: .atLeastOnce)
        } catch {
            await client.disconnect()
            throw error
        }
        (self.client, self.bulb, self.commands, self.states) = (client, bulb, commands, states)
    }

    /// Obeys commands until the task is cancelled. Throws when the lamp no longer can.
    func work() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for try await command in commands {
                    guard let power = command.text.flatMap({ Power(rawValue: $0) }) else { continue }
                    try await bulb.turn(power, by: command.properties.userProperty("from") ?? "unknown")
                }
            }
            group.addTask {
                // The will may have replaced the state while there was no connection.
                for await _ in states.filter(\.isConnected).dropFirst() { try await bulb.show() }
            }
            // The first failure ends both.
            while try await group.next() != nil {}
        }
    }

    func stop() async {
        await client.disconnect()
    }
}
