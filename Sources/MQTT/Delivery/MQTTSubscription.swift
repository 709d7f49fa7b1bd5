public import MQTTCore
import Messaging

/// The messages that match one topic filter, as a sequence; made by ``MQTTClient/subscribe(to:qos:buffer:acknowledgement:options:)``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes. It survives reconnects. An iterator goes on where the one before it was released, so that a loop may be
/// left and entered again; two at the same time each see every message from when they were made.
///
/// Iterating throws ``MQTTError`` when the client gives up, when the server refuses the filter after a reconnect, and
/// (with ``MQTTError/Code/cancelled``) when the iterating task is cancelled; it ends after ``MQTTClient/disconnect()``
/// and ``unsubscribe()``.
public struct MQTTSubscription: AsyncSequence, Sendable {
    public typealias Element = MQTTMessage
    public typealias Failure = MQTTError

    let handle: MQTTSubscriptionHandle

    /// The topic filter, or the first of several.
    public var filter: String { handle.route.requests.first?.filter ?? "" }
    /// The topic filters; none for messages that match no subscription.
    public var filters: [String] { handle.route.requests.map(\.filter) }
    /// What the server said to each filter when the subscription was made: the QoS that it granted, or why not
    /// [MQTT-3.9.3-1].
    public let grants: [MQTTReasonCode]
    /// The highest quality of service that the server granted when the subscription was made.
    public var grantedQoS: QoS {
        grants.filter { !$0.isError }.map(\.rawValue).max().flatMap(QoS.init(rawValue:)) ?? .atMostOnce
    }
    /// Messages dropped so far because a receiver was slow.
    public var droppedCount: Int { handle.droppedCount }

    /// Ends the subscription and waits for the server's answer.
    public nonisolated(nonsending) func unsubscribe() async throws(MQTTError) {
        try await handle.core.unsubscribe(handle.route)
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(cursor: MQTTCursor(handle))
    }

    /// One receiver of the messages.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let cursor: MQTTCursor

        @inlinable
        public mutating func next() async throws(MQTTError) -> MQTTMessage? {
            if let message = cursor.next() { return message }
            return try await cursor.nextBatch()
        }

        @inlinable
        public mutating func next(isolation actor: isolated (any Actor)?) async throws(MQTTError) -> MQTTMessage? {
            if let message = cursor.next() { return message }
            return try await cursor.nextBatch()
        }
    }
}

typealias MQTTSubscriptionHandle = SubscriptionHandle<MQTTClientCore>
