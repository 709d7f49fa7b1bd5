// The code of Sources/MQTT/MQTT.docc/HomeAssistant.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

struct Greenhouse: Codable, Sendable, Equatable {
    enum Heater: String, Codable, Sendable {
        case on = "ON"
        case off = "OFF"
    }

    var celsius: Double
    var heater: Heater

    /// One device with a thermometer and a switch.
    static let discovery = """
        {
          "device": {"identifiers": ["greenhouse-1"], "name": "Greenhouse"},
          "origin": {"name": "greenhouse"},
          "availability_topic": "greenhouse/1/status",
          "state_topic": "greenhouse/1/state",
          "components": {
            "temperature": {
              "platform": "sensor", "unique_id": "greenhouse-1-temperature", "device_class": "temperature",
              "unit_of_measurement": "°C", "value_template": "{{ value_json.celsius }}"
            },
            "heater": {
              "platform": "switch", "unique_id": "greenhouse-1-heater",
              "command_topic": "greenhouse/1/heater/set", "value_template": "{{ value_json.heater }}"
            }
          }
        }
        """
}

extension MQTTTopic<Greenhouse> {
    static let greenhouse = MQTTTopic("greenhouse/1/state", as: .json, retain: true)
}

func makeGreenhouse(_ url: String) -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "greenhouse-1")
    configuration.will = MQTTWill("offline", to: "greenhouse/1/status", qos: .atLeastOnce, retain: true)
    return MQTTClient(url, configuration: configuration)
}

/// Runs until its task is cancelled.
func runGreenhouse(_ client: MQTTClient, celsius: Double = 21.5) async throws {
    let states = client.states
    await client.start()
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { try await announceAfterEachConnection(client, states) }
        group.addTask { try await announceAfterEachRestart(client) }
        group.addTask { try await obeyCommands(client, celsius: celsius) }
        // The first that fails ends the others, which would wait for a client that has stopped.
        try await group.next()
        group.cancelAll()
    }
}

/// The will has replaced "online" when a connection was lost.
func announceAfterEachConnection(_ client: MQTTClient, _ states: Updates<MQTTConnectionState>) async throws {
    for await state in states where state.isConnected { try await announceGreenhouse(client) }
}

/// Home Assistant publishes "online" when it has started.
func announceAfterEachRestart(_ client: MQTTClient) async throws {
    for try await status in try await client.subscribe(to: "homeassistant/status") where status.text == "online" {
        try await announceGreenhouse(client)
    }
}

func announceGreenhouse(_ client: MQTTClient) async throws {
    try await client.publish(
        Greenhouse.discovery, to: "homeassistant/device/greenhouse-1/config", qos: .atLeastOnce, retain: true)
    try await client.publish("online", to: "greenhouse/1/status", qos: .atLeastOnce, retain: true)
}

/// Reports each change of the heater, and the state at the beginning.
func obeyCommands(_ client: MQTTClient, celsius: Double) async throws {
    let commands = try await client.subscribe(to: "greenhouse/1/heater/set")
    try await client.publish(Greenhouse(celsius: celsius, heater: .off), to: .greenhouse)
    for try await command in commands {
        guard let heater = command.text.flatMap(Greenhouse.Heater.init(rawValue:)) else { continue }
        try await client.publish(Greenhouse(celsius: celsius, heater: heater), to: .greenhouse)
    }
}
