// The code of Sources/MQTT/MQTT.docc/MovingFromMQTTNIO.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func readAlerts() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "kitchen")
    try await client.withConnection { client in
        try await client.publish("21.5", to: "home/kitchen", qos: .atLeastOnce)
        for try await alert in try await client.subscribe(to: "home/+/alert", qos: .atLeastOnce) {
            print(alert.topic, alert.text ?? "")
        }
    }
}
