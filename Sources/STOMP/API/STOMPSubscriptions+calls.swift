import MessagingShell
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

    /// Removes a route and waits for the broker's receipt.
    nonisolated(nonsending) func unsubscribe(_ route: STOMPRoute) async throws(STOMPError) {
        let receipt = core.ids.add(1, ordering: .relaxed).newValue
        try await answer { $0.unsubscribeNow(route, receipt, $1) }
    }
}
