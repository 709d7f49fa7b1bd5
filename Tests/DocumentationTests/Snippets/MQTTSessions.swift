// The code of Sources/MQTT/MQTT.docc/Sessions.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func keepTheSession() -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "meter-%%%%")
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(86_400)
    configuration.sessionStore = FileSessionStore(directory: "/var/lib/meter/session")
    return configuration
}

func work(_ client: MQTTClient) async throws {
    let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
    try await client.withConnection { _ in
        for try await job in jobs {
            print(job.topic)
            job.acknowledge()
        }
    }
}

func leave(_ client: MQTTClient, within patience: Duration = .seconds(2)) async {
    let farewell = Task { try await client.publish("offline", to: "status", qos: .atLeastOnce, retain: true) }
    let limit = Task {
        try await Task.sleep(for: patience)
        farewell.cancel()
    }
    _ = await farewell.result
    limit.cancel()
    await client.disconnect()
}
