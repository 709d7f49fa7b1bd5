import LoopbackBroker
import MQTT
import Recipe

await recipe(
    """
    The view model of a phone's screen, which here is a line of text: it follows a thermostat, and loses its connection
    while the user turns the wheel.
    Usage: view-model
    """
) { _ in
    let broker = try await LoopbackBroker.start()
    var configuration = MQTTConfiguration(clientID: "phone")
    configuration.reconnect.initialDelay = .milliseconds(200)
    let client = try MQTTClient(broker.mqttURL, configuration: configuration)
    await client.start()
    let model = ThermostatModel(client: client)
    let screen = Task { await model.run() }

    let story = Task {
        let house = try MQTTClient(broker.mqttURL, clientID: "house")
        try await house.connect()
        let targets = try await house.subscribe(to: "thermostat/target", as: Double.self)
        try await house.publish(19.5, as: .json, to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
        await broker.dropAllConnections()
        await model.set(21)
        for try await target in targets {
            try await house.publish(target.value, as: .json, to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
        }
    }
    await draw(model) { model.celsius == 21 }
    story.cancel()
    screen.cancel()
    await client.disconnect()
    await broker.stop()
}
