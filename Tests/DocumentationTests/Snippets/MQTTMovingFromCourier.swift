// The code of Sources/MQTT/MQTT.docc/MovingFromCourier.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

struct Note: Codable, Sendable {
    var text: String
}

func chat(as user: String, password: @escaping @Sendable () async throws -> String) async throws {
    var configuration = MQTTConfiguration(clientID: user)
    configuration.credentialsProvider = { _ in Credentials(userName: user, password: try await password()) }
    let client = MQTTClient("mqtts://chat.example.com", configuration: configuration)
    try await client.connect()
    let notes = try await client.subscribe(to: "chat/\(user)", qos: .atLeastOnce)
    try await client.publish(Note(text: "hello"), to: "chat/user2", qos: .atLeastOnce)
    for try await note in notes.values(Note.self, as: .json) {
        if let value = try? note.get() { print(value.text) }
    }
}
