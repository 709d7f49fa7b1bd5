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
    /// The one queue that it consumes; nil for patterns of queues, and for topics whose messages are not acknowledged.
    var queue: ByteKey?
    /// How many unacknowledged messages it may hold.
    var prefetch: Int
    /// What was delivered and not acknowledged, oldest first.
    var unacknowledged: [Unacknowledged] = []

    /// Messages of a topic that are to be acknowledged wait in a queue that is the consumer's own and ends with it, unless
    /// they wait in that of a durable subscription.
    var hasOwnQueue: Bool { destination.kind == .topic && durable == nil && ackMode != .auto }
    var consumesQueues: Bool { destination.kind != .topic || durable != nil || hasOwnQueue }
    var hasCredit: Bool { ackMode == .auto || unacknowledged.count < prefetch }

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

/// A message in a queue.
package struct QueuedMessage: Sendable {
    package var message: Message
    /// The number that its `message-id` says, the same for every delivery.
    package var number: UInt64
    /// How often it was delivered already.
    package var deliveries = 0
    /// Whether a consumer has rejected it, and it was to be delivered once more.
    var wasRejected = false
}

/// A queue: messages that wait, and those who consume them.
struct QueueRecord: Sendable {
    /// In the order of their numbers.
    var messages: [QueuedMessage] = []
    var bytes = 0
    var consumers: [Int] = []
    /// Whose turn it is.
    var cursor = 0
    /// The connection that a temporary queue belongs to.
    var owner: Router.ConnectionID?
    /// The topics whose messages it collects for a subscription; nil for a queue that clients send to.
    var topics: Destination?
    /// Which of these messages it collects; nil for all.
    var selector: Selector?

    mutating func insert(_ entry: QueuedMessage) {
        messages.insert(entry, at: place(of: entry.number))
        bytes += entry.message.size
    }

    /// Drops the oldest messages until it is within its bounds; returns how many.
    mutating func dropExcess(over limits: LoopbackBrokerLimits) -> Int {
        var dropped = 0
        while dropped < messages.count,
            messages.count - dropped > limits.maximumQueueMessages || bytes > limits.maximumQueueBytes
        {
            bytes -= messages[dropped].message.size
            dropped += 1
        }
        messages.removeFirst(dropped)
        return dropped
    }

    /// Where a number would be.
    private func place(of number: UInt64) -> Int {
        var (low, high) = (0, messages.count)
        while low < high {
            let middle = (low + high) / 2
            if messages[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// What the router knows of a STOMP connection.
struct STOMPConnectionRecord: Sendable {
    var clientID: String?
    var consumers: [Int] = []
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

    package var messageID: String { "loopback-\(entry.number)" }
    package var ackID: String? { delivery == 0 ? nil : "\(consumer)-\(delivery)" }
    package var isRedelivered: Bool { entry.deliveries > 1 }
}

/// Why a STOMP frame cannot be processed; the text goes into ERROR.
package struct STOMPRefusal: Error, Sendable {
    package let message: String
}
