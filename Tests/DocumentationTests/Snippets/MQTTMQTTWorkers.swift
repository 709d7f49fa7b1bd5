// The code of Sources/MQTT/MQTT.docc/MQTTWorkers.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

/// Handles jobs until its task is cancelled, and answers each on `done/` and the job's name.
func workOffJobs(
    _ url: String, store directory: String, handle: @escaping @Sendable (MQTTMessage) async throws -> String
) async throws {
    // 1. The server keeps the session while the worker is away; the store keeps answers over a crash of the process.
    var configuration = MQTTConfiguration(clientID: "worker-1")
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(7 * 86_400)
    configuration.sessionStore = FileSessionStore(directory: directory)
    let client = MQTTClient(url, configuration: configuration)

    // 2. The subscription is declared before the client connects: a resumed session delivers at once.
    let jobs = client.subscription(to: "jobs/+", acknowledgement: .manual)
    try await client.withConnection { client in
        for try await job in jobs {
            // A cancelled reader is still given what has arrived; left unanswered, it stays with the server.
            if Task.isCancelled { break }
            // The inner task is not cancelled with the worker: the job in hand is finished.
            try await Task {
                let answer = try await handle(job)
                // 3. The answer is in the store before the job is acknowledged.
                let message = MQTTOutgoingMessage(answer, to: "done/\(job.captures[0])", qos: .exactlyOnce)
                try await client.enqueue(message)
                // 4. Only now does the server forget the job.
                job.acknowledge()
            }.value
        }
    }
}
