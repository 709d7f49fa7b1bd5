import Messaging
import STOMPCore
import Synchronization
import Transport

/// Subscribing and unsubscribing, on the caller's task.
extension STOMPSubscriptions {
    func makeReplyRoute(_ replies: STOMPClientCore.Replies) -> (address: String, route: STOMPRoute) {
        let token = core.ids.add(1, ordering: .relaxed).newValue
        // RabbitMQ names the subscription of a reply as the SEND named its `reply-to`.
        let name = "/temp-queue/replies-\(token)"
        return (
            name,
            STOMPRoute(
                id: name, token: token, destination: name, acknowledgement: .auto, options: STOMPSubscribeOptions(),
                policy: BufferPolicy(), replies: replies)
        )
    }

    /// Removes a route and waits for the broker's receipt. A cancelled task does not wait; UNSUBSCRIBE is sent all the
    /// same.
    nonisolated(nonsending) func unsubscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let core = core!
        let receipt = core.ids.add(1, ordering: .relaxed).newValue
        let call = STOMPRoute.Call()
        // The receipt must not come before the cancellation is noticed.
        if Task.isCancelled { call.end(.failure(.cancelledWait)) }
        core.loop.execute { core.subscriptions.unsubscribeNow(route, receipt, call) }
        try await call.answer(ifCancelled: .failure(.cancelledWait)).get()
    }
}
