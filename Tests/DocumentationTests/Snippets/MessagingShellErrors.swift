// The code of Sources/MessagingShell/MessagingShell.docc/Errors.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func publishReading(_ client: MQTTClient, _ reading: String) async throws(MQTTError) {
    do {
        try await client.publish(reading, to: "meters/7", qos: .atLeastOnce)
    } catch {
        switch error.code {
        case .notConnected: print("Not sent, because the client is not connected")
        case .connectionLost: print("Perhaps sent:", error.message)
        default: throw error
        }
    }
}
