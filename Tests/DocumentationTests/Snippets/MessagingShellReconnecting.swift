// The code of Sources/MessagingShell/MessagingShell.docc/Reconnecting.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func makePatientClient() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "meter-%%%%")
    configuration.reconnect = ReconnectPolicy(
        initialDelay: .milliseconds(200), maximumDelay: .seconds(30), firstConnectAttempts: nil)
    return MQTTClient(["mqtt://one.example.com", "mqtt://two.example.com"], configuration: configuration)
}

func showDoors(_ client: MQTTClient) async throws {
    await client.start()
    for try await door in try await client.subscribe(to: "house/+/door") { print(door.topic, door.text ?? "") }
}

func waitUntilConnected(client: MQTTClient) async {
    for await state in client.states where state.isConnected { break }
}

func networkIsBack(client: MQTTClient) {
    client.networkChanged()
}
