import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// The device of the article on Home Assistant, with the test in Home Assistant's place.
@Suite(.turns)
struct HomeAssistantTests {
    @Test func `A device is discovered, obeys, and is announced again after a restart and a lost connection`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        let home = try MQTTClient(broker.mqttURL, clientID: "home")
        try await home.connect()
        var configs = try await home.subscribe(to: "homeassistant/device/+/config").makeAsyncIterator()
        var statuses = try await home.subscribe(to: "greenhouse/1/status").makeAsyncIterator()
        var states = try await home.subscribe(to: .greenhouse).makeAsyncIterator()

        let device = makeGreenhouse(try broker.mqttURL)
        let running = Task { try await runGreenhouse(device) }
        let config = try #require(try await configs.next())
        let payload = try #require(try JSONSerialization.jsonObject(with: Data(config.bytes)) as? [String: Any])
        #expect(config.topic == "homeassistant/device/greenhouse-1/config")
        #expect(payload["device"] is [String: Any] && payload["origin"] is [String: Any])
        let components = try #require(payload["components"] as? [String: [String: Any]])
        #expect(components.values.allSatisfy { $0["platform"] is String && $0["unique_id"] is String })
        #expect(payload["availability_topic"] as? String == "greenhouse/1/status")
        #expect(payload["state_topic"] as? String == "greenhouse/1/state")
        #expect(try await statuses.next()?.text == "online")
        #expect(try await states.next()?.value == Greenhouse(celsius: 21.5, heater: .off))

        // What is not understood changes nothing.
        let command = try #require(components["heater"]?["command_topic"] as? String)
        try await home.publish("maybe", to: command, qos: .atLeastOnce)
        try await home.publish("ON", to: command, qos: .atLeastOnce)
        #expect(try await states.next()?.value == Greenhouse(celsius: 21.5, heater: .on))

        // Retained, because the device may not have subscribed yet.
        try await home.publish("online", to: "homeassistant/status", qos: .atLeastOnce, retain: true)
        #expect(try await configs.next()?.text == config.text)
        #expect(try await statuses.next()?.text == "online")

        await broker.dropConnection(of: "greenhouse-1")
        #expect(try await statuses.next()?.text == "offline")
        #expect(try await statuses.next()?.text == "online")

        running.cancel()
        _ = await running.result
        await device.disconnect()
        // A home that starts later finds discovery, availability and state.
        #expect(broker.retainedCount == 4)
        await home.disconnect()
        await broker.stop()
    }

    @Test func `A device with a wrong password ends with the reason`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "greenhouse", password: "right")]
        let broker = try await LoopbackBroker.judged(options)
        let device = makeGreenhouse(try broker.mqttURL.replacing("mqtt://", with: "mqtt://greenhouse:wrong@"))
        let error = await #expect(throws: MQTTError.self) {
            try await withTimeout(.patience, "the end of the device") { try await runGreenhouse(device) }
        }
        #expect(error?.code == .badCredentials)
        await device.disconnect()
        await broker.stop()
    }
}
