public import MessagingShell
import STOMPCore

extension STOMPClient {
    /// Sends a value in a format, with its `content-type` unless `options` have another.
    ///
    ///     try await client.send(order, to: "/queue/orders")
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - coding: the format of the body. Default: JSON.
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - options: the headers besides the destination.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    @_disfavoredOverload
    public nonisolated(nonsending) func send(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await send(STOMPOutgoingMessage(value, as: coding, to: destination, options: options), in: transaction)
    }

    /// Sends a value to a destination of its type.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func send<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await send(STOMPOutgoingMessage(value, to: destination, options: options), in: transaction)
    }

    /// Sends a value in a format and returns when the broker has processed it (RECEIPT); otherwise as
    /// ``sendAndConfirm(_:in:)-(STOMPOutgoingMessage,_)``.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - coding: the format of the body. Default: JSON.
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - options: the headers besides the destination; the `content-type` is the format's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` also if the value cannot be encoded.
    @_disfavoredOverload
    public nonisolated(nonsending) func sendAndConfirm(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await sendAndConfirm(
            STOMPOutgoingMessage(value, as: coding, to: destination, options: options), in: transaction)
    }

    /// Sends a value to a destination of its type and returns when the broker has processed it (RECEIPT); otherwise as
    /// ``sendAndConfirm(_:in:)-(STOMPOutgoingMessage,_)``.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` also if the value cannot be encoded.
    public nonisolated(nonsending) func sendAndConfirm<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await sendAndConfirm(STOMPOutgoingMessage(value, to: destination, options: options), in: transaction)
    }

    /// Sends a value as a request and returns the reply, with the value in it.
    ///
    ///     let price = try await client.request(order, to: "/queue/prices", returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - coding: the format of the request and of the reply. Default: JSON.
    ///   - destination: where the request is sent to.
    ///   - type: the type of the value in the reply.
    ///   - options: what the request asks of the broker; `replyTo` is set here, and the `content-type` unless it is set.
    ///   - timeout: from the call to the reply. Default: the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/timedOut`` without a reply in time, ``STOMPError/Code/invalidRequest`` if
    ///   the value cannot be encoded. A reply that is not such a value is returned: reading its value throws
    ///   ``DecodeFailure``.
    public nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to destination: String,
        returning type: Answer.Type = Answer.self, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPDecodedMessage<Answer> {
        let message = try STOMPOutgoingMessage(value, as: coding, to: destination, options: options)
        return try await request(message, returning: type, coding: coding, timeout: timeout)
    }

    /// Sends a value to a destination of its type as a request and returns the reply, with the value in it.
    ///
    ///     let price = try await client.request(order, to: .prices, returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - destination: a destination of this type, which has the format of the request.
    ///   - type: the type of the value in the reply.
    ///   - coding: the format of the reply. Default: JSON.
    ///   - options: what the request asks of the broker; `replyTo` is set here, and the `content-type` unless it is set.
    ///   - timeout: from the call to the reply. Default: the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/timedOut`` without a reply in time, ``STOMPError/Code/invalidRequest`` if
    ///   the value cannot be encoded. A reply that is not such a value is returned: reading its value throws
    ///   ``DecodeFailure``.
    public nonisolated(nonsending) func request<Value, Answer: Decodable & Sendable>(
        _ value: Value, to destination: STOMPDestination<Value>, returning type: Answer.Type = Answer.self,
        coding: some PayloadCoding = .json, options: STOMPSendOptions = STOMPSendOptions(), timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPDecodedMessage<Answer> {
        let message = try STOMPOutgoingMessage(value, to: destination, options: options)
        return try await request(message, returning: type, coding: coding, timeout: timeout)
    }

    private nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ message: STOMPOutgoingMessage, returning type: Answer.Type, coding: some PayloadCoding, timeout: Duration?
    ) async throws(STOMPError) -> STOMPDecodedMessage<Answer> {
        let answer = try await request(message, timeout: timeout)
        return DecodedMessage(
            message: answer, result: coding.value(of: type, from: answer.body, mediaType: answer.mediaType))
    }

    /// Subscribes and returns the messages with their values.
    ///
    ///     let orders = try await client.subscribe(to: "/queue/orders", as: Order.self)
    ///     for try await order in orders { print(order.messageID ?? "", try order.value) }
    ///
    /// A body that is not such a value is an element too: reading its `value` throws ``DecodeFailure``, and the messages
    /// after it follow.
    /// - Parameters:
    ///   - destination: in the broker's notation.
    ///   - type: the type of the values; for text see ``subscribe(to:as:acknowledgement:options:buffer:)``.
    ///   - coding: the format of the bodies. Default: JSON.
    ///   - acknowledgement: whether delivery acknowledges a message, or ``STOMPMessage/acknowledge(in:)``. Default: `auto`.
    ///   - options: selector, durable name, prefetch, further headers. Default: none.
    ///   - buffer: the bounds of the buffer for a slow receiver. Default: see ``BufferPolicy``.
    /// - Throws: ``STOMPError`` as `subscribe` without a type does.
    public nonisolated(nonsending) func subscribe<Value: Decodable & Sendable>(
        to destination: String, as type: Value.Type, coding: some PayloadCoding = .json,
        acknowledgement: STOMPAckMode = .auto, options: STOMPSubscribeOptions = STOMPSubscribeOptions(),
        buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPDecodedMessages<Value> {
        try await subscribe(to: destination, acknowledgement: acknowledgement, options: options, buffer: buffer)
            .values(type, as: coding)
    }

    /// Subscribes and returns the messages with their texts: `subscribe(to: "/topic/doors", as: String.self)`. A body that
    /// is not UTF-8 is an element whose `value` throws.
    public nonisolated(nonsending) func subscribe(
        to destination: String, as text: String.Type, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPDecodedMessages<String> {
        try await subscribe(
            to: STOMPDestination.text(destination), acknowledgement: acknowledgement, options: options, buffer: buffer)
    }

    /// Subscribes to a destination and returns its messages with their values. A body that is not such a value is an
    /// element too.
    ///
    /// - Throws: as ``subscribe(to:acknowledgement:options:buffer:)-(String,_,_,_)``.
    public nonisolated(nonsending) func subscribe<Value>(
        to destination: STOMPDestination<Value>, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPDecodedMessages<Value> {
        var options = options
        options.queue = destination.queue
        let subscription = try await subscribe(
            to: destination.name, acknowledgement: acknowledgement, options: options, buffer: buffer)
        return values(of: subscription, destination)
    }

    /// Declares a subscription and returns the messages with their values, without waiting for the broker; otherwise as
    /// ``subscription(to:acknowledgement:options:buffer:)-(String,_,_,_)``. The parameters are those of `subscribe(to:as:)`.
    public nonisolated func subscription<Value: Decodable & Sendable>(
        to destination: String, as type: Value.Type, coding: some PayloadCoding = .json,
        acknowledgement: STOMPAckMode = .auto, options: STOMPSubscribeOptions = STOMPSubscribeOptions(),
        buffer: BufferPolicy = BufferPolicy()
    ) -> STOMPDecodedMessages<Value> {
        subscription(to: destination, acknowledgement: acknowledgement, options: options, buffer: buffer)
            .values(type, as: coding)
    }

    /// Declares a subscription and returns the messages with their texts; otherwise as for other types.
    public nonisolated func subscription(
        to destination: String, as text: String.Type, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) -> STOMPDecodedMessages<String> {
        subscription(
            to: STOMPDestination.text(destination), acknowledgement: acknowledgement, options: options, buffer: buffer)
    }

    /// Declares a subscription to a destination and returns its messages with their values, without waiting for the broker;
    /// otherwise as ``subscription(to:acknowledgement:options:buffer:)-(String,_,_,_)``.
    public nonisolated func subscription<Value>(
        to destination: STOMPDestination<Value>, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) -> STOMPDecodedMessages<Value> {
        var options = options
        options.queue = destination.queue
        let subscription = subscription(
            to: destination.name, acknowledgement: acknowledgement, options: options, buffer: buffer)
        return values(of: subscription, destination)
    }

    private nonisolated func values<Value>(
        of subscription: STOMPSubscription, _ destination: STOMPDestination<Value>
    ) -> STOMPDecodedMessages<Value> {
        DecodedMessages(subscription) { [format = destination.format] in
            format.value(in: $0.body, mediaType: $0.mediaType)
        }
    }
}
