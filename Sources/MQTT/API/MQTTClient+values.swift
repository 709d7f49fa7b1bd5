public import MQTTCore
public import Messaging

extension MQTTClient {
    /// Publishes a value in a format; with 5.0 its MIME type is the content type, unless `properties` have another.
    /// Otherwise as ``publish(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be encoded.
    @discardableResult
    public nonisolated(nonsending) func publish<Value: Encodable & Sendable>(
        _ value: Value, as coding: some PayloadCoding, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        var properties = properties
        if speaksProperties, properties.contentType == nil { properties.contentType = coding.contentType }
        return try await publish(payload, to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Publishes a value to a topic of its type.
    ///
    /// - Parameters:
    ///   - value: what is published.
    ///   - topic: a topic without wildcards.
    ///   - properties: of PUBLISH; the content type is the topic's unless it is set here; 5.0 only.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be encoded, or the topic still
    ///   has wildcards.
    @discardableResult
    public nonisolated(nonsending) func publish<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload = try topic.format.payload(of: value, for: topic.name, throwing: MQTTError.self)
        var properties = properties
        if speaksProperties {
            if properties.contentType == nil, let type = topic.contentType { properties.contentType = type }
            if topic.format.isText, properties.payloadFormatIndicator == nil {
                properties.payloadFormatIndicator = true
            }
        }
        return try await publish(
            payload, to: topic.name, qos: topic.qos, retain: topic.retain, properties: properties)
    }

    /// Subscribes to a topic and returns its messages with their values. A payload that is not such a value is an
    /// element too.
    ///
    /// The highest QoS that messages are delivered with is 2 by default, not the QoS of the topic.
    /// - Throws: as ``subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)``.
    public nonisolated(nonsending) func subscribe<Value>(
        to topic: MQTTTopic<Value>, qos: QoS = .exactlyOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<Value> {
        let subscription = try await subscribe(
            to: topic.filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
        return DecodedMessages(subscription) { [format = topic.format] in
            format.value(in: $0.payload, mediaType: $0.mediaType)
        }
    }
}
