// The code of Sources/MQTT/MQTT.docc/MovingFromMQTTKit.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func showAlerts(_ show: @Sendable (String) -> Void) async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen")
    try await client.connect()
    try await client.publish("21.5", to: "home/kitchen", qos: .atLeastOnce)
    for try await alert in try await client.subscribe(to: "home/+/alert", qos: .atLeastOnce) {
        show(alert.text ?? "")
    }
}
