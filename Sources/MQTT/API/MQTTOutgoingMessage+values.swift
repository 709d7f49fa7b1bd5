public import MQTTCore
public import MessagingShell

extension MQTTOutgoingMessage {
    /// Makes a message of a value in a format; with 5.0 its MIME type is the content type, unless `properties` have another.
    ///
    /// - Parameters:
    ///   - value: the value in the payload.
    ///   - coding: the format of the payload. Default: JSON.
    ///   - topic: the topic that is published to.
    ///   - qos: the quality of service. Default: 1.
    ///   - retain: whether the server keeps the message for later subscribers. Default: false.
    ///   - properties: of PUBLISH; 5.0 only.
    /// - Throws: ``MQTTError/Code/invalidRequest`` if the value cannot be encoded.
    @_disfavoredOverload
    public init(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to topic: String,
        qos: QoS = .atLeastOnce, retain: Bool = false, properties: MQTTProperties = []
    ) throws(MQTTError) {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        self.init(payload, to: topic, qos: qos, retain: retain, properties: properties)
        declare(coding.contentType, isText: false)
    }

    /// Makes a message of a value for a topic of its type, with the topic's format, QoS and retain flag.
    ///
    ///     try await client.enqueue(MQTTOutgoingMessage(reading, to: .readings.at("kitchen", "lamp")))
    ///
    /// - Parameters:
    ///   - value: the value in the payload.
    ///   - topic: a topic without wildcards; see ``MQTTTopic/at(_:)``.
    ///   - properties: with 5.0 the content type is the topic's unless it is set here.
    /// - Throws: ``MQTTError/Code/invalidRequest`` if the value cannot be encoded, or if the topic has wildcards.
    public init<Value>(_ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []) throws(MQTTError) {
        let name = try topic.nameWithoutWildcards()
        let payload = try topic.format.payload(of: value, for: name, throwing: MQTTError.self)
        self.init(payload, to: name, qos: topic.qos, retain: topic.retain, properties: properties)
        declare(topic.contentType, isText: topic.format.isText)
    }

    /// Sets Content Type and Payload Format Indicator unless the caller has.
    private mutating func declare(_ contentType: String?, isText: Bool) {
        if let contentType, properties.contentType == nil {
            properties.contentType = contentType
            declaresFormat = true
        }
        if isText, properties.payloadFormatIndicator == nil {
            properties.payloadFormatIndicator = true
            declaresFormat = true
        }
    }

    /// The same message without Content Type and Payload Format Indicator, for versions without properties.
    var withoutFormat: MQTTOutgoingMessage {
        var message = self
        message.properties.contentType = nil
        message.properties.payloadFormatIndicator = nil
        message.declaresFormat = false
        return message
    }
}
