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
        let message = try message(value, coding, topic, qos, retain, properties)
        return try await publish(
            message.payload, to: topic, qos: qos, retain: retain, properties: message.properties)
    }

    /// Publishes a value in a format and returns without waiting for its acknowledgement; otherwise as
    /// ``publishForConfirmation(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func publishForConfirmation<Value: Encodable & Sendable>(
        _ value: Value, as coding: some PayloadCoding, to topic: String, qos: QoS = .atLeastOnce,
        retain: Bool = false, properties: MQTTProperties = []
    ) async throws(MQTTError) -> Confirmation {
        try await publishForConfirmation(message(value, coding, topic, qos, retain, properties))
    }

    /// Adds a value in a format to the queue; otherwise as ``enqueue(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` for QoS 0, or if the value cannot be encoded.
    public nonisolated(nonsending) func enqueue<Value: Encodable & Sendable>(
        _ value: Value, as coding: some PayloadCoding, to topic: String, qos: QoS = .atLeastOnce,
        retain: Bool = false, properties: MQTTProperties = []
    ) async throws(MQTTError) {
        try await enqueue(message(value, coding, topic, qos, retain, properties))
    }

    /// Publishes a value in a format with QoS 0 at once or not at all; otherwise as
    /// ``tryPublish(_:to:retain:properties:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated func tryPublish<Value: Encodable & Sendable>(
        _ value: Value, as coding: some PayloadCoding, to topic: String, retain: Bool = false,
        properties: MQTTProperties = []
    ) throws(MQTTError) -> Bool {
        let message = try message(value, coding, topic, .atMostOnce, retain, properties)
        return try tryPublish(message.payload, to: topic, retain: retain, properties: message.properties)
    }

    /// A message with a value in a format; it declares the content type if the version has properties.
    private nonisolated func message(
        _ value: some Encodable & Sendable, _ coding: some PayloadCoding, _ topic: String, _ qos: QoS, _ retain: Bool,
        _ properties: MQTTProperties
    ) throws(MQTTError) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            topic: topic, payload: try coding.payload(of: value, throwing: MQTTError.self), qos: qos, retain: retain,
            properties: speaksProperties ? properties.declaring(coding.contentType) : properties)
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
    /// - Throws: as ``reply(to:with:qos:properties:)-(MQTTMessage,[UInt8],_,_)``; ``MQTTError/Code/invalidRequest``
    ///   also if the value cannot be encoded.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with value: some Encodable & Sendable, as coding: some PayloadCoding,
        qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        let properties = properties.declaring(coding.contentType)
        return try await reply(to: request, with: payload, qos: qos, properties: properties)
    }

    /// Publishes a value as the response to a request that was received with its value; otherwise as
    /// ``reply(to:with:as:qos:properties:)-(MQTTMessage,_,_,_,_)``.
    @discardableResult
    public nonisolated(nonsending) func reply<Value>(
        to request: MQTTDecodedMessage<Value>, with value: some Encodable & Sendable, as coding: some PayloadCoding,
        qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await reply(to: request.message, with: value, as: coding, qos: qos, properties: properties)
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
        let message = try message(value, topic, properties)
        return try await publish(
            message.payload, to: message.topic, qos: message.qos, retain: message.retain,
            properties: message.properties)
    }

    /// Publishes a value to a topic of its type and returns without waiting for its acknowledgement; otherwise as
    /// ``publishForConfirmation(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: as ``publish(_:to:properties:)``.
    public nonisolated(nonsending) func publishForConfirmation<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) async throws(MQTTError) -> Confirmation {
        try await publishForConfirmation(message(value, topic, properties))
    }

    /// Publishes a value to a topic of its type at once or not at all, with QoS 0, whatever the QoS of the topic; otherwise
    /// as ``tryPublish(_:to:retain:properties:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: as ``publish(_:to:properties:)``.
    public nonisolated func tryPublish<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) throws(MQTTError) -> Bool {
        let message = try message(value, topic, properties)
        return try tryPublish(
            message.payload, to: message.topic, retain: message.retain, properties: message.properties)
    }

    /// Adds a value for a topic of its type to the queue; otherwise as
    /// ``enqueue(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: as ``publish(_:to:properties:)``; ``MQTTError/Code/invalidRequest`` also for a topic with QoS 0.
    public nonisolated(nonsending) func enqueue<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, properties: MQTTProperties = []
    ) async throws(MQTTError) {
        try await enqueue(message(value, topic, properties))
    }

    /// Publishes a value to a topic of its type as a request and returns the first response to it; 5.0 only. Otherwise as
    /// ``request(_:to:qos:timeout:properties:)-([UInt8],_,_,_,_)``.
    ///
    /// - Throws: as ``publish(_:to:properties:)``; ``MQTTError/Code/timedOut`` without a response in time.
    public nonisolated(nonsending) func request<Value>(
        _ value: Value, to topic: MQTTTopic<Value>, timeout: Duration = .seconds(10), properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTMessage {
        let message = try message(value, topic, properties)
        return try await request(
            message.payload, to: message.topic, qos: message.qos, timeout: timeout, properties: message.properties)
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
    ///   - timeout: from the call to the response. Default: 10 seconds.
    ///   - properties: response topic and correlation data are set here, and the content type unless it is set.
    /// - Throws: as ``request(_:to:timeout:properties:)``. A response that is not such a value is returned: reading its
    ///   value throws ``DecodeFailure``.
    public nonisolated(nonsending) func request<Value, Answer: Decodable & Sendable>(
        _ value: Value, to topic: MQTTTopic<Value>, returning type: Answer.Type = Answer.self,
        coding: some PayloadCoding = .json, timeout: Duration = .seconds(10), properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTDecodedMessage<Answer> {
        let answer = try await request(value, to: topic, timeout: timeout, properties: properties)
        return DecodedMessage(
            message: answer, result: coding.value(of: type, from: answer.payload, mediaType: answer.mediaType))
    }

    /// A message with a value for a topic of its type; it declares Content Type and Payload Format Indicator if the
    /// version has properties.
    private nonisolated func message<Value>(
        _ value: Value, _ topic: MQTTTopic<Value>, _ properties: MQTTProperties
    ) throws(MQTTError) -> MQTTOutgoingMessage {
        let payload = try topic.format.payload(of: value, for: topic.name, throwing: MQTTError.self)
        var properties = properties
        if speaksProperties {
            if let type = topic.contentType { properties = properties.declaring(type) }
            if topic.format.isText, properties.payloadFormatIndicator == nil {
                properties.payloadFormatIndicator = true
            }
        }
        return MQTTOutgoingMessage(
            topic: topic.name, payload: payload, qos: topic.qos, retain: topic.retain, properties: properties)
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
