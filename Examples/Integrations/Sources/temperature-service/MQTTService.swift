import Logging
import MQTT
import Metrics
import ServiceLifecycle

/// Keeps a client connected for as long as its group runs, with its events in the log and its traffic in the metrics.
struct MQTTService: Service {
    let client: MQTTClient
    let logger: Logger

    func run() async throws {
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask { await logEvents() }
            group.addTask { await reportTraffic() }
            // Returns when the group shuts down, once the client has disconnected.
            try await cancelWhenGracefulShutdown { try await client.run() }
            group.cancelAll()
        }
    }

    private func logEvents() async {
        for await event in client.events {
            switch event {
            case .attemptFailed, .subscriptionLost, .undelivered, .sessionLost, .unsentMessagesDiscarded:
                logger.warning("\(event)", metadata: ["client": "\(client.clientID)"])
            case .pingAnswered(let duration):
                Gauge(label: "mqtt_ping_seconds").record(duration / .seconds(1))
            default:
                logger.debug("\(event)", metadata: ["client": "\(client.clientID)"])
            }
        }
    }

    private func reportTraffic() async {
        while !Task.isCancelled {
            let counters = client.counters
            for (label, count) in [
                ("mqtt_messages_sent_total", counters.messagesSent),
                ("mqtt_messages_received_total", counters.messagesReceived),
                ("mqtt_connections_total", counters.connections),
            ] { Gauge(label: label).record(count) }
            try? await Task.sleep(for: .seconds(10))
        }
    }
}
