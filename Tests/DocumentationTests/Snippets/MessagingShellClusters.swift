// The code of Sources/MessagingShell/MessagingShell.docc/Clusters.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import STOMP

func send(_ order: String, with client: STOMPClient) async throws {
    let quorum: STOMPHeaders = ["x-queue-type": "quorum", "durable": "true", "auto-delete": "false"]
    while true {
        do throws(STOMPError) {
            return try await client.sendAndConfirm(
                order, to: "/queue/orders", options: STOMPSendOptions(persistent: true, headers: quorum))
        } catch {
            // Whether a message without an answer arrived is unknown: it may arrive twice.
            guard [.connectionLost, .notConnected, .timedOut].contains(error.code) else { throw error }
            try await client.connect()
        }
    }
}

func pairOfActiveMQ() -> MQTTClient {
    var configuration = MQTTConfiguration(clientID: "till-1")
    configuration.cleanStart = false
    configuration.reconnect.maximumDelay = .seconds(1)
    return MQTTClient(["mqtt://one.example.com", "mqtt://two.example.com"], configuration: configuration)
}
