import MQTTCore
import STOMPCore

// What one protocol says in a message, in the terms of the other.

extension Message {
    /// The message of a SEND. `persistent:true` asks for delivery at least once, which MQTT calls QoS 1.
    convenience init(destination: String, headers: STOMPHeaders, body: [UInt8], at now: Int64) {
        var topic = destination
        if let parsed = Destination(destination), parsed.kind == .topic { topic = TopicNaming.exchanged(parsed.name) }
        let isPersistent = headers["persistent"].map { $0.utf8.elementsEqual("true".utf8) } ?? false
        self.init(topic: topic, payload: body, qos: isPersistent ? .atLeastOnce : .atMostOnce, headers: headers)
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
