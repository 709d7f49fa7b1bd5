// The code of Sources/MQTT/MQTT.docc/MQTT.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func watchTheDoors() async throws {
    let client = MQTTClient("mqtt://localhost", clientID: "doors-%%%%")
    try await client.withConnection { client in
        for try await door in try await client.subscribe(to: "house/+/door") {
            print(door.captures[0], door.text ?? "")
        }
    }
}
