/// In which order the servers of a list are tried.
///
/// Each is tried once before the client waits, in what is called a round. The server of a connection that held for
/// ``ReconnectPolicy/stableAfter`` comes first in the round after its loss; one whose connection broke earlier comes
/// last, so that a server which lets everybody in and then drops them keeps nobody from the others.
public struct ServerOrder: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case listed, shuffled
        case seeded(UInt64)
    }
    let kind: Kind

    /// As they are listed: the first is the preferred one, the others stand in for it.
    public static let listed = ServerOrder(kind: .listed)
    /// At random, drawn anew for each round: many clients spread over all servers.
    public static let shuffled = ServerOrder(kind: .shuffled)
    /// The same, and the same each time for a seed: for tests.
    public static func shuffled(seed: UInt64) -> ServerOrder { ServerOrder(kind: .seeded(seed)) }
}
