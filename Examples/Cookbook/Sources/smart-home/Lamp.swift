import MQTT

extension MQTTTopic<String> {
    /// What each lamp does: "on", "off", or "offline" from its will.
    static let states = MQTTTopic.text("home/+/lamp", retain: true)
}

/// A lamp, as its own device would be programmed.
struct Lamp: Sendable {
    enum Power: String { case on, off }

    private let client: MQTTClient
    private let work: Task<Void, any Error>

    /// Returns when the lamp is ready for commands.
    init(room: String, _ url: String) async throws {
        let state = try MQTTTopic.states.at(room)
        var configuration = MQTTConfiguration(clientID: "lamp-\(room)")
        configuration.version = .v5_0
        // Five seconds to come back, then the house knows.
        configuration.sessionExpiry = .seconds(5)
        configuration.will = try MQTTWill("offline", to: state, delay: .seconds(5))
        let client = MQTTClient(url, configuration: configuration)
        try await client.connect()
        try await client.publish("off", to: state)
        let commands = try await client.subscribe(to: "home/\(room)/lamp/set", qos: .atLeastOnce)
        self.client = client
        work = Task {
            for try await command in commands {
                guard let power = command.text.flatMap({ Power(rawValue: $0) }) else { continue }
                let from = command.properties.userProperty("from") ?? "unknown"
                try await client.publish(
                    power.rawValue, to: state.name, qos: .atLeastOnce, retain: true,
                    properties: [.userProperty("by", from)])
            }
        }
    }

    func stop() async {
        work.cancel()
        await client.disconnect()
    }
}
