/// The message that the server publishes for a client that vanishes.
public struct MQTTWill: Sendable, Hashable {
    public var topic: String
    public var payload: [UInt8]
    public var qos: QoS
    public var retain: Bool
    /// Will Delay Interval, Payload Format Indicator, Message Expiry Interval, Content Type, Response Topic,
    /// Correlation Data and user properties; 5.0 only.
    public var properties: MQTTProperties

    public init(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}
