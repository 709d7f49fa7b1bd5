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
    /// What waits for the reader when this batch has filled the buffer; nil for nothing.
    func heldUp(by batch: Batch) -> HeldUp?
    var receivers: DeliveryReceivers<Batch, Failure> { get set }
}

extension DeliveryRoute {
    package typealias Queue = DeliveryQueue<Batch, Failure>

    /// Ends the subscription; the first end counts.
    package func finish(_ end: DeliveryEnd<Failure>) {
        receivers.queue?.finish(end)
        receivers.queue = nil
        receivers.replies?.subscriptionEnded(end.failure ?? .disconnectedByUser)
        receivers.replies = nil
    }

    /// Whether the buffer is full.
    @inlinable package var isFull: Bool { receivers.queue?.isFull ?? false }

    /// The messages that the reader has taken.
    var takenCount: Int { receivers.queue?.takenCount ?? 0 }
    /// The memory of the messages that wait for the reader, in bytes.
    var waitingBytes: Int { receivers.queue?.waitingBytes ?? 0 }
}

/// The queue of a subscription, or the requests that wait for its messages.
@usableFromInline
package struct DeliveryReceivers<Batch: DeliveryBatch, Failure: ClientError>: Sendable
where Batch.Message: ReplyMessage {
    /// Nil for requests, and after the end of the subscription.
    @usableFromInline package var queue: DeliveryQueue<Batch, Failure>?
    /// The messages of the read that is being handled, as indexes into its records.
    package var pending: [UInt32] = []
    /// Whether the messages are replies to requests, which go to `replies`.
    package let areRequests: Bool
    /// The requests that wait for replies; nil after the end of the subscription.
    package fileprivate(set) weak var replies: PendingReplies<Batch.Message, Failure>?

    package init(replies: PendingReplies<Batch.Message, Failure>? = nil) {
        areRequests = replies != nil
        self.replies = replies
    }
}
