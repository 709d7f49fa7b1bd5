package import MessagingWire
import Synchronization
package import Transport

/// What the subscriptions of all clients have in common: how a caller subscribes, and that reading pauses while receivers
/// are slow.
///
/// On the loop's thread; what a caller's task runs is marked.
package protocol ClientSubscriptions: AnyObject, Sendable {
    associatedtype Core: ClientCore where Core.Subscriptions == Self
    /// The server's answer to a subscription.
    associatedtype Answer: Sendable

    /// The client, which owns this object; set before anything else.
    var core: Core! { get set }
    /// Subscriptions whose full buffers pause reading.
    var pausedRoutes: PausedRoutes<Core.Route> { get set }

    /// Registers a route, and ends the call with the server's answer.
    func subscribeNow(_ route: Core.Route, _ call: PendingCall<Result<Answer, Core.Failure>>)
    /// The task that waits for the answer was cancelled: removes its route.
    func cancelSubscribe(_ route: Core.Route)
    /// A route for the replies to requests, and the topic or destination that they are sent to; on any thread.
    func makeReplyRoute(_ replies: Core.Replies) -> (address: String, route: Core.Route)
    /// Ends a subscription without waiting for the server's answer.
    func remove(_ route: Core.Route)
}

extension ClientSubscriptions {
    /// Registers a route and waits for the server's answer; on the caller's task. The route exists before SUBSCRIBE is
    /// written.
    package nonisolated(nonsending) func register(_ route: Core.Route) async throws(Core.Failure) -> Answer {
        let core = core!
        try core.supervisor.startLoop()
        let call = PendingCall<Result<Answer, Core.Failure>>()
        let result = await call.answer {
            core.loop.execute { core.subscriptions.subscribeNow(route, call) }
        } onCancel: {
            core.loop.execute {
                core.subscriptions.cancelSubscribe(route)
                call.end(.failure(.cancelledWait))
            }
        }
        return try result.get()
    }

    /// Lets the loop make a request, and waits for the server's answer; on the caller's task. A cancelled task does not
    /// wait, but the request is made.
    package nonisolated(nonsending) func answer<Value: Sendable>(
        to request: @escaping @Sendable (Self, PendingCall<Result<Value, Core.Failure>>) -> Void
    ) async throws(Core.Failure) -> Value {
        let core = core!
        try core.supervisor.startLoop()
        let call = PendingCall<Result<Value, Core.Failure>>()
        // The answer must not come before the cancellation is noticed.
        if Task.isCancelled { call.end(.failure(.cancelledWait)) }
        core.loop.execute { request(core.subscriptions, call) }
        return try await call.answer(ifCancelled: .failure(.cancelledWait)).get()
    }

    /// Stores a batch in the queue of a subscription. Reading pauses if that fills a buffer.
    ///
    /// - Parameter readers: gets the reader, if it waits for a batch; resume them once the whole read is handed over.
    package func push(
        _ batch: Core.Route.Batch, to queue: Core.Route.Queue, of route: Core.Route,
        for readers: inout UniqueArray<Waiter<Void>>
    ) {
        if queue.push(batch, for: &readers) == .full, route.pausesReading { pauseReading(for: route) }
        if queue.connectionIsFull { pauseReading(for: route, connectionIsFull: true) }
    }

    /// Reads nothing more until a full buffer has room: that of a subscription, or that of the connection, which messages
    /// for this subscription have filled.
    private func pauseReading(for route: Core.Route, connectionIsFull: Bool = false) {
        if !connectionIsFull { pausedRoutes.add(route) }
        if core.link.pauseReading() { core.news.tell(.readingPaused(for: route.name)) }
    }

    /// A full buffer has become half empty, or is released.
    package func resumeReading() {
        pausedRoutes.removeDrained()
        core.link.receiverHasRoom(resumes: pausedRoutes.isEmpty && !core.unread.isFull)
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

    /// Removes the routes that have room again.
    package mutating func removeDrained() { routes.removeAll { !$0.isFull } }

    package mutating func removeAll() { routes = [] }
}
