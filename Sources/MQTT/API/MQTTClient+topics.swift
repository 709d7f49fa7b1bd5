public import MQTTCore
public import Messaging

extension MQTTClient {
    /// Publishes a value to a topic of its type.
    ///
    /// - Parameter properties: of PUBLISH; the content type is the topic's unless it is set here; 5.0 only.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be written, or the topic still
    ///   has wildcards.
    @discardableResult
    public nonisolated(nonsending) func publish<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload: [UInt8]
        do {
            payload = try topic.encode(value)
        } catch {
            throw MQTTError(
                .invalidRequest, "the \(Value.self) cannot be written for '\(topic.name)': \(error)",
                underlying: error)
        }
        var properties = properties
        if speaksProperties {
            if properties.contentType == nil, let type = topic.contentType { properties.contentType = type }
            if topic.isText, properties.payloadFormatIndicator == nil { properties.payloadFormatIndicator = true }
        }
        return try await publish(
            payload, to: topic.name, qos: topic.qos, retain: topic.retain, properties: properties)
    }

    /// Subscribes to a topic of some type and returns its messages with their values. What is no such value is an
    /// element too.
    ///
    /// - Parameter qos: the highest QoS that messages are delivered with. Default: 2.
    /// - Throws: as ``subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)``.
    public nonisolated(nonsending) func subscribe<Value>(
        to topic: MQTTTopic<Value>, qos: QoS = .exactlyOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<Value> {
        let subscription = try await subscribe(
            to: topic.filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
        return MQTTDecodedMessages(subscription: subscription, decode: topic.decode)
    }
}
