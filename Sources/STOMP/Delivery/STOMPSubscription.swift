public import Messaging
public import STOMPCore
import Wire

/// The messages of one subscription, as a sequence; made by `subscribe` of ``STOMPClient``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes; a durable subscription remains at the broker. It survives reconnects. An iterator continues where the one
/// before it was released, so that a loop may be left and entered again; of two at the same time each gets every message
/// since it was made.
///
/// Iterating throws ``STOMPError`` when the client stops connecting, when the broker refuses the destination after a
/// reconnect, and (with ``STOMPError/Code/cancelled``) when the iterating task is cancelled; it ends after
/// ``STOMPClient/disconnect()`` and ``unsubscribe()``.
public struct STOMPSubscription: AsyncSequence, Sendable {
    public typealias Element = STOMPMessage
    public typealias Failure = STOMPError

    let handle: STOMPSubscriptionHandle

    /// The destination that was subscribed.
    public var destination: String { handle.route.destination }
    /// How its messages are acknowledged.
    public var acknowledgement: STOMPAckMode { handle.route.acknowledgement }
    /// The number of messages that were dropped because the receiver was slow.
    public var droppedCount: Int { handle.droppedCount }

    /// Unsubscribes and waits for the server's answer. A durable subscription is deleted with the messages that wait in it;
    /// to keep it, release the sequence or disconnect.
    ///
    /// - Throws: ``STOMPError`` when the broker refuses or does not answer in time, and at once with
    ///   ``STOMPError/Code/cancelled`` in a cancelled task; the subscription is over in any case.
    public nonisolated(nonsending) func unsubscribe() async throws(STOMPError) {
        try await handle.core.subscriptions.unsubscribe(handle.route)
    }

    /// The messages with their values. A body that cannot be decoded is an element too, and the messages after it follow.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) -> STOMPDecodedMessages<Value> {
        DecodedMessages(self) { coding.value(of: type, from: $0.body, mediaType: $0.mediaType) }
    }

    /// The messages with their values in a format of the application's own, such as that of generated types:
    ///
    ///     for try await order in orders.values({ try Order(serializedBytes: $0.bytes) }) { … }
    public func values<Value: Sendable>(
        _ decode: @escaping @Sendable (STOMPMessage) throws -> Value
    ) -> STOMPDecodedMessages<Value> {
        DecodedMessages(self) { DecodeFailure.result(of: decode, $0, $0.body) }
    }

    /// The messages, as many at a time as arrived together: for receivers of very many.
    public var batches: MessageBatches<STOMPBatch, STOMPError> { MessageBatches(handle) }

    public func makeAsyncIterator() -> Iterator { Iterator(cursor: DeliveryCursor(handle)) }

    /// One receiver of the messages. Not generic: the compiler would not specialize an asynchronous `next()` that is.
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

    /// Messages that arrived together, in their order.
    public typealias Batch = MessageBatch<STOMPBatch>
}

/// A message of a STOMP subscription and the value in it; see ``STOMPDecodedMessages``.
public typealias STOMPDecodedMessage<Value: Sendable> = DecodedMessage<STOMPMessage, Value>
/// The messages of a subscription with their values; see ``STOMPSubscription/values(_:as:)``.
public typealias STOMPDecodedMessages<Value: Sendable> = DecodedMessages<STOMPSubscription, Value>

extension STOMPDecodedMessage where Message == STOMPMessage {
    /// The value of the first header of that name.
    public func header(_ name: String) -> String? { message.header(name) }

    /// Acknowledges the message, as ``STOMPMessage/acknowledge(in:)`` does, whether or not it has such a value.
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

extension STOMPSubscription: CustomStringConvertible {
    /// The destination, with how its messages are acknowledged.
    public var description: String { "STOMPSubscription(\(OneLine.text(destination)), \(acknowledgement))" }
}
