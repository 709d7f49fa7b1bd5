public import MessagingShell
import MessagingWire
public import STOMPCore

/// The messages of one subscription, as a sequence; made by `subscribe` and `subscription` of ``STOMPClient``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes; a durable subscription remains at the broker. It survives reconnects. It has one reader at a time: an iterator
/// that asks for its first message continues where the one before it stopped, so that a loop may be left and entered again, and
/// a task may be restarted while the old one unwinds. For a second reader of a topic subscribe once more; two subscriptions to
/// a queue share its messages.
///
/// Iterating throws ``STOMPError`` when the client stops connecting, when the broker refuses the destination after a
/// reconnect, and with ``STOMPError/Code/cancelled`` when the iterating task is cancelled or another iterator has continued;
/// it ends after ``STOMPClient/disconnect()`` and ``unsubscribe()``.
public struct STOMPSubscription: MessageSubscription {
    let handle: STOMPSubscriptionHandle

    /// The destination that was subscribed.
    public var destination: String { handle.route.destination }
    /// How its messages are acknowledged.
    public var acknowledgement: STOMPAckMode { handle.route.acknowledgement }

    /// Unsubscribes and waits for the server's answer. Without a connection, after ``STOMPClient/disconnect()`` too, this
    /// returns at once, because the subscription has ended with its connection. A durable subscription is deleted with the
    /// messages that wait in it; to keep it, release the sequence or disconnect.
    ///
    /// - Throws: ``STOMPError`` when the broker refuses or does not answer in time, and at once with
    ///   ``STOMPError/Code/cancelled`` in a cancelled task. This sequence ends, even if the call throws. For a durable
    ///   subscription ``STOMPError/Code/notConnected`` without a connection, or ``STOMPError/Code/invalidRequest`` if the
    ///   sequence has ended otherwise: it remains at the broker. After ``STOMPError/Code/connectionLost`` and
    ///   ``STOMPError/Code/timedOut`` it may remain, and later calls throw `connectionLost`. In all these cases
    ///   ``STOMPClient/unsubscribe(from:durableName:headers:)`` deletes it. ``STOMPError/Code/unsupportedByBroker`` if the
    ///   broker cannot delete it: RabbitMQ deletes durable subscriptions to `/topic/` only.
    public nonisolated(nonsending) func unsubscribe() async throws(STOMPError) {
        try await handle.core.subscriptions.unsubscribe(handle.route)
    }

    /// The destination, with how its messages are acknowledged.
    public var description: String { "STOMPSubscription(\(OneLine.text(destination)), \(acknowledgement))" }

    public var droppedCount: Int { handle.droppedCount }
    public var batches: MessageBatches<STOMPBatch, STOMPError> { MessageBatches(handle) }
    public func makeAsyncIterator() -> Iterator { Iterator(cursor: DeliveryCursor(handle)) }

    /// The reader of the messages. It is not generic, because the compiler would not specialize a generic
    /// asynchronous `next()`.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let cursor: DeliveryCursor<STOMPBatch, STOMPError>

        @inlinable public mutating func next() async throws(STOMPError) -> STOMPMessage? {
            if let message = cursor.next() { return message }
            return try await cursor.nextBatch()
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(STOMPError) -> STOMPMessage? {
            if let message = cursor.next() { return message }
            return try await cursor.nextBatch()
        }
    }
}

/// A message of a STOMP subscription and the value in it; see ``STOMPDecodedMessages``.
public typealias STOMPDecodedMessage<Value: Sendable> = DecodedMessage<STOMPMessage, Value>
/// The messages of a subscription with their values; see ``STOMPSubscription/values(_:as:)``.
public typealias STOMPDecodedMessages<Value: Sendable> = DecodedMessages<STOMPSubscription, Value>

extension STOMPDecodedMessage where Message == STOMPMessage {
    /// The value of the first header with this name; nil without such a header.
    public func header(_ name: String) -> String? { message.header(name) }

    /// Acknowledges the message, as ``STOMPMessage/acknowledge(in:)`` does, whether or not its body could be decoded.
    ///
    /// - Throws: ``STOMPError``, as for the message.
    public func acknowledge(in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try message.acknowledge(in: transaction)
    }

    /// Rejects the message, as ``STOMPMessage/reject(requeue:in:)`` does.
    ///
    /// - Throws: ``STOMPError``, as for the message.
    public func reject(requeue: Bool? = nil, in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try message.reject(requeue: requeue, in: transaction)
    }
}

typealias STOMPSubscriptionHandle = SubscriptionHandle<STOMPClientCore>
