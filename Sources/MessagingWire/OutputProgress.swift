/// How far the bytes of a connection have come, as the caller counts them where it writes them.
///
/// Positions may include what lies below the protocol (TLS records, frames of WebSocket), as long as both use the same count.
public struct OutputProgress: Sendable, Equatable {
    /// Bytes of this connection so far: those that were written and those that wait, the engine's `output` included.
    public var total: Int
    /// How many of them the peer's system has acknowledged. A lower bound will do.
    public var acknowledged: Int
    /// If the caller reads nothing until the peer has taken more of what waits: how many bytes have moved so far, also where
    /// the system does not report what the peer has acknowledged.
    package var movedBytes: Int?

    /// A connection that makes no progress, or whose progress is unknown.
    public init(total: Int = 0, acknowledged: Int = 0) {
        self.total = total
        self.acknowledged = acknowledged
    }
}
