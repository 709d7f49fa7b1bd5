public import Messaging
import STOMPCore

extension STOMPClient {
    /// Sends a value in a format, with its `content-type` unless `options` have another; otherwise as
    /// ``send(_:to:options:in:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func send(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await send(body, to: destination, options: options.declaring(coding.contentType), in: transaction)
    }

    /// Sends a value in a format and returns when the broker has processed it; otherwise as
    /// ``sendAndConfirm(_:to:options:in:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func sendAndConfirm(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await sendAndConfirm(body, to: destination, options: options.declaring(coding.contentType), in: transaction)
    }

    /// Sends a value in a format and returns when its bytes are in the outbox; its receipt can be awaited later.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func sendForReceipt(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        return try await sendForReceipt(
            body, to: destination, options: options.declaring(coding.contentType), in: transaction)
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
        let message = try message(value, destination, options)
        try await send(message.body, to: message.destination, options: message.options, in: transaction)
    }

    /// Sends a value to a destination of its type and returns when the broker has processed it.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func sendAndConfirm<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let message = try message(value, destination, options)
        try await sendAndConfirm(message.body, to: message.destination, options: message.options, in: transaction)
    }

    /// Sends a value to a destination of its type and returns when its bytes are in the outbox; its receipt can be awaited
    /// later.
    ///
    /// - Throws: as ``send(_:to:options:in:)-(Value,_,_,_)``.
    public nonisolated(nonsending) func sendForReceipt<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        try await sendForReceipt(message(value, destination, options), in: transaction)
    }

    /// Sends a value to a destination of its type as a request and returns the reply; otherwise as
    /// ``request(_:to:options:timeout:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: as ``send(_:to:options:in:)-(Value,_,_,_)``; ``STOMPError/Code/timedOut`` without a reply in time.
    public nonisolated(nonsending) func request<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        let message = try message(value, destination, options)
        return try await request(
            message.body, to: message.destination, options: message.options, timeout: timeout)
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
    /// - Throws: as ``request(_:to:options:timeout:)-(Value,_,_,_)``. A reply that is not such a value is returned: reading
    ///   its value throws ``DecodeFailure``.
    public nonisolated(nonsending) func request<Value, Answer: Decodable & Sendable>(
        _ value: Value, to destination: STOMPDestination<Value>, returning type: Answer.Type = Answer.self,
        coding: some PayloadCoding = .json, options: STOMPSendOptions = STOMPSendOptions(), timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPDecodedMessage<Answer> {
        let answer = try await request(value, to: destination, options: options, timeout: timeout)
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

    /// A message with a value for a destination of its type, with its content type and the declaration of its queue.
    private nonisolated func message<Value>(
        _ value: Value, _ destination: STOMPDestination<Value>, _ options: STOMPSendOptions
    ) throws(STOMPError) -> STOMPOutgoingMessage {
        let body = try destination.format.payload(of: value, for: destination.name, throwing: STOMPError.self)
        var options = options.declaring(destination.contentType)
        if destination.queue != STOMPQueueOptions() {
            let profile = core.link.perform { $0.engine.profile }
            options.headers.fields += destination.queue.headers(for: profile, ofSubscription: false).fields
        }
        return STOMPOutgoingMessage(body, to: destination.name, options: options)
    }
}
