import Synchronization
import Transport

/// Counts since a client was made.
public struct ClientCounters: Sendable, Equatable {
    /// Messages delivered to subscriptions.
    public var messagesReceived = 0
    /// Messages that were written for a connection: those that wait in a queue are not counted, and those that are sent
    /// again count again.
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

/// What waits in a client at one moment.
public struct ClientBacklog: Sendable, Equatable {
    /// Messages that wait for a connection or for room among those in flight. Always 0 with STOMP.
    public var queuedMessages = 0
    /// Bytes of their topics, payloads and properties.
    public var queuedBytes = 0
    /// Messages that were sent and whose final acknowledgement is missing; with STOMP frames whose receipt is missing.
    public var messagesInFlight = 0
    /// Received messages that are kept for later subscriptions, because they match none. Always 0 with STOMP.
    public var unmatchedMessages = 0
    /// Messages that subscriptions with manual acknowledgement have received and not acknowledged yet, read or not; with
    /// STOMP in the modes `client` and `client-individual`, and not rejected either. A number that grows and does not
    /// fall again means messages that the program has forgotten to acknowledge: each takes the place of a message that
    /// the server may send ahead.
    public var unacknowledgedMessages = 0
    /// Bytes in the outbox, which wait for the write that is under way.
    public var outboxBytes = 0
    /// Bytes of received messages that wait in subscriptions.
    public var unreadBytes = 0

    package init(
        queuedMessages: Int = 0, queuedBytes: Int = 0, messagesInFlight: Int, unmatchedMessages: Int = 0,
        unacknowledgedMessages: Int = 0, outboxBytes: Int, unreadBytes: Int = 0
    ) {
        self.queuedMessages = queuedMessages
        self.queuedBytes = queuedBytes
        self.messagesInFlight = messagesInFlight
        self.unmatchedMessages = unmatchedMessages
        self.unacknowledgedMessages = unacknowledgedMessages
        self.outboxBytes = outboxBytes
        self.unreadBytes = unreadBytes
    }
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
