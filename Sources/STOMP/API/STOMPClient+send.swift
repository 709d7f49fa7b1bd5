import MessagingShell
import STOMPCore
import Transport

extension STOMPClient {
    /// Sends a message and returns when its bytes are in the outbox; this suspends only while the outbox is full.
    ///
    /// It is not known whether the broker received it; ``sendAndConfirm(_:in:)-(STOMPOutgoingMessage,_)`` waits for that.
    /// - Throws: ``STOMPError``. A message that cannot be sent as it is, is refused before anything leaves.
    public nonisolated(nonsending) func send(
        _ message: STOMPOutgoingMessage, in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await throughHook(message) { (message) async throws(STOMPError) in
            try await sendNow(message.body, to: message.destination, options: message.options, in: transaction)
        }
    }

    /// Sends any sequence of bytes, such as an array or `Data`; otherwise as ``send(_:in:)-(STOMPOutgoingMessage,_)``.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - options: the headers besides the destination.
    ///   - transaction: makes it part of a transaction.
    @inlinable
    public nonisolated(nonsending) func send(
        _ body: some Sequence<UInt8>, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await send(bytes: Array(body), to: destination, options: options, in: transaction)
    }

    /// Sends text as UTF-8; the parameters are those of bytes.
    public nonisolated(nonsending) func send(
        _ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await send(bytes: Array(text.utf8), to: destination, options: options, in: transaction)
    }

    @usableFromInline
    nonisolated(nonsending) func send(
        bytes body: [UInt8], to destination: String, options: STOMPSendOptions,
        in transaction: STOMPTransactionHandle?
    ) async throws(STOMPError) {
        guard core.configuration.messageHook == nil else {
            return try await send(STOMPOutgoingMessage(body, to: destination, options: options), in: transaction)
        }
        try await sendNow(body, to: destination, options: options, in: transaction)
    }

    private nonisolated(nonsending) func sendNow(
        _ body: [UInt8], to destination: String, options: STOMPSendOptions, in transaction: STOMPTransactionHandle?
    ) async throws(STOMPError) {
        let headers = try options.allHeaders(expiringRelatively: core.expiresRelatively, core.loop)
        while try !sender.trySend(
            body, to: destination, headers: headers, omitsContentLength: options.omitsContentLength,
            in: transaction?.transaction)
        {
            try await sender.roomInOutbox()
        }
    }

    /// Sends a message and returns when the broker has processed it (RECEIPT).
    ///
    /// Many may wait at the same time. Cancelling the task ends the wait. In a transaction RabbitMQ confirms only with the
    /// commit: await that instead.
    /// - Throws: ``STOMPError`` with the broker's ERROR if it refused; with ``STOMPError/Code/connectionLost`` and
    ///   ``STOMPError/Code/timedOut`` it is not known whether the message was processed.
    public nonisolated(nonsending) func sendAndConfirm(
        _ message: STOMPOutgoingMessage, in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await throughHook(message) { (message) async throws(STOMPError) in
            let headers = try message.options.allHeaders(expiringRelatively: core.expiresRelatively, core.loop)
            do throws(STOMPError) {
                try await sender.sendConfirmed(
                    STOMPReadySend(
                        body: message.body, destination: message.destination, headers: headers,
                        omitsContentLength: message.options.omitsContentLength, transaction: transaction?.transaction))
            } catch {
                throw error.naming("SEND to '\(message.destination)'")
            }
        }
    }

    /// Sends any sequence of bytes, such as an array or `Data`, and returns when the broker has processed it (RECEIPT);
    /// otherwise as ``sendAndConfirm(_:in:)-(STOMPOutgoingMessage,_)``.
    ///
    /// - Parameters:
    ///   - body: the body.
    ///   - destination: in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    ///   - options: the headers besides the destination.
    ///   - transaction: makes it part of a transaction.
    public nonisolated(nonsending) func sendAndConfirm(
        _ body: some Sequence<UInt8>, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await sendAndConfirm(STOMPOutgoingMessage(body, to: destination, options: options), in: transaction)
    }

    /// Sends text as UTF-8 and returns when the broker has processed it (RECEIPT); the parameters are those of bytes.
    public nonisolated(nonsending) func sendAndConfirm(
        _ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        try await sendAndConfirm(STOMPOutgoingMessage(text, to: destination, options: options), in: transaction)
    }

    /// Sends a message as the hook has changed it, if there is one, and as the connected broker takes it.
    private nonisolated(nonsending) func throughHook<Answer>(
        _ message: STOMPOutgoingMessage, _ send: (STOMPOutgoingMessage) async throws(STOMPError) -> Answer
    ) async throws(STOMPError) -> Answer {
        guard let hook = core.configuration.messageHook else { return try await send(forThisBroker(message)) }
        return try await hook.send(message) { (changed) async throws(STOMPError) in
            try await send(forThisBroker(changed))
        }
    }

