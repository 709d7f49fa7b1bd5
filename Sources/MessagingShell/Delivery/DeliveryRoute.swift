import MessagingWire
import Synchronization
import Transport

/// Where the messages of one subscription go.
///
/// `name` and `policy` may be read on any thread. `receivers` belongs to the task that makes the route, and to the loop's thread once
/// the route is registered.
@usableFromInline
package protocol DeliveryRoute: AnyObject, Sendable {
    associatedtype Batch: DeliveryBatch where Batch.Message: ReplyMessage
    associatedtype Failure: ClientError

    /// What people call the subscription: its filters, or its destination.
    var name: String { get }
    var policy: BufferPolicy { get }
    /// Whether a full buffer pauses reading. Default: as the policy says.
    var pausesReading: Bool { get }
    var receivers: DeliveryReceivers<Batch, Failure> { get set }
}

extension DeliveryRoute {
    package typealias Queue = DeliveryQueue<Batch, Failure>

    package var pausesReading: Bool { policy.overflow == .pauseReading }

    /// Adds a receiver; after the end of the subscription it gets only what others leave.
    package func add(_ queue: Queue) { receivers.add(queue) }

    /// Removes a receiver that was released.
    package func remove(_ queue: Queue) { receivers.queues.removeAll { $0 === queue } }

    /// Ends the subscription; the first end counts.
    package func finish(_ end: DeliveryEnd<Failure>) {
        receivers.finish(end)
        receivers.replies?.subscriptionEnded(end.failure ?? .disconnectedByUser)
        receivers.replies = nil
    }

    /// Whether the buffer of any receiver is full.
    @inlinable package var isFull: Bool { receivers.queues.contains { $0.isFull } }
}

/// The queues of the receivers of one subscription, or the requests that wait for its messages.
@usableFromInline
package struct DeliveryReceivers<Batch: DeliveryBatch, Failure: ClientError>: Sendable
where Batch.Message: ReplyMessage {
    @usableFromInline package var queues: [DeliveryQueue<Batch, Failure>] = []
    /// The messages of the read that is being handled, as indexes into its records.
    package var pending: [UInt32] = []
    private var end: DeliveryEnd<Failure>?
    /// Whether the messages are replies to requests: they go to `replies`, and `queues` stay empty.
    package let areRequests: Bool
    /// The requests that wait for replies; nil after the end of the subscription.
    package fileprivate(set) weak var replies: PendingReplies<Batch.Message, Failure>?

    package init(replies: PendingReplies<Batch.Message, Failure>? = nil) {
        areRequests = replies != nil
        self.replies = replies
    }

    package mutating func add(_ queue: DeliveryQueue<Batch, Failure>) {
        if let end {
            queue.beginAfterEnd()
            return queue.finish(end)
        }
        if let other = queues.first { queue.begin(with: other) }
        queues.append(queue)
    }

    /// Ends the queues, and those that are added later; the first end counts.
    package mutating func finish(_ end: DeliveryEnd<Failure>) {
        if self.end == nil { self.end = end }
        for queue in queues { queue.finish(end) }
        queues = []
    }
}
