import InMemoryTracing
import Logging
import LoopbackBroker
import MQTT
import MessagingLogging
import MessagingMetrics
import MessagingServices
import MessagingTracing
import Metrics
import MetricsTestKit
import STOMP
import ServiceLifecycle
import Synchronization
import Testing
import Tracing

/// The metrics of the process, which may be chosen once.
private let metrics: TestMetrics = {
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    return metrics
}()

@Suite(.serialized) struct IntegrationsTests {
    /// A client of a broker, whose message passes a hook on its way out and in.
    private func mqttRoundTrip(_ hook: MQTTMessageHook) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        configuration.messageHook = hook
        try await MQTTClient(broker.mqttURL, configuration: configuration).withConnection { client in
            let messages = try await client.subscribe(to: "house/+")
            try await client.publish("21.5", to: "house/kitchen", qos: .atLeastOnce)
            for try await _ in messages { break }
        }
        await broker.stop()
    }

    private func stompRoundTrip(_ hook: STOMPMessageHook) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = STOMPConfiguration()
        configuration.messageHook = hook
        try await STOMPClient(broker.stompURL, configuration: configuration).withConnection { client in
            let messages = try await client.subscribe(to: "/queue/orders")
            try await client.sendAndConfirm("pizza", to: "/queue/orders")
            for try await _ in messages { break }
        }
        await broker.stop()
    }

    @Test(arguments: [false, true]) func `a span's parent crosses from the sender to the receiver`(isSTOMP: Bool)
        async throws
    {
        let tracer = InMemoryTracer()
        try await tracer.withSpan("order") { _ in
            if isSTOMP { try await stompRoundTrip(.tracing(tracer)) } else { try await mqttRoundTrip(.tracing(tracer)) }
        }
        let spans = tracer.finishedSpans
        let names =
            isSTOMP
            ? ["send /queue/orders", "receive /queue/orders"] : ["publish house/kitchen", "receive house/kitchen"]
        let root = try #require(spans.first { $0.operationName == "order" })
        let sent = try #require(spans.first { $0.operationName == names[0] })
        let received = try #require(spans.first { $0.operationName == names[1] })
        #expect(sent.parentSpanID == root.spanID && sent.kind == .producer)
        #expect(received.parentSpanID == sent.spanID && received.kind == .consumer)
        #expect(received.links.count == 1)
        #expect(sent.attributes.get("messaging.system") == .string(isSTOMP ? "stomp" : "mqtt"))
        #expect(tracer.activeSpans.isEmpty)
    }

    @Test func `messages are counted and timed`() async throws {
        metrics.reset()
        try await mqttRoundTrip(.metrics)
        try await stompRoundTrip(.metrics)
        for (system, operation) in [("mqtt", "publish"), ("stomp", "send")] {
            let sent = [("messaging.system", system), ("messaging.operation.name", operation)]
            #expect(try metrics.expectCounter("messaging.client.sent.messages", sent).totalValue == 1)
            #expect(try metrics.expectTimer("messaging.client.operation.duration", sent).values.count == 1)
            let received = [("messaging.system", system), ("messaging.operation.name", "receive")]
            #expect(try metrics.expectCounter("messaging.client.consumed.messages", received).totalValue == 1)
        }
    }

    @Test func `events are logged, lost connections as warnings`() async throws {
        let log = LogLines()
        let logger = Logger(label: "test") { _ in log }
        let broker = try await LoopbackBroker.start()
        let client = MQTTClient(try broker.mqttURL, clientID: "meter")
        let logging = Task { await client.logEvents(to: logger) }
        // The events begin with the reader.
        try await client.connect()
        await broker.stop()
        while !log.lines.contains(where: { $0.hasPrefix("warning") }) { await Task.yield() }
        logging.cancel()
        await client.disconnect()
    }

    @Test func `a service disconnects its client when the group shuts down`() async throws {
        let broker = try await LoopbackBroker.start()
        let client = MQTTClient(try broker.mqttURL, clientID: "worker")
        let group = ServiceGroup(services: [ClientService(client)], logger: Logger(label: "test"))
        let running = Task { try await group.run() }
        for await state in client.states where state.isConnected { break }
        await group.triggerGracefulShutdown()
        try await running.value
        #expect(!client.state.isConnected)
        await broker.stop()
    }
}

/// Keeps what is logged.
private final class LogLines: LogHandler {
    private let kept = Mutex<[String]>([])
    var lines: [String] { kept.withLock { $0 } }
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }

    func log(
        level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata?, source: String, file: String,
        function: String, line: UInt
    ) {
        kept.withLock { $0.append("\(level) \(message)") }
    }
}
