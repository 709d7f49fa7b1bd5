import Synchronization
import Transport

/// What went through a client so far.
public struct ClientCounters: Sendable, Equatable {
    /// Messages handed to subscriptions.
    public var messagesReceived = 0
    /// Messages taken for sending.
    public var messagesSent = 0
    /// Connections that were established.
    public var connections = 0
    /// Bytes handed to the system and taken from it, TLS and WebSocket included.
    public var bytesSent = 0
    public var bytesReceived = 0
    /// Calls to the system that wrote or read, those that found no room or nothing included.
    public var writes = 0
    public var reads = 0
}

/// The counters while they count.
package struct ClientCounting: ~Copyable, Sendable {
    private let messagesReceived = Atomic(0)
    private let connections = Atomic(0)

    package init() {}

    package func received(_ count: Int) { messagesReceived.add(count, ordering: .relaxed) }
    package func connected() { connections.add(1, ordering: .relaxed) }

    /// - Parameter sent: counted by whoever holds the link's lock anyway.
    package func snapshot(sent: Int, traffic: LinkTraffic) -> ClientCounters {
        ClientCounters(
            messagesReceived: messagesReceived.load(ordering: .relaxed), messagesSent: sent,
            connections: connections.load(ordering: .relaxed), bytesSent: traffic.bytesSent,
            bytesReceived: traffic.bytesReceived, writes: traffic.writes, reads: traffic.reads)
    }
}
