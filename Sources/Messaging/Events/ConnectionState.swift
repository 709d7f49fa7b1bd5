/// Where a client's connection stands.
public enum ConnectionState<Failure: Error & Sendable>: Sendable {
    /// Not connected, and not trying to be; with the reason if it was not ours.
    indirect case disconnected(Failure?)
    /// Opening a connection; attempts count from 1 since the last success, a round through all servers as one.
    case connecting(attempt: Int)
    case connected
    /// Waiting before the next attempt.
    indirect case waiting(Duration, attempt: Int, after: Failure)
    /// Saying good-bye, or ending a connection that is of no use any more.
    case disconnecting
    /// Without a connection by the user's wish, until resumed; what waits goes on waiting.
    case suspended

    /// Whether messages flow.
    public var isConnected: Bool {
        if case .connected = self { true } else { false }
    }
}
