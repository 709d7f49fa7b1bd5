package import Transport

/// Where the messages of one subscription go. On the loop's thread, but for what is constant.
@usableFromInline
package protocol DeliveryRoute: AnyObject, Sendable {
    associatedtype Batch: DeliveryBatch
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

    /// Whether the buffer of any receiver is full.
    @inlinable package var isFull: Bool { receivers.queues.contains { $0.isFull } }
}

/// The queues of the receivers of one subscription.
@usableFromInline
package struct DeliveryReceivers<Batch: DeliveryBatch, Failure: Error>: Sendable {
    @usableFromInline package var queues: [DeliveryQueue<Batch, Failure>] = []
    private var end: DeliveryQueue<Batch, Failure>.Next?

    package init() {}

    package mutating func add(_ queue: DeliveryQueue<Batch, Failure>) {
        if let end { queue.finish(end) } else { queues.append(queue) }
    }

    /// Ends the queues, and those that are added later; the first end counts.
    package mutating func finish(_ end: DeliveryQueue<Batch, Failure>.Next) {
        if self.end == nil { self.end = end }
        for queue in queues { queue.finish(end) }
        queues = []
    }
}

/// What a subscription needs from the client that it belongs to.
package protocol SubscriptionOwner: AnyObject, Sendable {
    associatedtype Route: DeliveryRoute

    var loop: EventLoop { get }
    /// Counts the bytes that wait in all subscriptions.
    var unread: UnreadBytes { get }
    /// A receiver has emptied a full buffer to half, or a full buffer is not needed any more; from any thread.
    func drained()
    /// Removes a route and unsubscribes it at the server; on the loop's thread.
    func remove(_ route: Route)
}

extension SubscriptionOwner {
    package func makeQueue(_ policy: BufferPolicy) -> DeliveryQueue<Route.Batch, Route.Failure> {
        DeliveryQueue(policy: policy, unread: unread) { [weak self] in self?.drained() }
    }

    /// Gives a route that the loop does not know yet its first queue.
    package func firstQueue(of route: Route) -> DeliveryQueue<Route.Batch, Route.Failure> {
        let queue = makeQueue(route.policy)
        route.add(queue)
        return queue
    }
}

/// The subscriptions with a full buffer, for which reading pauses. On the loop's thread.
package struct PausedRoutes<Route: DeliveryRoute> {
    private var routes: [Route] = []

    package init() {}

    package var isEmpty: Bool { routes.isEmpty }

    package mutating func add(_ route: Route) {
        if !routes.contains(where: { $0 === route }) { routes.append(route) }
    }

    /// Removes a route. Returns whether it was there.
    package mutating func remove(_ route: Route) -> Bool {
        let count = routes.count
        routes.removeAll { $0 === route }
        return routes.count < count
    }

    /// Removes the routes that have room again.
    package mutating func removeDrained() { routes.removeAll { !$0.isFull } }

    package mutating func removeAll() { routes = [] }
}
