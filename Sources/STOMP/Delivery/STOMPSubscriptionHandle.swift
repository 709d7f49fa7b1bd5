import Messaging
import Synchronization
import Transport

/// Ties a subscription to the life of its sequence and iterators, and keeps the place of the last iterator.
final class STOMPSubscriptionHandle: Sendable {
    /// A queue that nobody receives from, with the rest of the batch that was begun.
    struct Parked: Sendable {
        let queue: STOMPRoute.Queue
        var batch: STOMPBatch?
        var index = 0
    }

    let core: STOMPClientCore
    let route: STOMPRoute
    private let first: STOMPRoute.Queue
    private let parked: Mutex<Parked?>

    init(core: STOMPClientCore, route: STOMPRoute, first: STOMPRoute.Queue) {
        self.core = core
        self.route = route
        self.first = first
        parked = Mutex(Parked(queue: first))
    }

    deinit {
        let (core, route) = (core, route)
        core.loop.execute { core.remove(route) }
    }

    var droppedCount: Int { first.droppedCount }

    /// The place where the last iterator was released, or a new queue if there is none.
    func takeCursor() -> STOMPCursor {
        let taken = parked.withLock { parked in
            defer { parked = nil }
            return parked
        }
        if let taken { return STOMPCursor(taken, handle: self) }
        let queue = core.makeQueue(route.policy)
        let route = route
        core.loop.execute { route.add(queue) }
        return STOMPCursor(Parked(queue: queue), handle: self)
    }

    /// An iterator was released: the next one goes on in its place, unless another one's is kept already.
    func park(_ place: Parked) {
        let isKept = parked.withLock { parked in
            guard parked == nil else { return false }
            parked = place
            return true
        }
        guard !isKept else { return }
        let route = route
        core.loop.execute {
            route.drop(place.queue)
            place.queue.abandon()
        }
    }
}
