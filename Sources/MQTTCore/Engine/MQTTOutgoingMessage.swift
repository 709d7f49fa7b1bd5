import Wire

/// A message to publish.
public struct MQTTOutgoingMessage: Sendable {
    /// The topic name: 1 to 65,535 bytes of UTF-8 without wildcards.
    public var topic: String
    /// The payload.
    public var payload: [UInt8]
    /// The quality of service. Default: 0.
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers; an empty payload makes it forget the one it has.
    public var retain: Bool
    /// Sent with MQTT 5.0 only.
    public var properties: MQTTProperties

    /// Makes a message.
    public init(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }

    /// Makes a message of any sequence of bytes, such as `Data`.
    public init(
        topic: String, payload: some Sequence<UInt8>, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) {
        self.init(topic: topic, payload: Array(payload), qos: qos, retain: retain, properties: properties)
    }

    /// Makes a message of text in UTF-8.
    public init(
        topic: String, payload: String, qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.init(topic: topic, payload: Array(payload.utf8), qos: qos, retain: retain, properties: properties)
    }
}

extension MQTTOutgoingMessage: CustomStringConvertible {
    /// Topic, flags and the beginning of the payload.
    public var description: String {
        "MQTTOutgoingMessage(\(OneLine.text(topic)), \(qos)\(retain ? ", retained" : ""), "
            + "\(OneLine.payload(payload[...])))"
    }
}
