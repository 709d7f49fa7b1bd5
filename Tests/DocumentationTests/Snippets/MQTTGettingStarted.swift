// The code of Sources/MQTT/MQTT.docc/GettingStarted.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT

func watchTheHouse() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "house-%%%%")
    try await client.withConnection { client in
        let temperatures = try await client.subscribe(to: "house/+/temperature")
        for try await message in temperatures {
            print(message.captures[0], message.text ?? "\(message.payload.count) bytes")
        }
    }
}

func readOneAndUnsubscribe(client: MQTTClient) async throws -> String? {
    let temperatures = try await client.subscribe(to: "house/kitchen/temperature", qos: .atLeastOnce)
    for try await message in temperatures {
        print(message.qos, message.isRetained, message.isDuplicate, message.payload.count)
        break
    }
    var received = temperatures.makeAsyncIterator()
    let next = try await received.next()
    try await temperatures.unsubscribe()
    return next?.text
}

func watchUntilCancelled(client: MQTTClient) async throws {
    do throws(MQTTError) {
        for try await door in try await client.subscribe(to: "house/+/door") { print(door.text ?? "") }
    } catch {
        guard error.code == .cancelled else { throw error }
    }
}

func publishTemperatures(client: MQTTClient) async throws {
    // QoS 0: returns when the bytes are on their way.
    try await client.publish("21.5", to: "house/kitchen/temperature")

    // QoS 1: returns when the server has acknowledged, over a reconnect if necessary. The server keeps the last value.
    try await client.publish("21.5", to: "house/kitchen/temperature", qos: .atLeastOnce, retain: true)

    // QoS 2: exactly once, while both ends keep the session.
    try await client.publish("open", to: "house/door/command", qos: .exactlyOnce)

    // Publishes now, waits for the acknowledgement later.
    let confirmation = try await client.publishForConfirmation(MQTTOutgoingMessage("shut", to: "house/door/command"))
    try await confirmation.confirmed()
}

func publishOrExplain(client: MQTTClient) async {
    do {
        try await client.publish("21.5", to: "house/kitchen/temperature", qos: .atLeastOnce)
    } catch {
        switch error.code {
        case .notConnected: print("Call connect() first.")
        case .queueFull: print("Too many messages wait for the connection.")
        default: print(error)
        }
    }
}

struct Reading: Codable, Sendable, Equatable {
    var celsius: Double
    var humidity: Double
}

extension MQTTTopic<Reading> {
    static let readings = MQTTTopic("house/+/reading", as: .json)
}

func copyReadings(client: MQTTClient) async throws {
    let readings = try await client.subscribe(to: .readings)
    try await client.publish(Reading(celsius: 21.5, humidity: 0.4), to: .readings.at("kitchen"))
    for try await reading in readings {
        print(reading.captures[0], try reading.value.celsius)
        break
    }
}

func makeClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "house-%%%%")
    configuration.version = .v5_0
    configuration.fallbackVersions = [.v3_1_1]
    configuration.credentials = Credentials(userName: "house", password: "secret")
    configuration.keepAlive = .seconds(30)
    return MQTTClient("mqtts://broker.example.com", configuration: configuration)
}

func showStates(client: MQTTClient) async {
    for await state in client.states {
        switch state {
        case .connected: print("connected")
        case .connecting(let attempt): print("attempt \(attempt)")
        case .waiting(let delay, _, let reason): print("next attempt in \(delay): \(reason)")
        case .disconnected(let reason): print("disconnected", reason?.message ?? "")
        default: break
        }
    }
}

func tryItOut() async throws {
    let broker = try await LoopbackBroker.start()
    let client = try MQTTClient(broker.mqttURL)
    try await client.connect()
    let greetings = try await client.subscribe(to: "greetings/#")
    try await client.publish("hello", to: "greetings/world", qos: .exactlyOnce)
    for try await greeting in greetings {
        print(greeting.topic, greeting.text ?? "")
        break
    }
    await client.disconnect()
    await broker.stop()
}
