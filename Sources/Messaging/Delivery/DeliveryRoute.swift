import Synchronization
import Transport
import Wire

/// Where the messages of one subscription go.
///
/// `policy` may be read on any thread. `receivers` belongs to the task that makes the route, and to the loop's thread once
/// the route is registered.
@usableFromInline
package protocol DeliveryRoute: AnyObject, Sendable {
    associatedtype Batch: DeliveryBatch where Batch.Message: ReplyMessage
    associatedtype Failure: ClientError

    var policy: BufferPolicy { get }
    var receivers: DeliveryReceivers<Batch, Failure> { get set }
}

extension DeliveryRoute {
    package typealias Queue = DeliveryQueue<Batch, Failure>

    /// Adds a receiver; after the end of the subscription it has nothing to wait for.
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
        if let end { queue.finish(end) } else { queues.append(queue) }
    }

    /// Ends the queues, and those that are added later; the first end counts.
    package mutating func finish(_ end: DeliveryEnd<Failure>) {
        if self.end == nil { self.end = end }
        for queue in queues { queue.finish(end) }
        queues = []
    }
}

/// Ties a subscription to the life of its sequence and iterators, and remembers where the last iterator stopped.
package final class SubscriptionHandle<Core: ClientCore>: Sendable {
    package typealias Batch = Core.Route.Batch
    package typealias Failure = Core.Failure

    package let core: Core
    package let route: Core.Route
    private let first: DeliveryQueue<Batch, Failure>
    /// The place that has no receiver at the moment.
    private let parked: Lock<DeliveryPlace<Batch, Failure>?>

    package init(core: Core, route: Core.Route, first: DeliveryQueue<Batch, Failure>) {
        self.core = core
        self.route = route
        self.first = first
        parked = Lock(DeliveryPlace(queue: first))
    }

    deinit {
        let (core, route) = (core, route)
        core.loop.execute { core.subscriptions.remove(route) }
    }

    /// The number of messages that were dropped because the first receiver was slow.
    package var droppedCount: Int { first.droppedCount }

    /// The place where the last receiver stopped; the beginning of a new queue if another receiver is active there.
    package func takePlace() -> DeliveryPlace<Batch, Failure> {
        let taken = parked.withLock { parked in
            defer { parked = nil }
            return parked
        }
        if let taken {
            if let batch = taken.batch { batch.noteTaken(batch.count) }
            return taken
        }
        let queue = core.makeQueue(route.policy)
        let route = route
        core.loop.execute { route.add(queue) }
        return DeliveryPlace(queue: queue)
    }

    /// A receiver stopped here.
    package func park(_ place: DeliveryPlace<Batch, Failure>) {
        place.batch?.noteTaken(place.index)
        let isParked = parked.withLock { parked in
            guard parked == nil else { return false }
            parked = place
            return true
        }
        // With several iterators, the place of the first one that was released remains.
        guard !isParked else { return }
        let route = route
        core.loop.execute {
            route.remove(place.queue)
            place.queue.abandon()
        }
    }
}
