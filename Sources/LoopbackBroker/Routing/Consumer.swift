import MessagingWire
import STOMPCore

/// One subscription of a STOMP client.
struct Consumer: Sendable {
    var connection: Router.ConnectionID
    /// Nil for a client of 1.0 that gave none.
    var id: String?
    var destination: Destination
    var ackMode: STOMPAckMode
    var selector: Selector?
    /// The queue of a durable subscription to a topic; nil for all others.
    var durable: ByteKey?
    /// The queues that it consumes; none for topics whose messages are not acknowledged.
    var queues: Set<ByteKey> = []
    /// Those of them in which it has lost its turn because it had no room.
    var passedOver = Ring<ByteKey>()
    /// How many unacknowledged messages it may hold.
    var prefetch: Int
    /// What was delivered and not acknowledged.
    var held = HeldMessages()

    /// Messages of a topic that are to be acknowledged wait in a queue that is the consumer's own and ends with it, unless
    /// they wait in that of a durable subscription.
    var hasOwnQueue: Bool { destination.kind == .topic && durable == nil && ackMode != .auto }
    var consumesQueues: Bool { destination.kind != .topic || durable != nil || hasOwnQueue }
    var hasCredit: Bool { ackMode == .auto || held.count < prefetch }

    func accepts(_ message: Message) -> Bool { selector?.accepts(message.stompHeaders) ?? true }
}

/// A message that a consumer holds.
struct Unacknowledged: Sendable {
    /// The number of the delivery, which rises.
    var delivery: UInt64
    var entry: QueuedMessage
    /// Where it came from.
    var queue: ByteKey
}

/// What the router knows of a STOMP connection.
struct STOMPConnectionRecord: Sendable {
    var clientID: String?
    /// In the order of their subscriptions.
    var consumers: [Int] = []
    var consumersByID: [ByteKey: Int] = [:]
    /// Its temporary queues.
    var queues: [ByteKey] = []
    var transactions: [ByteKey: Transaction] = [:]
    /// It has no room for messages of queues at the moment.
    var isFull = false
}

/// What a client did between BEGIN and COMMIT.
struct Transaction: Sendable {
    enum Step: Sendable {
        case send(Message, destination: Destination)
        case answer(delivery: UInt64, consumer: Int, accepts: Bool, requeues: Bool?)
    }

    var steps: [Step] = []
    var bytes = 0
}

/// A MESSAGE on its way to a STOMP connection.
package struct STOMPDelivery: Sendable {
    package var connection: Router.ConnectionID
    var consumer: Int
    package var subscriptionID: String?
    /// What the `destination` header says.
    package var destination: String
    package var entry: QueuedMessage
    /// The number of the delivery; 0 for ack mode auto.
    package var delivery: UInt64
    /// Nil for a topic.
    var queue: ByteKey?

    package var messageID: String { "\(Self.messageIDPrefix)\(entry.number)" }
    private static let messageIDPrefix = "loopback-"

    /// The number of the message that has this `message-id`.
    static func number(ofMessageID id: String) -> UInt64? {
        id.utf8.starts(with: messageIDPrefix.utf8) ? UInt64(id.dropFirst(messageIDPrefix.count)) : nil
    }
    package var ackID: String? { delivery == 0 ? nil : "\(consumer)-\(delivery)" }
    package var isRedelivered: Bool { entry.deliveries > 1 }
}

/// Why a STOMP frame cannot be processed; the text goes into ERROR.
package struct STOMPRefusal: Error, Sendable {
    package let message: String
}
