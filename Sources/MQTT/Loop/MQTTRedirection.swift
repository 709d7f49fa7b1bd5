import Transport

/// Where servers referred the client to.
final class MQTTRedirection {
    /// The servers of the last reference that were not tried: they are tried one after the other, for the next connection only
    /// (Use Another Server).
    var next: [Endpoint] = []
    /// The one of them that is tried.
    private var followed: Endpoint?
    /// From now on (Server Moved), by the place in the list of the server that moved: the one that has accepted.
    var permanent: [Int: Endpoint] = [:]
    /// Whether the last reference is for good.
    var isPermanent = false
    /// Whether the servers of the last reference are tried without a delay.
    var isFollowedAtOnce = false
    /// Redirections in a row without a stable connection between them: two servers may refer to each other for ever.
    var count = 0

    /// The number of redirections in a row that are followed at once; later ones wait as for a lost connection. As many
    /// servers of one reference are tried.
    static let limit = 8

    /// Where the next attempt leads to, for a server of the list; nil for that server itself.
    func takeNext(server: Int) -> Endpoint? {
        followed = next.isEmpty ? nil : next.removeFirst()
        return followed ?? permanent[server]
    }

    /// A server has accepted the connection.
    func accepted(server: Int) {
        if isPermanent, let followed { permanent[server] = followed }
        next = []
        followed = nil
    }
}
