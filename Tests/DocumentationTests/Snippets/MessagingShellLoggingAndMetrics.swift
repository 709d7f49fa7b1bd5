// The code of Sources/MessagingShell/MessagingShell.docc/LoggingAndMetrics.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT

func logEvents(of client: MQTTClient, to write: @Sendable (_ isProblem: Bool, _ line: String) -> Void) async {
    for await event in client.events {
        switch event {
        case .attemptFailed, .subscriptionLost, .undelivered, .sessionLost, .unsentMessagesDiscarded:
            write(true, "\(event)")
        default:
            write(false, "\(event)")
        }
    }
}

#if canImport(Logging)
    import Logging
    import MQTT

    func log(_ client: MQTTClient, with logger: Logger) async {
        await logEvents(of: client) { isProblem, line in
            logger.log(level: isProblem ? .warning : .debug, "\(line)", metadata: ["client": "\(client.clientID)"])
        }
    }
#endif

#if canImport(SwiftUI)
    import MQTT
    import os

    func log(_ client: MQTTClient, with logger: Logger) async {
        // Secrets are masked in events already, so that they may be public.
        await logEvents(of: client) { isProblem, line in
            if isProblem {
                logger.error("\(line, privacy: .public)")
            } else {
                logger.debug("\(line, privacy: .public)")
            }
        }
    }
#endif

func reportTraffic(client: MQTTClient, to report: (_ name: String, _ value: Int) -> Void) {
    let counters = client.counters
    report("mqtt_messages_sent_total", counters.messagesSent)
    report("mqtt_messages_received_total", counters.messagesReceived)
    report("mqtt_bytes_sent_total", counters.bytesSent)
    report("mqtt_bytes_received_total", counters.bytesReceived)
    report("mqtt_connections_total", counters.connections)
}

struct Span {
    var traceparent: String
    var end: @Sendable (_ hasSucceeded: Bool) -> Void
}

/// - Parameter begin: begins a span; nil for the context of the caller, otherwise of the `traceparent`.
func traced(begin: @escaping @Sendable (_ name: String, _ parent: String?) -> Span) -> MQTTMessageHook {
    MQTTMessageHook { message in
        let span = begin("publish \(message.topic)", nil)
        message.properties.userProperties.append(.init("traceparent", span.traceparent))
        return { outcome in
            if case .success = outcome { span.end(true) } else { span.end(false) }
        }
    } receiving: { message in
        begin("receive \(message.topic)", message.properties.userProperty("traceparent")).end(true)
    }
}

func publishTraced(client: MQTTClient, traceparent: String) async throws {
    try await client.publish(
        "21.5", to: "house/kitchen/temperature", qos: .atLeastOnce,
        properties: [.userProperty("traceparent", traceparent)])
}

func traceparent(of message: MQTTMessage) -> String? {
    message.properties.userProperty("traceparent")
}

#if canImport(ServiceLifecycle)
    import MQTT
    import ServiceLifecycle

    struct MQTTService: Service {
        let client: MQTTClient

        func run() async throws {
            try await cancelWhenGracefulShutdown { try await client.run() }
        }
    }
#endif
