package import MQTTCore
package import STOMPCore

/// One application message on its way through the router, shared by all that receive it.
package final class Message: Sendable {
    /// The topic as MQTT names it, or the destination of a STOMP queue.
    package let topic: String
    package let payload: [UInt8]
    /// The quality of service that it was published with.
    package let qos: QoS
    /// Whether it was published to be retained.
    package let isRetained: Bool
    /// What 5.0 subscribers are given; without topic alias, subscription identifiers and expiry.
    package let properties: MQTTProperties
    /// The header lines of the SEND that it came in; empty for a message of MQTT.
    package let headers: STOMPHeaders
    /// When it is worth nothing any more, on the monotonic clock; `Int64.max` for never.
    package let expiry: Int64
    /// The session that published it; -1 for none.
    package let publisher: Int

    package init(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, isRetained: Bool = false,
        properties: MQTTProperties = [], headers: STOMPHeaders = [:], expiry: Int64 = .max,
        publisher: Int = -1
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.isRetained = isRetained
        self.properties = properties
        self.headers = headers
        self.expiry = expiry
        self.publisher = publisher
    }

    /// What it counts against the bounds on bytes.
    var size: Int { topic.utf8.count + payload.count }

    /// The seconds that are left of its life, rounded up; nil if it lives for ever.
    func remainingSeconds(at now: Int64) -> UInt32? {
        guard expiry != .max else { return nil }
        return UInt32(clamping: max(0, (expiry - now + 999_999_999) / 1_000_000_000))
    }
}
