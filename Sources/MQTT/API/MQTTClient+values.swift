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
        let properties = speaksProperties ? properties.declaring(coding.contentType) : properties
        return try await publish(payload, to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Publishes a value as a request and returns the first response to it, with the value in it; 5.0 only. Otherwise as
    /// ``request(_:to:qos:timeout:properties:)-([UInt8],_,_,_,_)``.
    ///
    ///     let price = try await client.request(order, as: .json, to: "prices", returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - coding: the format of the request and of the response.
    ///   - topic: the topic that the request is published to.
    ///   - type: the type of the value in the response.
    ///   - qos: the QoS of the request. Default: 1.
    ///   - timeout: from the call to the response. Default: 10 seconds.
    ///   - properties: response topic and correlation data are set here, and the content type unless it is set.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be encoded. A response that is not
    ///   such a value is returned: reading its value throws ``DecodeFailure``.
    public nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to topic: String,
        returning type: Answer.Type = Answer.self, qos: QoS = .atLeastOnce, timeout: Duration = .seconds(10),
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessage<Answer> {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        let answer = try await request(
            payload, to: topic, qos: qos, timeout: timeout, properties: properties.declaring(coding.contentType))
        let result = coding.value(of: type, from: answer.payload, mediaType: answer.mediaType)
        return DecodedMessage(message: answer, result: result)
    }

    /// Publishes a value as the response to a request; its MIME type is the content type, unless `properties` have
    /// another.
    ///
    /// - Throws: as ``reply(to:with:qos:properties:)-(_,[UInt8],_,_)``; ``MQTTError/Code/invalidRequest`` also if the value
    ///   cannot be encoded.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with value: some Encodable & Sendable, as coding: some PayloadCoding,
        qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        let properties = properties.declaring(coding.contentType)
        return try await reply(to: request, with: payload, qos: qos, properties: properties)
    }

    /// Subscribes and returns the messages with their values.
    ///
    ///     let alerts = try await client.subscribe(to: "house/+/alert", as: Alert.self)
    ///     for try await alert in alerts { print(alert.topic, try alert.value) }
    ///
    /// A payload that is not such a value is an element too: reading its `value` throws ``DecodeFailure``, and the messages
    /// after it follow.
    /// - Parameters:
    ///   - filter: a topic filter.
    ///   - type: the type of the values; for text see
    ///     ``subscribe(to:as:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)``.
    ///   - coding: the format of the payloads. Default: JSON.
    ///   - qos: the highest QoS that messages are delivered with. Default: 2.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    ///   - acknowledgement: whether the client or the receiver acknowledges QoS 1 and 2. Default: the client.
    ///   - noLocal: whether the server sends no messages of this client; 5.0 only. Default: false.
    ///   - retainAsPublished: whether messages keep their RETAIN flag; 5.0 only. Default: false.
    ///   - retainHandling: whether the server sends retained messages; 5.0 only. Default: at every subscribe.
    ///   - properties: user properties of SUBSCRIBE; 5.0 only.
    /// - Throws: ``MQTTError`` as `subscribe` without a type does.
    public nonisolated(nonsending) func subscribe<Value: Decodable & Sendable>(
        to filter: String, as type: Value.Type, coding: some PayloadCoding = .json, qos: QoS = .exactlyOnce,
        buffer: BufferPolicy = BufferPolicy(), acknowledgement: MQTTAcknowledgement = .automatic,
        noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<Value> {
        try await subscribe(
            to: filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties
        ).values(type, as: coding)
    }

    /// Subscribes and returns the messages with their texts: `subscribe(to: "house/+/door", as: String.self)`. A payload
    /// that is not UTF-8 is an element whose `value` throws.
    public nonisolated(nonsending) func subscribe(
        to filter: String, as text: String.Type, qos: QoS = .exactlyOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<String> {
        try await subscribe(
            to: MQTTTopic.text(filter), qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
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
