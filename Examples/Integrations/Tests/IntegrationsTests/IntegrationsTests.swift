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
import Testing
import Tracing

/// The metrics of the process, which may be chosen once.
private let metrics: TestMetrics = {
    let metrics = TestMetrics()
    MetricsSystem.bootstrap(metrics)
    return metrics
}()

@Suite(.serialized) struct IntegrationsTests {
    /// A message that passes a hook of its sender and one of its receiver, which are two clients.
    private func mqttRoundTrip(_ hook: MQTTMessageHook) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        configuration.messageHook = hook
        let sender = MQTTClient(try broker.mqttURL, configuration: configuration)
        try await MQTTClient(broker.mqttURL, configuration: configuration).withConnection { receiver in
            let messages = try await receiver.subscribe(to: "house/+")
            try await sender.withConnection { try await $0.publish("21.5", to: "house/kitchen", qos: .atLeastOnce) }
            for try await _ in messages { break }
        }
        // Without a connection.
        await #expect(throws: MQTTError.self) { try await sender.publish("lost", to: "lost", qos: .atLeastOnce) }
        await broker.stop()
    }

    private func stompRoundTrip(_ hook: STOMPMessageHook) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = STOMPConfiguration()
        configuration.messageHook = hook
        let sender = STOMPClient(try broker.stompURL, configuration: configuration)
        try await STOMPClient(broker.stompURL, configuration: configuration).withConnection { receiver in
            let messages = try await receiver.subscribe(to: "/queue/orders")
            try await sender.withConnection { try await $0.sendAndConfirm("pizza", to: "/queue/orders") }
            for try await _ in messages { break }
        }
        await #expect(throws: STOMPError.self) { try await sender.sendAndConfirm("lost", to: "lost") }
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
        func span(_ name: String) throws -> FinishedInMemorySpan {
            try #require(spans.first { $0.operationName == name })
        }
        let root = try span("order")
        let sent = try span(isSTOMP ? "send /queue/orders" : "publish house/kitchen")
        #expect(sent.parentSpanID == root.spanID && sent.kind == .producer && sent.errors.isEmpty)
        #expect(sent.attributes.get("messaging.system") == .string(isSTOMP ? "stomp" : "mqtt"))
        #expect(sent.attributes.get("messaging.operation.type") == .string("send"))
        let received = try span(isSTOMP ? "receive /queue/orders" : "receive house/kitchen")
        #expect(received.parentSpanID == sent.spanID && received.traceID == root.traceID)
        #expect(received.kind == .consumer)
        #expect(received.links.map(\.context.inMemorySpanContext?.spanID) == [root.spanID])
        let destination = isSTOMP ? "/queue/orders" : "house/kitchen"
        #expect(received.attributes.get("messaging.destination.name") == .string(destination))
        let lost = try span(isSTOMP ? "send lost" : "publish lost")
        #expect(lost.errors.count == 1 && lost.status?.code == .error)
        #expect(spans.count == 4 && tracer.activeSpans.isEmpty)
    }

    @Test func `messages are counted and timed`() async throws {
        metrics.reset()
        try await mqttRoundTrip(.metrics)
        try await stompRoundTrip(.metrics)
        for (system, operation) in [("mqtt", "publish"), ("stomp", "send")] {
            let sent = [("messaging.system", system), ("messaging.operation.name", operation)]
            for dimensions in [sent, sent + [("error.type", "notConnected")]] {
                #expect(try metrics.expectCounter("messaging.client.sent.messages", dimensions).totalValue == 1)
                #expect(try metrics.expectTimer("messaging.client.operation.duration", dimensions).values.count == 1)
            }
            let received = [("messaging.system", system), ("messaging.operation.name", "receive")]
            #expect(try metrics.expectCounter("messaging.client.consumed.messages", received).totalValue == 1)
        }
    }

    @Test(arguments: [false, true]) func `events are logged, lost connections as warnings`(isSTOMP: Bool) async throws {
        let (lines, continuation) = AsyncStream.makeStream(of: LogEvent.self)
        let logger = Logger(label: "test") { _ in LogStream(continuation) }
        let broker = try await LoopbackBroker.start()
        if isSTOMP {
            var configuration = STOMPConfiguration()
            configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), spread: .zero)
            let client = STOMPClient(try broker.stompURL, configuration: configuration)
            try await expectReconnect(of: client, lines, broker) { await client.logEvents(to: logger) }
        } else {
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), spread: .zero)
            let client = MQTTClient(try broker.mqttURL, configuration: configuration)
            try await expectReconnect(of: client, lines, broker) { await client.logEvents(to: logger) }
        }
        await broker.stop()
    }

    /// Loses the connection until the log, which begins some time, has a loss and then a connection.
    private func expectReconnect(
        of client: some MessagingClient, _ lines: AsyncStream<LogEvent>, _ broker: LoopbackBroker,
        logEvents: @escaping @Sendable () async -> Void
    ) async throws {
        let logging = Task { await logEvents() }
        await client.start()
        for await state in client.states where state.isConnected { break }
        let cutting = Task {
            for await state in client.states where state.isConnected { await broker.dropAllConnections() }
        }
        var hasLost = false
        for await line in lines {
            let text = line.message.description
            if text.hasPrefix("connectionLost") {
                #expect(line.level == .warning)
                #expect(!(client is MQTTClient) || line.metadata == ["client": "meter"])
                hasLost = true
            }
            if text.hasPrefix("connected") {
                #expect(line.level == .debug)
                if hasLost { break }
            }
        }
        cutting.cancel()
        logging.cancel()
        await client.disconnect()
    }

    @Test func `services of both clients disconnect gracefully when their group shuts down`() async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration(clientID: "worker")
        configuration.will = MQTTWill(Array("died".utf8), to: "status")
        let mqtt = MQTTClient(try broker.mqttURL, configuration: configuration)
        let stomp = STOMPClient(try broker.stompURL)
        let watcher = MQTTClient(try broker.mqttURL, clientID: "watcher")
        try await watcher.connect()
        let statuses = try await watcher.subscribe(to: "status")
        let group = ServiceGroup(
            services: [ClientService(mqtt), ClientService(stomp)], logger: Logger(label: "test"))
        let running = Task { try await group.run() }
        for await state in mqtt.states where state.isConnected { break }
        for await state in stomp.states where state.isConnected { break }
        await group.triggerGracefulShutdown()
        try await running.value
        try #require(!mqtt.state.isConnected && !stomp.state.isConnected)
        while broker.clients != ["watcher"] { await Task.yield() }
        // The will would have come first.
        try await watcher.publish("left", to: "status", qos: .atLeastOnce)
        for try await status in statuses {
            #expect(status.text == "left")
            break
        }
        await watcher.disconnect()
        await broker.stop()
    }

    @Test func `a client that is refused ends its group with the reason`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "worker", password: "secret")]
        let broker = try await LoopbackBroker.start(options)
        for service in [
            ClientService(MQTTClient(try broker.mqttURL)), ClientService(STOMPClient(try broker.stompURL)),
        ] as [any Service] {
            let group = ServiceGroup(services: [service], logger: Logger(label: "test"))
            let error = await #expect(throws: (any Error).self) { try await group.run() }
            let isRefused =
                (error as? MQTTError)?.code == .badCredentials || (error as? STOMPError)?.code == .badCredentials
            #expect(isRefused, "\(String(describing: error))")
        }
        await broker.stop()
    }
}

/// Sends what is logged to the test.
private struct LogStream: LogHandler {
    let continuation: AsyncStream<LogEvent>.Continuation
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(_ continuation: AsyncStream<LogEvent>.Continuation) { self.continuation = continuation }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { continuation.yield(event) }
}
