// The code of Sources/LoopbackBroker/LoopbackBroker.docc/LoopbackBroker.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import LoopbackBroker
import MQTT

func testWithoutInstallingAnything() async throws {
    let broker = try await LoopbackBroker.start()
    let client = try MQTTClient(broker.mqttURL)
    try await client.connect()
    try await client.publish("hello", to: "greetings", qos: .exactlyOnce)
    await client.disconnect()
    await broker.stop()
}