    /// The message with the headers that declare its queue at the connected broker.
    private nonisolated func forThisBroker(_ message: STOMPOutgoingMessage) -> STOMPOutgoingMessage {
        message.queue == STOMPQueueOptions()
            ? message : message.declaringQueue(at: core.link.perform { $0.engine.profile })
    }

    private nonisolated func forThisBroker(_ messages: [STOMPOutgoingMessage]) -> [STOMPOutgoingMessage] {
        guard messages.contains(where: { $0.queue != STOMPQueueOptions() }) else { return messages }
        let profile = core.link.perform { $0.engine.profile }
        return messages.map { $0.declaringQueue(at: profile) }
    }
}

/// The receipt of one frame, to be awaited by any number of tasks, now or later; made by
/// ``STOMPClient/sendForReceipt(_:in:)``.
public struct STOMPReceipt: Sendable {
    /// Weak, so that keeping this value does not keep the client.
    weak let core: STOMPClientCore?
    /// Has the answer also after the client was released.
    let link: Link<STOMPMachine>
    let batch: STOMPSendBatch

    /// Returns when the broker has processed the frame.
    ///
    /// - Throws: ``STOMPError`` as ``STOMPClient/sendAndConfirm(_:in:)-(STOMPOutgoingMessage,_)`` does;
    ///   ``STOMPError/Code/connectionLost`` or ``STOMPError/Code/disconnected`` if the client was released before.
    public nonisolated(nonsending) func confirmed() async throws(STOMPError) {
        try await batch.confirmed(under: link, success: (), by: core)
    }
}

extension STOMPClient {
    /// Sends many messages in their order over one connection, and returns when their bytes are in the outbox.
    ///
    /// - Throws: ``STOMPError`` for the first message that cannot be sent; those before it are. If the connection ends
    ///   before all are in the outbox, it is ``STOMPError/Code/notConnected``, even if the client is connected again.
    public nonisolated(nonsending) func send(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        guard let hook = core.configuration.messageHook else {
            return try await sender.sendAll(forThisBroker(messages), in: transaction?.transaction)
        }
        try await hook.sendTogether(messages) { (changed) async throws(STOMPError) in
            try await sender.sendAll(forThisBroker(changed), in: transaction?.transaction)
        }
    }

    /// Sends many messages in their order over one connection, and returns when the broker has processed all of them, with
    /// a single wait for their receipts.
    ///
    ///     try await client.sendAndConfirm(messages).check()
    ///
    /// A message that the client refuses does not hold up those after it. If the broker refuses one with ERROR, it ends
    /// the connection. In a transaction, call `check()` before it ends: a refusal then aborts it, and otherwise the others
    /// are committed. RabbitMQ sends the receipts of a transaction only after COMMIT, so that this would wait until
    /// `requestTimeout` for nothing: send without confirmation there, since the commit waits for all of them.
    /// - Returns: the result of each message, in their order: success if it is confirmed, ``STOMPError/Code/invalidRequest``
    ///   or another code of a refusal, and when the connection ends, however soon the client is connected again,
    ///   ``STOMPError/Code/connectionLost`` for a message that was sent and has no receipt (it may have been processed),
    ///   ``STOMPError/Code/notConnected`` for one that was not sent. Messages that have no receipt when the task is cancelled
    ///   fail with ``STOMPError/Code/cancelled``; those that were sent may have been processed all the same.
    public nonisolated(nonsending) func sendAndConfirm(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle? = nil
    ) async -> SendResults {
        guard let hook = core.configuration.messageHook else { return await confirmNow(messages, in: transaction) }
        return await hook.send(messages) { await confirmNow($0, in: transaction) }
    }

    private nonisolated(nonsending) func confirmNow(
        _ messages: [STOMPOutgoingMessage], in transaction: STOMPTransactionHandle?
    ) async -> SendResults {
        let failures = await sender.sendAllConfirmed(forThisBroker(messages), in: transaction?.transaction)
        return SendResults(count: messages.count, success: (), failures)
    }

    /// Sends a message and returns when its bytes are in the outbox; its receipt can be awaited later.
    ///
    /// - Throws: ``STOMPError``. A message that cannot be sent as it is, is refused before anything leaves.
    public nonisolated(nonsending) func sendForReceipt(
        _ message: STOMPOutgoingMessage, in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) -> STOMPReceipt {
        try await throughHook(message) { (message) async throws(STOMPError) in
            STOMPReceipt(
                core: core, link: core.link,
                batch: try await sender.sendForReceipt(message, in: transaction?.transaction))
        }
    }
}

extension STOMPClient {
    /// The results of messages that were sent together, in their order: success if the broker confirmed the message, or
    /// why it failed.
    public typealias SendResults = MessageResults<Void, STOMPError>
}
