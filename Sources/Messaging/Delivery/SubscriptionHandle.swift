import Synchronization
import Transport

/// Ties a subscription to the life of its sequence and iterators, and remembers where the last iterator stopped.
package final class SubscriptionHandle<Core: SubscriptionOwner>: DeliverySource {
    package typealias Batch = Core.Route.Batch
    package typealias Failure = Core.Route.Failure

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
        core.loop.execute { core.remove(route) }
    }

    package var droppedCount: Int { first.droppedCount }

    package func takePlace() -> DeliveryPlace<Batch, Failure> {
        let taken = parked.withLock { parked in
            defer { parked = nil }
            return parked
        }
        if let taken { return taken }
        let queue = core.makeQueue(route.policy)
        let route = route
        core.loop.execute { route.add(queue) }
        return DeliveryPlace(queue: queue)
    }

    package func park(_ place: DeliveryPlace<Batch, Failure>) {
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
