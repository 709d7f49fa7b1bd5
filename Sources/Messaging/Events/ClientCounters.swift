import Synchronization
import Transport

/// Counts since a client was made.
public struct ClientCounters: Sendable, Equatable {
    /// Messages delivered to subscriptions.
    public var messagesReceived = 0
    /// Messages accepted for sending.
    public var messagesSent = 0
    /// Connections that were established.
    public var connections = 0
    /// Bytes written to the socket, TLS and WebSocket included.
    public var bytesSent = 0
    /// Bytes read from the socket, TLS and WebSocket included.
    public var bytesReceived = 0
    /// System calls that wrote, including those that wrote nothing.
    public var writes = 0
    /// System calls that read, including those that read nothing.
    public var reads = 0
}

/// The counters that have no lock of their own.
package struct ClientCounting: ~Copyable, Sendable {
    private let messagesReceived = Atomic(0)
    private let connections = Atomic(0)

    package init() {}

    package func received(_ count: Int) { messagesReceived.add(count, ordering: .relaxed) }
    package func connected() { connections.add(1, ordering: .relaxed) }

    /// - Parameter sent: counted under the link's lock, which a sender holds anyway.
    package func snapshot(sent: Int, traffic: LinkTraffic) -> ClientCounters {
        ClientCounters(
            messagesReceived: messagesReceived.load(ordering: .relaxed), messagesSent: sent,
            connections: connections.load(ordering: .relaxed), bytesSent: traffic.bytesSent,
            bytesReceived: traffic.bytesReceived, writes: traffic.writes, reads: traffic.reads)
    }
}
