public import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClient {
    /// Sends a request and returns the reply, over a temporary queue that only this client reads.
    ///
    /// Works with RabbitMQ, ActiveMQ and the loopback broker. The receiver sends its reply to the request's `reply-to` and
    /// copies its `correlation-id`, as ``reply(to:with:options:)-(STOMPMessage,[UInt8],_)`` does. Many requests may
    /// wait at the same time. While the client reconnects or is suspended, a request is sent once it is connected again.
    /// - Parameters:
    ///   - body: the body of the request.
    ///   - destination: where the request is sent to.
    ///   - options: what the request asks of the broker; `replyTo` is set here.
    ///   - timeout: from the call to the reply. Default: the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``: ``STOMPError/Code/timedOut`` without a reply in time, ``STOMPError/Code/connectionLost`` if
    ///   the connection ends after the request was sent, because the temporary queue ends with it.
    public nonisolated(nonsending) func request(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        guard options.replyTo == nil else {
            throw .invalidRequest("A request sets its replyTo itself. Leave it out.")
        }
        let timeout = timeout ?? core.configuration.requestTimeout
        let correlation = options.correlationID ?? "request-\(core.ids.add(1, ordering: .relaxed).newValue)"
        let core = core
        return try await replies.reply(
            correlation: Array(correlation.utf8), within: timeout,
            late: core.lateReply(
                "No reply to the request to '\(destination)' arrived within \(timeout).",
                advice: "Check that a client answers there and copies the correlation-id, or raise the timeout.")
        ) {
            (address) async throws(STOMPError) in
            var options = options
            options.replyTo = address
            options.correlationID = correlation
            try await send(body, to: destination, options: options)
        }
    }

    /// Sends a request that is text and returns the reply.
    public nonisolated(nonsending) func request(
        _ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        try await request(Array(text.utf8), to: destination, options: options, timeout: timeout)
    }

    /// Sends a value as a request and returns the reply, with the value in it; otherwise as
    /// ``request(_:to:options:timeout:)-([UInt8],_,_,_)``.
    ///
    ///     let price = try await client.request(order, as: .json, to: "/queue/prices", returning: Price.self).value
    ///
    /// - Parameters:
    ///   - value: the request.
    ///   - coding: the format of the request and of the reply.
    ///   - destination: where the request is sent to.
    ///   - type: the type of the value in the reply.
    ///   - options: what the request asks of the broker; `replyTo` is set here, and the `content-type` unless it is set.
    ///   - timeout: from the call to the reply. Default: the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded. A reply that is not such
    ///   a value is returned: reading its value throws ``DecodeFailure``.
    public nonisolated(nonsending) func request<Answer: Decodable & Sendable>(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        returning type: Answer.Type = Answer.self, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPDecodedMessage<Answer> {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        let answer = try await request(
            body, to: destination, options: options.declaring(coding.contentType), timeout: timeout)
        return DecodedMessage(
            message: answer, result: coding.value(of: type, from: answer.body, mediaType: answer.mediaType))
    }

    /// Answers a request: sends to its `reply-to`, with its `correlation-id`.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the message has no `reply-to`.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with body: [UInt8], options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        guard let destination = request.header("reply-to"), !destination.isEmpty else {
            throw .invalidRequest("The message has no reply-to header to reply to. Have its sender use request().")
        }
        var options = options
        options.correlationID = options.correlationID ?? request.header("correlation-id")
        try await send(body, to: destination, options: options)
    }

    /// Answers a request with text; otherwise as ``reply(to:with:options:)-(STOMPMessage,[UInt8],_)``.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with text: String, options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        try await reply(to: request, with: Array(text.utf8), options: options)
    }

    /// Answers a request with a value, with its `content-type` unless `options` have another.
    ///
    /// - Throws: as ``reply(to:with:options:)-(STOMPMessage,[UInt8],_)``; ``STOMPError/Code/invalidRequest`` also if
    ///   the value cannot be encoded.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with value: some Encodable & Sendable, as coding: some PayloadCoding,
        options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await reply(to: request, with: body, options: options.declaring(coding.contentType))
    }

    /// Sends the reply to a request that was received with its value; otherwise as
    /// ``reply(to:with:options:)-(STOMPMessage,[UInt8],_)``.
    public nonisolated(nonsending) func reply<Value>(
        to request: STOMPDecodedMessage<Value>, with body: [UInt8], options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        try await reply(to: request.message, with: body, options: options)
    }

    /// Sends text as the reply to a request that was received with its value; otherwise as
    /// ``reply(to:with:options:)-(STOMPMessage,[UInt8],_)``.
    public nonisolated(nonsending) func reply<Value>(
        to request: STOMPDecodedMessage<Value>, with text: String, options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        try await reply(to: request.message, with: text, options: options)
    }

    /// Sends a value as the reply to a request that was received with its value; otherwise as
    /// ``reply(to:with:as:options:)-(STOMPMessage,_,_,_)``.
    public nonisolated(nonsending) func reply<Value>(
        to request: STOMPDecodedMessage<Value>, with value: some Encodable & Sendable, as coding: some PayloadCoding,
        options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        try await reply(to: request.message, with: value, as: coding, options: options)
    }

    private nonisolated var replies: STOMPClientCore.Replies { core.replies(knownReplies) }
}
