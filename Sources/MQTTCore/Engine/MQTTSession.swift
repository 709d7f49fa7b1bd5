/// What outlives a connection: packet identifiers, messages in flight and in the queue, identifiers of received QoS 2
/// messages. A server moves it from the engine of one connection to the engine of the next.
public struct MQTTSession: Sendable {
    /// What we send.
    var window = SendWindow()
    /// What we received and have to acknowledge.
    var inbound = InboundOrder()
    /// QoS 2 messages that were delivered and not released by PUBREL [MQTT 5.0 4.3.3-10].
    var received = PacketIDBits()
    /// Those of them that the application has acknowledged, so that a repetition is answered at once.
    var answered = PacketIDBits()
    /// Refusals of messages of an earlier connection, until the peer repeats them and can be told.
    var refused: [UInt16: UInt8] = [:]
    /// Those whose PUBREC was sent on this connection: they hold a place of our Receive Maximum.
    var awaitingRelease = PacketIDBits()
    /// A server may know of this session: a connection was accepted, and the session was to outlive it.
    var isHeld = false

    /// A session in which nothing happened yet.
    public init() {}

    /// The number of messages in the queue.
    public var queuedCount: Int { window.queue.count }
    /// The number of messages sent and not finally acknowledged.
    public var inFlightCount: Int { window.inFlightCount }

    /// Forgets what was received: the peer's side of it is gone.
    mutating func forgetReceived() {
        received.removeAll()
        answered.removeAll()
        awaitingRelease.removeAll()
        refused.removeAll()
        inbound.removeAllCarried()
    }

    /// The connection is gone.
    mutating func connectionClosed() {
        window.connectionClosed()
        inbound.connectionClosed()
        awaitingRelease.removeAll()
    }

    /// Forgets everything. The tokens of deliveries go on, so that one of before is not taken for a new one.
    mutating func reset() {
        window = SendWindow()
        inbound.connectionClosed()
        forgetReceived()
        isHeld = false
    }
}
