public import MQTT
import Metrics
public import STOMP

/// Counts and times messages under the names of OpenTelemetry's conventions for messaging.
private struct MessageMetrics: Sendable {
    let system: String

    func sent(_ operation: String, _ error: String?, after duration: Duration) {
        var dimensions = [("messaging.system", system), ("messaging.operation.name", operation)]
        if let error { dimensions.append(("error.type", error)) }
        Counter(label: "messaging.client.sent.messages", dimensions: dimensions).increment()
        Timer(label: "messaging.client.operation.duration", dimensions: dimensions)
            .recordNanoseconds(Int64(duration / .nanoseconds(1)))
    }

    func received() {
        let dimensions = [("messaging.system", system), ("messaging.operation.name", "receive")]
        Counter(label: "messaging.client.consumed.messages", dimensions: dimensions).increment()
    }
}

extension MQTTMessageHook {
    /// Counts the messages that are sent and received, and times the calls that send them.
    public static var metrics: MQTTMessageHook {
        let metrics = MessageMetrics(system: "mqtt")
        return MQTTMessageHook { _ in
            let start = ContinuousClock.now
            return { outcome in
                var error: String?
                if case .failure(let failure) = outcome { error = "\(failure.code)" }
                metrics.sent("publish", error, after: ContinuousClock.now - start)
            }
        } receiving: { _ in
            metrics.received()
        }
    }
}

extension STOMPMessageHook {
    /// Counts the messages that are sent and received, and times the calls that send them.
    public static var metrics: STOMPMessageHook {
        let metrics = MessageMetrics(system: "stomp")
        return STOMPMessageHook { _ in
            let start = ContinuousClock.now
            return { outcome in
                var error: String?
                if case .failure(let failure) = outcome { error = "\(failure.code)" }
                metrics.sent("send", error, after: ContinuousClock.now - start)
            }
        } receiving: { _ in
            metrics.received()
        }
    }
}
