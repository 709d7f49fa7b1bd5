public import MQTTCore
public import MessagingShell

extension MQTTClient {
    /// Publishes a value in a format; with 5.0 its MIME type is the content type, unless `properties` have another.
    ///
    ///     try await client.publish(reading, to: "house/kitchen", retain: true)
    ///
    /// - Parameters:
    ///   - value: what is published.
    ///   - coding: the format of the payload. Default: JSON.
    ///   - topic: the topic that is published to.
    ///   - qos: the quality of service. Default: 0.
    ///   - retain: whether the server keeps the message for later subscribers. Default: false.
    ///   - properties: of PUBLISH; 5.0 only.
    /// - Throws: as ``publish(_:)-(MQTTOutgoingMessage)``; ``MQTTError/Code/invalidRequest`` also if the value cannot be
    ///   encoded.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func publish(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to topic: String,
        qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let message = try MQTTOutgoingMessage(
            value, as: coding, to: topic, qos: qos, retain: retain, properties: properties)
        return try await publish(message).reasonCode
    }

    /// Publishes a value to a topic of its type.
    ///
    /// - Parameters:
    ///   - value: what is published.
    ///   - topic: a topic without wildcards; see ``MQTTTopic/at(_:)``. It has the QoS, and whether the server retains.
    ///   - properties: with 5.0 the content type is the topic's unless it is set here.
    /// - Throws: as ``publish(_:)-(MQTTOutgoingMessage)``; ``MQTTError/Code/invalidRequest`` also if the value cannot be
    ///   encoded, or if the topic has wildcards.
    @discardableResult
    public nonisolated(nonsending) func publish<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await publish(MQTTOutgoingMessage(value, to: topic, properties: properties)).reasonCode
    }

    /// Publishes a value as a request and returns the first response to it, with the value in it; 5.0 only.
    ///
    ///     let price = try await client.request(order, to: "prices", returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - coding: the format of the request and of the response. Default: JSON.
    ///   - topic: the topic that the request is published to.
    ///   - type: the type of the value in the response.
    ///   - qos: the QoS of the request. Default: 1.
    ///   - timeout: from the call to the response. Default: nil, the configuration's ``MQTTConfiguration/requestTimeout``.
    ///   - properties: response topic and correlation data are set here, and the content type unless it is set.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/timedOut`` without a response in time, ``MQTTError/Code/invalidRequest`` if
    ///   the value cannot be encoded. A response that is not such a value is returned: reading its value throws
    ///   ``DecodeFailure``.
    public nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to topic: String,
        returning type: Answer.Type = Answer.self, qos: QoS = .atLeastOnce, timeout: Duration? = nil,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessage<Answer> {
        let message = try MQTTOutgoingMessage(value, as: coding, to: topic, qos: qos, properties: properties)
        return try await request(message, returning: type, coding: coding, timeout: timeout)
    }

    /// Publishes a value to a topic of its type as a request and returns the first response to it, with the value in
    /// it; 5.0 only.
    ///
    ///     let price = try await client.request(order, to: .prices, returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - topic: a topic without wildcards; it has the format and the QoS of the request.
    ///   - type: the type of the value in the response.
    ///   - coding: the format of the response. Default: JSON.
    ///   - timeout: from the call to the response. Default: nil, the configuration's ``MQTTConfiguration/requestTimeout``.
    ///   - properties: response topic and correlation data are set here, and the content type unless it is set.
    /// - Throws: as ``publish(_:to:properties:)``; ``MQTTError/Code/timedOut`` without a response in time. A response that is
    ///   not such a value is returned: reading its value throws ``DecodeFailure``.
    public nonisolated(nonsending) func request<Value, Answer: Decodable & Sendable>(
        _ value: Value, to topic: MQTTTopic<Value>, returning type: Answer.Type = Answer.self,
        coding: some PayloadCoding = .json, timeout: Duration? = nil, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessage<Answer> {
        let message = try MQTTOutgoingMessage(value, to: topic, properties: properties)
        return try await request(message, returning: type, coding: coding, timeout: timeout)
    }

    private nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ message: MQTTOutgoingMessage, returning type: Answer.Type, coding: some PayloadCoding, timeout: Duration?
    ) async throws(MQTTError) -> MQTTDecodedMessage<Answer> {
        let answer = try await request(
            message.payload, to: message.topic, qos: message.qos, timeout: timeout, properties: message.properties)
        return DecodedMessage(
            message: answer, result: coding.value(of: type, from: answer.payload, mediaType: answer.mediaType))
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
    ///   - qos: the highest QoS that messages are delivered with. Where a server's Maximum QoS is lower, that is requested
    ///     instead. Default: 1.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    ///   - acknowledgement: whether the client or the receiver acknowledges QoS 1 and 2. Default: the client.
    ///   - noLocal: whether the server sends no messages of this client; 5.0 only. Default: false.
    ///   - retainAsPublished: whether messages keep their RETAIN flag; 5.0 only. Default: false.
    ///   - retainHandling: whether the server sends retained messages; 5.0 only. Default: at every subscribe.
    ///   - properties: user properties of SUBSCRIBE; 5.0 only.
    /// - Throws: ``MQTTError`` as `subscribe` without a type does.
    public nonisolated(nonsending) func subscribe<Value: Decodable & Sendable>(
        to filter: String, as type: Value.Type, coding: some PayloadCoding = .json, qos: QoS = .atLeastOnce,
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
        to filter: String, as text: String.Type, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<String> {
        try await subscribe(
            to: MQTTTopic.text(filter), qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
    }

    /// Declares a subscription and returns the messages with their values, without waiting for the server:
    /// `client.subscription(to: "jobs/#", as: Job.self, acknowledgement: .manual)` before ``connect()``.
    ///
    /// The parameters are those of `subscribe(to:as:)`; otherwise as
    /// ``subscription(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)-(String,_,_,_,_,_,_,_)``.
    public nonisolated func subscription<Value: Decodable & Sendable>(
        to filter: String, as type: Value.Type, coding: some PayloadCoding = .json, qos: QoS = .atLeastOnce,
        buffer: BufferPolicy = BufferPolicy(), acknowledgement: MQTTAcknowledgement = .automatic,
        noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) -> MQTTDecodedMessages<Value> {
        subscription(
            to: filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties
        ).values(type, as: coding)
    }

    /// Declares a subscription and returns the messages with their texts; otherwise as for other types.
    public nonisolated func subscription(
        to filter: String, as text: String.Type, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) -> MQTTDecodedMessages<String> {
        subscription(
            to: MQTTTopic.text(filter), qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
    }

    /// Subscribes to a topic and returns its messages with their values. A payload that is not such a value is an
    /// element too.
    ///
    /// The highest QoS that messages are delivered with is 1 by default, not the QoS of the topic.
    /// - Throws: as ``subscribe(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)-(String,_,_,_,_,_,_,_)``.
    public nonisolated(nonsending) func subscribe<Value>(
        to topic: MQTTTopic<Value>, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessages<Value> {
        let subscription = try await subscribe(
            to: topic.filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
        return values(of: subscription, topic)
    }

    /// Declares a subscription to a topic and returns its messages with their values, without waiting for the server;
    /// otherwise as ``subscription(to:qos:buffer:acknowledgement:noLocal:retainAsPublished:retainHandling:properties:)-(String,_,_,_,_,_,_,_)``.
    public nonisolated func subscription<Value>(
        to topic: MQTTTopic<Value>, qos: QoS = .atLeastOnce, buffer: BufferPolicy = BufferPolicy(),
        acknowledgement: MQTTAcknowledgement = .automatic, noLocal: Bool = false, retainAsPublished: Bool = false,
        retainHandling: MQTTSubscriptionRequest.RetainHandling = .sendAtSubscribe, properties: MQTTProperties = []
    ) -> MQTTDecodedMessages<Value> {
        let subscription = subscription(
            to: topic.filter, qos: qos, buffer: buffer, acknowledgement: acknowledgement, noLocal: noLocal,
            retainAsPublished: retainAsPublished, retainHandling: retainHandling, properties: properties)
        return values(of: subscription, topic)
    }

    private nonisolated func values<Value>(
        of subscription: MQTTSubscription, _ topic: MQTTTopic<Value>
    ) -> MQTTDecodedMessages<Value> {
        DecodedMessages(subscription) { [format = topic.format] in
            format.value(in: $0.payload, mediaType: $0.mediaType)
        }
    }
}
