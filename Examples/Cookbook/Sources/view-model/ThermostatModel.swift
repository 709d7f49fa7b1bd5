import MQTT
import Observation

/// What a screen with a thermostat shows, kept up to date by a client that may be offline at any time.
@MainActor @Observable final class ThermostatModel {
    private(set) var connection = "not connected"
    private(set) var celsius: Double?
    /// The temperature that the user asked for, and whether the thermostat has been told.
    private(set) var target: Double?
    private(set) var isSent = true
    private(set) var problem: String?

    private let client: MQTTClient

    init(client: MQTTClient) {
        self.client = client
    }

    /// Runs for as long as the screen is shown: in SwiftUI, `.task { await model.run() }`.
    func run() async {
        await withTaskGroup { group in
            group.addTask { await self.followConnection() }
            group.addTask { await self.followTemperature() }
        }
    }

    /// Called when the user turns the wheel. Without a connection it is sent when there is one again.
    func set(_ celsius: Double) async {
        target = celsius
        isSent = false
        problem = nil
        do {
            try await client.publish(celsius, as: .json, to: "thermostat/target", qos: .atLeastOnce, retain: true)
            if target == celsius { isSent = true }
        } catch {
            problem = error.message
        }
    }

    private func followConnection() async {
        for await state in client.states {
            connection =
                switch state {
                case .connected: "connected"
                case .connecting: "connecting…"
                case .waiting: "offline"
                case .disconnected: "not connected"
                default: connection
                }
        }
    }

    private func followTemperature() async {
        do {
            for try await element in try await client.subscribe(to: "thermostat/celsius", as: Double.self) {
                guard let celsius = try? element.value else { continue }
                self.celsius = celsius
                problem = nil
            }
        } catch {
            // A screen that is closed cancels.
            if error.code != .cancelled { problem = error.message }
        }
    }
}
