package import MQTTCore
import MessagingWire
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
    /// When it expires, on the monotonic clock; `Int64.max` for never.
    package let expiry: Int64
    /// The session that published it; -1 for none.
    package let publisher: Int
    /// What it counts against the bounds on bytes: all of it.
    let size: Int

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
        size =
            topic.utf8.count + payload.count + properties.byteCount
            + headers.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 2 }
    }

    /// The same message in the dead-letter queue, where it does not expire.
    func moved(to queue: String) -> Message {
        Message(
            topic: queue, payload: payload, qos: qos, isRetained: isRetained, properties: properties, headers: headers,
            publisher: publisher)
    }

    /// The seconds that are left of its life, rounded up; nil if it lives for ever.
    func remainingSeconds(at now: Int64) -> UInt32? {
        guard expiry != .max else { return nil }
        return UInt32(clamping: max(0, (expiry - now + 999_999_999) / 1_000_000_000))
    }
}

// What one protocol says in a message, in the terms of the other.

extension Message {
    /// The message of a SEND. `persistent:true` asks for delivery at least once, which MQTT calls QoS 1.
    ///
    /// - Parameters:
    ///   - now: on the monotonic clock.
    ///   - timeOfDay: the same moment in milliseconds since 1970.
    convenience init(destination: String, headers: STOMPHeaders, body: [UInt8], at now: Int64, timeOfDay: Int64) {
        var topic = destination
        if let parsed = Destination(destination), parsed.kind == .topic { topic = TopicNaming.exchanged(parsed.name) }
        let isPersistent = headers["persistent"].map { $0.utf8.elementsEqual("true".utf8) } ?? false
        self.init(
            topic: topic, payload: body, qos: isPersistent ? .atLeastOnce : .atMostOnce, headers: headers,
            expiry: Self.expiry(headers, at: now, timeOfDay: timeOfDay))
    }

    /// When a SEND says that the message expires: at a time of day in milliseconds (`expires`, as ActiveMQ has it, where 0 is
    /// never), or after so many (`expiration`, as RabbitMQ has it). Of both the earlier counts.
    private static func expiry(_ headers: STOMPHeaders, at now: Int64, timeOfDay: Int64) -> Int64 {
        func moment(afterMilliseconds left: Int64) -> Int64 {
            let (nanoseconds, overflow) = left.multipliedReportingOverflow(by: 1_000_000)
            return left <= 0 ? now : overflow ? .max : now.advanced(byNanoseconds: nanoseconds)
        }
        var expiry = Int64.max
        if let text = headers["expires"], let time = Int64(text), time > 0 {
            expiry = moment(afterMilliseconds: time - timeOfDay)
        }
        if let text = headers["expiration"], let time = Int64(text), time >= 0 {
            expiry = min(expiry, moment(afterMilliseconds: time))
        }
        return expiry
    }

    /// The properties for a client of 5.0: those of the publisher, or what a SEND said.
    var mqttProperties: MQTTProperties {
        guard properties.isEmpty, !headers.fields.isEmpty else { return properties }
        var result = MQTTProperties()
        for field in headers.fields {
            // MQTT allows no U+0000 in texts [MQTT-1.5.4-2].
            guard !Self.ownHeaders.contains(field.name), !field.value.utf8.contains(0), !field.name.utf8.contains(0)
            else { continue }
            if field.name == "content-type" {
                result.contentType = field.value
            } else {
                result.append(MQTTProperty(.userProperty, .pair(MQTTUserProperty(field.name, field.value))))
            }
        }
        return result
    }

    /// The headers for a client of STOMP: those of the SEND, or what a publisher of 5.0 said.
    var stompHeaders: STOMPHeaders {
        guard headers.fields.isEmpty, !properties.isEmpty else { return headers }
        var result = STOMPHeaders()
        if let type = properties.contentType { result.add("content-type", type) }
        if let topic = properties.responseTopic { result.add("reply-to", TopicNaming.destination(ofTopic: topic)) }
        for property in properties.userProperties where !property.name.isEmpty {
            guard !Self.ownHeaders.contains(property.name) else { continue }
            result.add(property.name, property.value)
        }
        return result
    }

    /// Headers that are about the frame and not about the message.
    private static let ownHeaders: Set<String> = [
        "destination", "content-length", "receipt", "transaction", "subscription", "message-id", "ack", "redelivered",
    ]
}

extension Message {
    /// A message that arrived, copied out of the bytes that it came in.
    convenience init(
        _ record: MQTTMessageRecord, topic: String, in bytes: RawSpan, publisher: Int, at now: Int64
    ) {
        let payload = bytes.bytes(in: record.payload)
        self.init(
            topic: topic, payload: payload, qos: record.flags.qos, isRetained: record.flags.isRetained,
            expiring: record.properties.isEmpty ? [] : record.decodeProperties(in: bytes), publisher: publisher,
            at: now)
    }
}

extension Message {
    /// The message that publishes a will.
    convenience init(_ will: MQTTWill, publisher: Int, at now: Int64) {
        var properties = will.properties
        properties.willDelayInterval = nil
        self.init(
            topic: will.topic, payload: will.payload, qos: will.qos, isRetained: will.retain, expiring: properties,
            publisher: publisher, at: now)
    }

    /// A message whose properties say when it expires; the expiry itself is taken out of them.
    package convenience init(
        topic: String, payload: [UInt8], qos: QoS, isRetained: Bool, expiring properties: MQTTProperties,
        publisher: Int = -1, at now: Int64
    ) {
        var properties = properties
        var expiry = Int64.max
        if !properties.isEmpty {
            if let seconds = properties.messageExpiryInterval {
                expiry = now.advanced(byNanoseconds: Int64(seconds) * 1_000_000_000)
            }
            properties.messageExpiryInterval = nil
            properties.topicAlias = nil
            properties.subscriptionIdentifiers = []
        }
        self.init(
            topic: topic, payload: payload, qos: qos, isRetained: isRetained, properties: properties, expiry: expiry,
            publisher: publisher)
    }
}
