import Synchronization

/// What went through a client so far.
public struct ClientCounters: Sendable, Equatable {
    /// Messages handed to subscriptions.
    public var messagesReceived = 0
    /// Messages taken for sending.
    public var messagesSent = 0
    /// Connections that were established.
    public var connections = 0
}

/// The counters while they count.
package final class ClientCounting: Sendable {
    private let messagesReceived = Atomic(0)
    private let connections = Atomic(0)

    package init() {}

    package func received(_ count: Int) { messagesReceived.add(count, ordering: .relaxed) }
    package func connected() { connections.add(1, ordering: .relaxed) }

    /// - Parameter sent: counted by whoever holds the link's lock anyway.
    package func snapshot(sent: Int) -> ClientCounters {
        ClientCounters(
            messagesReceived: messagesReceived.load(ordering: .relaxed), messagesSent: sent,
            connections: connections.load(ordering: .relaxed))
    }
}
