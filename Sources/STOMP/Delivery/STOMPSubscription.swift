import Messaging
public import STOMPCore

/// The messages of one subscription, as a sequence; made by ``STOMPClient/subscribe(to:acknowledgement:options:buffer:)``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes; what is durable stays at the broker. It survives reconnects. An iterator goes on where the one before it
/// was released, so that a loop may be left and entered again; two at the same time each see every message from when they
/// were made.
///
/// Iterating throws ``STOMPError`` when the client gives up, when the broker refuses the destination after a reconnect,
/// and (with ``STOMPError/Code/cancelled``) when the iterating task is cancelled; it ends after
/// ``STOMPClient/disconnect()`` and ``unsubscribe()``.
public struct STOMPSubscription: AsyncSequence, Sendable {
    public typealias Element = STOMPMessage
    public typealias Failure = STOMPError

    let handle: STOMPSubscriptionHandle

    /// The destination that was subscribed.
    public var destination: String { handle.route.destination }
    /// How its messages are acknowledged.
    public var acknowledgement: STOMPAckMode { handle.route.acknowledgement }
    /// Messages dropped so far because a receiver was slow.
    public var droppedCount: Int { handle.droppedCount }

    /// Ends the subscription and waits for the server's answer. A durable one is deleted with all that waits in it; to
    /// keep it, release the sequence or disconnect.
    ///
    /// - Throws: ``STOMPError`` when the broker refuses or does not answer in time, and at once with
    ///   ``STOMPError/Code/cancelled`` in a cancelled task; the subscription is over in any case.
    public nonisolated(nonsending) func unsubscribe() async throws(STOMPError) {
        try await handle.core.unsubscribe(handle.route)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(cursor: STOMPCursor(handle))
    }

    /// One receiver of the messages.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let cursor: STOMPCursor

        @inlinable
        public mutating func next() async throws(STOMPError) -> STOMPMessage? {
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

typealias STOMPSubscriptionHandle = SubscriptionHandle<STOMPClientCore>
