import Synchronization
package import Transport

/// Where the messages of one subscription go. Touched on the loop's thread only.
package protocol DeliveryRoute: AnyObject, Sendable {
    associatedtype Batch: DeliveryBatch
    associatedtype Failure: Error

    var policy: BufferPolicy { get }
    func add(_ queue: DeliveryQueue<Batch, Failure>)
    func remove(_ queue: DeliveryQueue<Batch, Failure>)
}

/// What a subscription needs from the client that it belongs to.
package protocol SubscriptionOwner: AnyObject, Sendable {
    associatedtype Route: DeliveryRoute

    var loop: EventLoop { get }
    func makeQueue(_ policy: BufferPolicy) -> DeliveryQueue<Route.Batch, Route.Failure>
    /// Takes a route out and tells the server; on the loop's thread.
    func remove(_ route: Route)
}

/// Ties a subscription to the life of its sequence and iterators, and keeps the place of the last iterator.
package final class SubscriptionHandle<Core: SubscriptionOwner>: Sendable {
    package typealias Queue = DeliveryQueue<Core.Route.Batch, Core.Route.Failure>

    /// Where an iterator stands: a queue, with the rest of the batch that was begun.
    package struct Place: Sendable {
        package let queue: Queue
        package var batch: Core.Route.Batch?
        package var index = 0

        package init(queue: Queue, batch: Core.Route.Batch? = nil, index: Int = 0) {
            self.queue = queue
            self.batch = batch
            self.index = index
        }
    }

    package let core: Core
    package let route: Core.Route
    private let first: Queue
    /// The place that nobody receives at.
    private let parked: Lock<Place?>

    package init(core: Core, route: Core.Route, first: Queue) {
        self.core = core
        self.route = route
        self.first = first
        parked = Lock(Place(queue: first))
    }

    deinit {
        let (core, route) = (core, route)
        core.loop.execute { core.remove(route) }
    }

    package var droppedCount: Int { first.droppedCount }

    /// The place where the last iterator was released, or a new queue if there is none.
    package func takePlace() -> Place {
        let taken = parked.withLock { parked in
            defer { parked = nil }
            return parked
        }
        if let taken { return taken }
        let queue = core.makeQueue(route.policy)
        let route = route
        core.loop.execute { route.add(queue) }
        return Place(queue: queue)
    }

    /// An iterator was released: the next one goes on in its place, unless another one's is kept already.
    package func park(_ place: Place) {
        let isKept = parked.withLock { parked in
            guard parked == nil else { return false }
            parked = place
            return true
        }
        guard !isKept else { return }
        let route = route
        core.loop.execute {
            route.remove(place.queue)
            place.queue.abandon()
        }
    }
}
