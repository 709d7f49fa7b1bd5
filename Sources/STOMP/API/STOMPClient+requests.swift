import Messaging
import STOMPCore
import Synchronization
import Transport

extension STOMPClient {
    /// Sends a request and returns the reply, over a temporary queue that only this client reads.
    ///
    /// Works with RabbitMQ, ActiveMQ and the loopback broker. Whoever answers sends to the request's `reply-to` and
    /// copies its `correlation-id`; ``reply(to:with:options:)`` does. Many requests may wait at the same time.
    /// - Parameter timeout: how long to wait; nil for the configuration's `requestTimeout`.
    /// - Throws: ``STOMPError``: ``STOMPError/Code/timedOut`` without a reply in time, ``STOMPError/Code/connectionLost`` if
    ///   the connection ends first, for the temporary queue ends with it.
    public nonisolated(nonsending) func request(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        guard options.replyTo == nil else {
            throw STOMPError(.invalidRequest, "a request chooses its replyTo itself; leave it out")
        }
        let route = try await replies()
        var options = options
        options.replyTo = route.destination
        let correlation = options.correlationID ?? "request-\(core.ids.add(1, ordering: .relaxed).newValue)"
        options.correlationID = correlation
        let request = STOMPRequest(correlation: Array(correlation.utf8))
        await core.expect(request)
        do throws(STOMPError) {
            try await send(body, to: destination, options: options)
        } catch {
            core.forget(request)
            throw error
        }
        return try await core.reply(to: request, timeout: timeout ?? core.configuration.requestTimeout)
    }

    /// Sends a request that is text and returns the reply.
    public nonisolated(nonsending) func request(
        _ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        timeout: Duration? = nil
    ) async throws(STOMPError) -> STOMPMessage {
        try await request(Array(text.utf8), to: destination, options: options, timeout: timeout)
    }

    /// Answers a request: sends to its `reply-to`, with its `correlation-id`.
    ///
    /// - Throws: ``STOMPError/Code/invalidRequest`` if the message asks for no reply.
    public nonisolated(nonsending) func reply(
        to request: STOMPMessage, with body: [UInt8], options: STOMPSendOptions = STOMPSendOptions()
    ) async throws(STOMPError) {
        guard let destination = request.header("reply-to"), !destination.isEmpty else {
            throw STOMPError(.invalidRequest, "the message has no reply-to header: nobody waits for a reply")
        }
        var options = options
        options.correlationID = options.correlationID ?? request.header("correlation-id")
        try await send(body, to: destination, options: options)
    }

    /// The subscription that all replies come over, made with the first request.
    private func replies() async throws(STOMPError) -> STOMPRoute {
        if let replyRoute, !replyRoute.isEnded { return replyRoute }
        if let replySetup { return try await replySetup.value.get() }
        let core = core
        let setup = Task { () -> Result<STOMPRoute, STOMPError> in
            let token = core.ids.add(1, ordering: .relaxed).newValue
            // RabbitMQ names the subscription of a reply as the SEND named its `reply-to`.
            let name = "/temp-queue/replies-\(token)"
            let route = STOMPRoute(
                id: name, token: token, destination: name, acknowledgement: .auto, options: STOMPSubscribeOptions(),
                policy: BufferPolicy(), isForReplies: true)
            do throws(STOMPError) {
                try await core.subscribe(route)
                return .success(route)
            } catch {
                return .failure(error)
            }
        }
        replySetup = setup
        let result = await setup.value
        replySetup = nil
        if case .success(let route) = result { replyRoute = route }
        return try result.get()
    }
}
