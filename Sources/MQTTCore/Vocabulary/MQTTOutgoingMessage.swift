import MessagingWire

/// A message to publish.
///
/// The calls that take a message name its parts in the same order as those that take a payload:
/// `publish("21.5", to: "house/kitchen")` publishes `MQTTOutgoingMessage("21.5", to: "house/kitchen", qos: .atMostOnce)`.
public struct MQTTOutgoingMessage: Sendable, Equatable {
    /// The topic name: 1 to 65,535 bytes of UTF-8 without wildcards.
    public var topic: String
    /// The payload.
    public var payload: [UInt8]
    /// The quality of service. Default: 1.
    public var qos: QoS
    /// Whether the server keeps the message for later subscribers; an empty payload makes it forget the one it has.
    /// Default: false.
    public var retain: Bool
    /// 5.0 only, except for the Message Expiry Interval, which counts with every version while the message waits in the
    /// client. Before 5.0, a publish with any other property throws `invalidRequest`.
    public var properties: MQTTProperties
    /// For how long the message may wait to be sent; after that it is not sent, and fails with `expired`. Rounded up to whole
    /// seconds, since it is the Message Expiry Interval of ``properties``, which a server of MQTT 5.0 continues to count down.
    /// Default: nil, for ever.
    public var timeToLive: Duration? {
        get { properties.messageExpiryInterval.map { .seconds(Int64($0)) } }
        set { properties.messageExpiryInterval = newValue.map { UInt32(clamping: $0.inSecondsRoundedUp) } }
    }
    /// Whether Content Type or Payload Format Indicator come from the format of a value. A client leaves out both where
    /// the version has no properties; those that a caller sets are refused there.
    package var declaresFormat = false

    /// Makes a message of any sequence of bytes, such as an array or `Data`.
    public init(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = Array(payload)
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }

    /// Makes a message of text in UTF-8.
    public init(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.init(Array(text.utf8), to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Whether both have the same topic, payload, QoS, retain flag and properties; topics are compared by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.topic.hasSameBytes(as: other.topic) && one.payload == other.payload && one.qos == other.qos
            && one.retain == other.retain && one.properties == other.properties
    }
}

extension MQTTOutgoingMessage: CustomStringConvertible {
    /// Topic, flags and the beginning of the payload.
    public var description: String {
        "MQTTOutgoingMessage(\(OneLine.text(topic)), \(qos)\(retain ? ", retained" : ""), "
            + "\(OneLine.payload(payload[...])))"
    }
}
