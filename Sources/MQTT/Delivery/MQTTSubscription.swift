public import MQTTCore
public import MessagingShell
import MessagingWire

/// The messages that match one topic filter, as a sequence; made by `subscribe` and `subscription` of
/// ``MQTTClient``.
///
/// The subscription lives as long as this value or an iterator of it: when the last copy is released, the client
/// unsubscribes. It survives reconnects. It has one reader at a time: an iterator that asks for its first message continues
/// where the one before it stopped, so that a loop may be left and entered again, and a task may be restarted while the old one
/// unwinds. For a second reader subscribe once more, with `retainHandling: .doNotSend` if the first has the retained messages.
///
/// Iterating throws ``MQTTError`` when the client stops connecting, when the server refuses the filter after a reconnect,
/// and with ``MQTTError/Code/cancelled`` when the iterating task is cancelled or another iterator has continued; it ends
/// after ``MQTTClient/disconnect()`` and ``unsubscribe()``.
///
/// A step of the loop takes some ten nanoseconds in a task of its own or a `@concurrent` function. In an actor, on the main
/// actor and in a `nonisolated(nonsending)` function Swift looks up the executor at each step, which takes a hundred; with
/// ``batches`` that happens once for each read.
public struct MQTTSubscription: MessageSubscription {
    let handle: MQTTSubscriptionHandle

    /// The topic filter, or the first of several.
    public var filter: String { handle.route.requests.first?.filter ?? "" }
    /// The topic filters; empty for the messages that match no subscription.
    public var filters: [String] { handle.route.requests.map(\.filter) }
    /// The server's answer to each filter when the subscription was made: the QoS that it granted, or why it refused
    /// [MQTT-3.9.3-1]. Empty for a declared subscription; ``MQTTEvent/subscribed(filter:_:)`` and
    /// ``MQTTEvent/subscriptionLost(filter:_:)`` report its answers.
    public let reasonCodes: [MQTTReasonCode]
    /// The properties of SUBACK: Reason String, user properties; 5.0 only.
    public let grantProperties: MQTTProperties
    /// The highest quality of service that the server granted when the subscription was made; for a declared one the highest
    /// that it has granted so far. Nil before its first answer, and for the messages that match no subscription.
    public var grantedQoS: QoS? {
        guard !reasonCodes.isEmpty else { return handle.route.grantedQoS }
        return reasonCodes.filter { !$0.isError }.map(\.rawValue).max().flatMap(QoS.init(rawValue:))
    }

    /// Unsubscribes and waits for the server's answer. Without a connection, after ``MQTTClient/disconnect()`` too, this
    /// returns at once, and UNSUBSCRIBE is sent over the next connection, if the server has kept the session.
    ///
    /// - Throws: ``MQTTError`` with ``MQTTError/Code/refused`` when the server refuses (5.0 only), with
    ///   ``MQTTError/Code/timedOut`` without an answer in time, and at once with ``MQTTError/Code/cancelled`` in a cancelled
    ///   task. This sequence ends, even if the call throws.
    public nonisolated(nonsending) func unsubscribe() async throws(MQTTError) {
        _ = try await handle.core.subscriptions.unsubscribe(handle.route, properties: [])
    }

    /// Unsubscribes with these properties and returns the server's UNSUBACK.
    ///
    /// - Parameter properties: user properties of UNSUBSCRIBE; 5.0 only.
    /// - Returns: the server's answer; empty if UNSUBSCRIBE was not sent, because there is no connection or another
    ///   subscription has the same filters. If it refused some filters only, their codes show which.
    /// - Throws: as ``unsubscribe()`` does; ``MQTTError/Code/refused`` when the server refuses every filter.
    @discardableResult
    public nonisolated(nonsending) func unsubscribe(
        properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTUnsubscribeResult {
        try await handle.core.subscriptions.unsubscribe(handle.route, properties: properties)
    }

    /// The filters, with the QoS that the server has granted.
    public var description: String {
        let filters = filters.isEmpty ? "unmatched messages" : OneLine.text(filters.joined(separator: ", "))
        return "MQTTSubscription(\(filters)\(grantedQoS.map { ", \($0)" } ?? ""))"
    }

    public var droppedCount: Int { handle.droppedCount }
    public var batches: MessageBatches<MQTTBatch, MQTTError> { MessageBatches(handle) }
    public func makeAsyncIterator() -> Iterator { Iterator(cursor: DeliveryCursor(handle)) }

    /// The reader of the messages. It is not generic, because the compiler would not specialize a generic
    /// asynchronous `next()`.
    public struct Iterator: AsyncIteratorProtocol {
        @usableFromInline let cursor: DeliveryCursor<MQTTBatch, MQTTError>

        @inlinable public mutating func next() async throws(MQTTError) -> MQTTMessage? {
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

/// Whether the client or the receiver acknowledges the QoS 1 and 2 messages of a subscription.
public struct MQTTAcknowledgement: Sendable, Equatable {
    enum Kind { case automatic, manual }
    let kind: Kind

    /// The client acknowledges a message once it has received it for the subscription, as long as the buffer has room; the
    /// acknowledgement may leave just before the message is in the buffer.
    public static let automatic = MQTTAcknowledgement(kind: .automatic)
    /// The receiver acknowledges with ``MQTTMessage/acknowledge()``. Until then the message counts against Receive Maximum,
    /// and the server sends it again after a reconnect.
    public static let manual = MQTTAcknowledgement(kind: .manual)
}

/// The server's answer to UNSUBSCRIBE.
public struct MQTTUnsubscribeResult: Sendable, Hashable {
    /// One code for each filter; empty before 5.0.
    public var reasonCodes: [MQTTReasonCode]
    /// Reason String and user properties; 5.0 only.
    public var properties: MQTTProperties

    /// Makes a result, for tests.
    public init(reasonCodes: [MQTTReasonCode] = [], properties: MQTTProperties = []) {
        self.reasonCodes = reasonCodes
        self.properties = properties
    }
}

/// A message of an MQTT subscription and the value in it; see ``MQTTDecodedMessages``.
public typealias MQTTDecodedMessage<Value: Sendable> = DecodedMessage<MQTTMessage, Value>
/// The messages of a subscription with their values; see ``MQTTSubscription/values(_:as:)``.
public typealias MQTTDecodedMessages<Value: Sendable> = DecodedMessages<MQTTSubscription, Value>

extension MQTTDecodedMessage where Message == MQTTMessage {
    /// Acknowledges the message, as ``MQTTMessage/acknowledge()`` does, whether or not its payload could be decoded.
    public func acknowledge() { message.acknowledge() }
}

typealias MQTTSubscriptionHandle = SubscriptionHandle<MQTTClientCore>
