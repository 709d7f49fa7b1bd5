import Synchronization

/// What went through a client so far.
public struct MQTTCounters: Sendable, Equatable {
    /// Messages handed to subscriptions.
    public var messagesReceived = 0
    /// Messages accepted by `publish`.
    public var messagesPublished = 0
    /// Connections that were established.
    public var connections = 0
}

/// The counters while they count.
final class MQTTCounting: Sendable {
    private let messagesReceived = Atomic(0)
    private let connections = Atomic(0)

    func received(_ count: Int) { messagesReceived.add(count, ordering: .relaxed) }
    func connected() { connections.add(1, ordering: .relaxed) }

    func snapshot(published: Int) -> MQTTCounters {
        MQTTCounters(
            messagesReceived: messagesReceived.load(ordering: .relaxed), messagesPublished: published,
            connections: connections.load(ordering: .relaxed))
    }
}
