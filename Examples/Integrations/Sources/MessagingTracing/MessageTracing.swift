public import MQTT
public import STOMP
public import Tracing

/// Where a message carries its context: user properties in MQTT 5.0.
private struct MQTTCarrier: Injector, Extractor {
    func inject(_ value: String, forKey key: String, into properties: inout MQTTProperties) {
        properties.userProperties = properties.userProperties.filter { $0.name != key } + [.init(key, value)]
    }

    func extract(key: String, from properties: MQTTProperties) -> String? { properties.userProperty(key) }
}

/// Where a message carries its context: headers in STOMP.
private struct STOMPCarrier: Injector, Extractor {
    func inject(_ value: String, forKey key: String, into headers: inout STOMPHeaders) { headers[key] = value }

    func extract(key: String, from headers: STOMPHeaders) -> String? { headers[key] }
}

/// Spans with the names and attributes of OpenTelemetry's conventions for messaging.
private struct MessageTracing: Sendable {
    let tracer: any Tracer
    let system: String

    /// The span of a message that is sent, a child of the caller's.
    func begin(_ operation: String, to destination: String, bodySize: Int) -> any Span {
        let span = tracer.startSpan(
            "\(operation) \(destination)", context: ServiceContext.current ?? .topLevel, ofKind: .producer)
        describe(span, operation, "send", destination, bodySize)
        return span
    }

    func end(_ span: any Span, _ failure: (any Error)?) {
        if let failure {
            span.recordError(failure)
            span.setStatus(SpanStatus(code: .error))
        }
        span.end()
    }

    /// The span of a message that is received, a child of the sender's. It is linked with the span of the receiver.
    func received(_ parent: ServiceContext, from destination: String, bodySize: Int) {
        let span = tracer.startSpan("receive \(destination)", context: parent, ofKind: .consumer)
        describe(span, "receive", "receive", destination, bodySize)
        if let receiver = ServiceContext.current { span.addLink(SpanLink(context: receiver, attributes: [:])) }
        span.end()
    }

    private func describe(
        _ span: any Span, _ operation: String, _ type: String, _ destination: String, _ bodySize: Int
    ) {
        span.updateAttributes { attributes in
            attributes["messaging.system"] = system
            attributes["messaging.operation.name"] = operation
            attributes["messaging.operation.type"] = type
            attributes["messaging.destination.name"] = destination
            attributes["messaging.message.body.size"] = bodySize
        }
    }
}

extension MQTTMessageHook {
    /// A span for each message that is sent and received. The context travels in user properties (5.0).
    ///
    /// - Parameter tracer: Default: that of the process.
    public static func tracing(_ tracer: any Tracer = InstrumentationSystem.tracer) -> MQTTMessageHook {
        let tracing = MessageTracing(tracer: tracer, system: "mqtt")
        return MQTTMessageHook { message in
            let span = tracing.begin("publish", to: message.topic, bodySize: message.payload.count)
            tracer.inject(span.context, into: &message.properties, using: MQTTCarrier())
            return { outcome in
                if case .failure(let error) = outcome { tracing.end(span, error) } else { tracing.end(span, nil) }
            }
        } receiving: { message in
            var parent = ServiceContext.topLevel
            tracer.extract(message.properties, into: &parent, using: MQTTCarrier())
            tracing.received(parent, from: message.topic, bodySize: message.payload.count)
        }
    }
}

extension STOMPMessageHook {
    /// A span for each message that is sent and received. The context travels in headers.
    ///
    /// - Parameter tracer: Default: that of the process.
    public static func tracing(_ tracer: any Tracer = InstrumentationSystem.tracer) -> STOMPMessageHook {
        let tracing = MessageTracing(tracer: tracer, system: "stomp")
        return STOMPMessageHook { message in
            let span = tracing.begin("send", to: message.destination, bodySize: message.body.count)
            tracer.inject(span.context, into: &message.options.headers, using: STOMPCarrier())
            return { outcome in
                if case .failure(let error) = outcome { tracing.end(span, error) } else { tracing.end(span, nil) }
            }
        } receiving: { message in
            var parent = ServiceContext.topLevel
            tracer.extract(message.headers, into: &parent, using: STOMPCarrier())
            tracing.received(parent, from: message.destination, bodySize: message.body.count)
        }
    }
}
