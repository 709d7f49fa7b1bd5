public import MQTTCore
public import MessagingShell

extension MQTTWill {
    /// Makes a will whose payload is a value in a format; its MIME type is the content type, unless `properties` have
    /// another (5.0 only).
    ///
    /// - Parameters:
    ///   - value: what the server publishes.
    ///   - coding: the format of the payload. Default: JSON.
    ///   - topic: the topic that the server publishes to.
    ///   - qos: the QoS that the server publishes with. Default: 0.
    ///   - retain: whether the server keeps the message for later subscribers. Default: false.
    ///   - delay: how long the server waits for the client to come back before it publishes the will; 5.0 only.
    ///   - properties: the other properties; 5.0 only.
    /// - Throws: ``MQTTError/Code/invalidRequest`` if the value cannot be encoded.
    @_disfavoredOverload
    public init(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to topic: String,
        qos: QoS = .atMostOnce, retain: Bool = false, delay: Duration? = nil,
        properties: MQTTProperties = []
    ) throws(MQTTError) {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        self.init(
            payload, to: topic, qos: qos, retain: retain, delay: delay,
            properties: properties.declaring(coding.contentType))
    }

    /// Makes a will whose payload is a value of a topic, with the topic's format, QoS and retain flag.
    ///
    /// - Parameters:
    ///   - value: what the server publishes.
    ///   - topic: a topic without wildcards; see ``MQTTTopic/at(_:)``.
    ///   - delay: how long the server waits for the client to come back before it publishes the will; 5.0 only.
    /// - Throws: ``MQTTError/Code/invalidRequest`` if the value cannot be encoded, or if the topic has wildcards.
    public init<Value>(_ value: Value, to topic: MQTTTopic<Value>, delay: Duration? = nil) throws(MQTTError) {
        let name = try topic.nameWithoutWildcards()
        let payload = try topic.format.payload(of: value, for: name, throwing: MQTTError.self)
        let properties: MQTTProperties = topic.contentType.map { [.contentType($0)] } ?? []
        self.init(
            payload, to: name, qos: topic.qos, retain: topic.retain, delay: delay,
            properties: properties)
    }
}
