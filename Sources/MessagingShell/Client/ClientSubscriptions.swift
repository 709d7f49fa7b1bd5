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
    /// Made for the first full buffer.
    var fullBuffers: FullBuffers<Core.Route>? { get set }
    /// All that may receive messages.
    var allRoutes: [Core.Route] { get }

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

    /// Stores a batch in the queue of a subscription. Reading pauses if that fills a buffer with messages for which nothing else
    /// can be held up.
    ///
    /// - Parameter readers: gets the reader, if it waits for a batch; resume them once the whole read is handed over.
    package func push(
        _ batch: Core.Route.Batch, to queue: Core.Route.Queue, of route: Core.Route,
        for readers: inout UniqueArray<Waiter<Void>>
    ) {
        let wasStopped = fullBuffers?.stopReading ?? false
        let outcome = queue.push(batch, for: &readers)
        if queue.isFull, let heldUp = route.heldUp(by: batch), heldUp == .acknowledgements || outcome == .full {
            madeFullBuffers.add(route, holdingUp: heldUp)
        }
        if queue.connectionIsFull { madeFullBuffers.connectionIsFull(allRoutes) }
        guard !wasStopped, let slowest = fullBuffers?.slowest(of: allRoutes) else { return }
        core.link.pauseReading(for: slowest.name)
        core.news.tell(.readingPaused(for: slowest.name))
    }

    private var madeFullBuffers: FullBuffers<Core.Route> {
        if let fullBuffers { return fullBuffers }
        let made = FullBuffers<Core.Route>(loop: core.loop, interval: core.requestTimeout) { [weak core] in
            core?.subscriptions.lookAtFullBuffers()
        }
        fullBuffers = made
        return made
    }

    /// A full buffer has become half empty, or is released.
    package func resumeReading() {
        fullBuffers?.removeDrained(connectionIsFull: core.unread.isFull)
        core.link.receiverHasRoom(slowSubscription: fullBuffers?.slowest(of: allRoutes)?.name)
    }

    /// Time has passed with full buffers. The answers to calls of this client may be behind what nobody takes: the calls fail.
    private func lookAtFullBuffers() {
        guard let (reading, acknowledgements) = fullBuffers?.standingStill(allRoutes) else { return }
        if let reading {
            core.link.pauseReading(for: reading.name)
            core.news.tell(.readingPaused(for: reading.name))
            core.readingStandsStill(for: reading.name)
            core.link.endOutboxWaits(because: reading.name)
        }
        if !acknowledgements.isEmpty, core.link.withheldHoldOthersUp {
            for route in acknowledgements { core.news.tell(.readingPaused(for: route.name)) }
        }
    }
}
