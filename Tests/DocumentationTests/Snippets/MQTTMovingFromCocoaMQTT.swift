// The code of Sources/MQTT/MQTT.docc/MovingFromCocoaMQTT.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

@MainActor
final class Alerts {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen")
    var latest = ""

    func run() async throws {
        try await client.connect()
        try await client.publish("21.5", to: "home/kitchen", qos: .atLeastOnce)
        for try await alert in try await client.subscribe(to: "home/+/alert", qos: .atLeastOnce) {
            latest = "\(alert.topic): \(alert.text ?? "")"
        }
    }
}
