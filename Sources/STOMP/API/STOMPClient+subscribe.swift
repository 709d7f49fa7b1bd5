public import Messaging
public import STOMPCore
import Synchronization

extension STOMPClient {
    /// Subscribes and returns the messages as a sequence, once the broker has confirmed it.
    ///
    /// The sequence is registered before SUBSCRIBE leaves, so that no message is missed. While the client is
    /// reconnecting, this waits for the next connection.
    ///
    /// By default a slow receiver with `acknowledgement: .auto` loses messages: when the buffer is full the oldest are dropped, which
    /// ``STOMPMessage/droppedBefore`` and ``STOMPSubscription/droppedCount`` count.
    /// `BufferPolicy(overflow: .pauseReading)` loses none. Messages with client acknowledgements are never dropped.
    /// - Parameters:
    ///   - destination: as the broker understands it: `/topic/a.b`, `/queue/c`.
    ///   - acknowledgement: how messages are acknowledged: by being delivered, or with ``STOMPMessage/acknowledge(in:)``.
    ///   - options: selector, durable name, prefetch, further headers.
    ///   - buffer: what waits for a slow receiver, and what happens then.
    /// - Throws: ``STOMPError`` with the broker's words when it refuses; the connection ends then, and is opened again.
    public nonisolated(nonsending) func subscribe(
        to destination: String, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(),
        buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPSubscription {
        guard !destination.isEmpty else {
            throw STOMPError(.invalidRequest, "The destination is empty. Use for example /queue/orders.")
        }
        let token = core.ids.add(1, ordering: .relaxed).newValue
        let route = STOMPRoute(
            id: options.durableName ?? "sub-\(token)", token: token, destination: destination,
            acknowledgement: acknowledgement,
            options: options, policy: buffer)
        let first = core.firstQueue(of: route)
        try await core.subscriptions.subscribe(route)
        return STOMPSubscription(handle: STOMPSubscriptionHandle(core: core, route: route, first: first))
    }
}
