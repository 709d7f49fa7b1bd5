import LoopbackBroker
import MQTT
import Testing

@testable import view_model

/// A view model is tested against a broker inside the test's own process.
@MainActor struct ThermostatModelTests {
    private func withModel(_ body: (ThermostatModel, LoopbackBroker, MQTTClient) async throws -> Void) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration(clientID: "phone")
        configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(10))
        let phone = try MQTTClient(broker.mqttURL, configuration: configuration)
        let house = try MQTTClient(broker.mqttURL, clientID: "house")
        await phone.start()
        try await house.connect()
        let model = ThermostatModel(client: phone)
        let screen = Task { await model.run() }
        try await body(model, broker, house)
        screen.cancel()
        await phone.disconnect()
        await house.disconnect()
        await broker.stop()
    }

    /// Waits until the model shows something.
    private func wait(until isShown: () -> Bool) async throws {
        while !isShown() { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test(.timeLimit(.minutes(5))) func `The screen shows the temperature that the thermostat published last`()
        async throws
    {
        try await withModel { model, _, house in
            try await house.publish("19.5", to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
            try await wait { model.celsius == 19.5 }
            try await house.publish("warm", to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
            try await house.publish("20", to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
            try await wait { model.celsius == 20 }
            #expect(model.problem == nil)
        }
    }

    @Test(.timeLimit(.minutes(5))) func `A problem disappears with the next wish, and the next temperature`()
        async throws
    {
        try await withModel { model, _, house in
            // No number in JSON.
            await model.set(.nan)
            #expect(model.problem != nil)
            await model.set(21)
            #expect(model.problem == nil && model.isSent)
            await model.set(.nan)
            #expect(model.problem != nil)
            try await house.publish("20", to: "thermostat/celsius", qos: .atLeastOnce, retain: true)
            try await wait { model.celsius == 20 }
            #expect(model.problem == nil)
        }
    }

    @Test(.timeLimit(.minutes(5))) func `A wish that was uttered offline reaches the thermostat afterwards`()
        async throws
    {
        try await withModel { model, broker, house in
            let targets = try await house.subscribe(to: "thermostat/target", qos: .atLeastOnce)
            try await wait { model.connection == "connected" }
            await broker.freeze()
            let wish = Task { await model.set(21) }
            try await wait { model.target == 21 }
            #expect(!model.isSent)
            await broker.thaw()
            await wish.value
            #expect(model.isSent)
            for try await target in targets {
                #expect(target.text == "21")
                break
            }
        }
    }
}
