public import MessagingShell
import STOMPCore
import Synchronization
import Transport

extension STOMPClient {
    /// Sends a request and returns the reply, over a temporary queue that only this client reads.
    ///
    /// Works with RabbitMQ, ActiveMQ and the loopback broker. The receiver sends its reply to the request's `reply-to` and
    /// copies its `correlation-id`, as `reply(to:with:)` does. Many requests may
    /// wait at the same time. A reply without the `correlation-id` of a request that waits is dropped, and
    /// ``STOMPEvent/unmatchedMessages(_:)`` counts it: for services that do not copy it see <doc:GettingStarted>. While the client
    /// reconnects or is suspended, a request is sent once it is connected again.
    /// - Parameters:
    ///   - body: the body of the request: any sequence of bytes, such as an array or `Data`.
    ///   - destination: where the request is sent to.
    ///   - options: what the request asks of the broker; `replyTo` is set here.
    ///   - timeout: from the call to the reply. Default: the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``: ``STOMPError/Code/timedOut`` without a reply in time, ``STOMPError/Code/connectionLost`` if
    ///   the connection ends after the request was sent, because the temporary queue ends with it.
    public nonisolated(nonsending) func request(
        _ body: some Sequence<UInt8>, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        try await request(STOMPOutgoingMessage(body, to: destination, options: options), timeout: timeout)
    }

    nonisolated(nonsending) func request(
        _ message: STOMPOutgoingMessage, timeout: Duration?
    ) async throws(STOMPError) -> STOMPMessage {
        guard message.options.replyTo == nil else {
            throw .invalidRequest("A request sets its replyTo itself. Leave it out.")
        }
        let timeout = timeout ?? core.configuration.requestTimeout
        let correlation = message.options.correlationID ?? "request-\(core.ids.add(1, ordering: .relaxed).newValue)"
        let core = core
        let answer = try await replies.reply(
            correlation: Array(correlation.utf8), within: timeout,
            late: core.lateReply(
                "No reply to the request to '\(message.destination)' arrived within \(timeout).",
                advice: "Check that a client answers there and copies the correlation-id, or raise the timeout.")
        ) {
            (address) async throws(STOMPError) in
            var message = message
            message.options.replyTo = address
            message.options.correlationID = correlation
            try await self.send(message)
        }
        return core.received(answer)
    }

    /// Sends a request that is text and returns the reply; the parameters are those of bytes.
    public nonisolated(nonsending) func request(
        _ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        try await request(Array(text.utf8), to: destination, options: options, timeout: timeout)
    }

    /// Answers a request with any sequence of bytes: sends to its `reply-to`, with its `correlation-id`.
    ///
    /// A request that was received with its value is `request.message`.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the message has no `reply-to`.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with body: some Sequence<UInt8>, options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        guard let destination = request.header("reply-to"), !destination.isEmpty else {
            throw .invalidRequest("The message has no reply-to header to reply to. Have its sender use request().")
        }
        var options = options
        options.correlationID = options.correlationID ?? request.header("correlation-id")
        try await send(body, to: destination, options: options)
    }

    /// Answers a request with text; otherwise as for bytes.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with text: String, options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        try await reply(to: request, with: Array(text.utf8), options: options)
    }

    /// Answers a request with a value, with its `content-type` unless `options` have another.
    ///
    /// - Parameters:
    ///   - request: the request; one that was received with its value is `request.message`.
    ///   - value: the reply.
    ///   - coding: the format of the reply. Default: JSON.
    ///   - options: the headers besides the destination.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the message has no `reply-to`, or if the value cannot
    ///   be encoded.
    @_disfavoredOverload
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with value: some Encodable & Sendable, as coding: some PayloadCoding = .json,
        options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await reply(to: request, with: body, options: options.declaring(coding.contentType))
    }

    private nonisolated var replies: STOMPClientCore.Replies {
        get throws(STOMPError) { try core.replies(knownReplies) }
    }
}
