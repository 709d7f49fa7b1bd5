import Transport

/// Where servers referred the client to.
final class MQTTRedirection {
    /// What a server referred the client to.
    struct Reference {
        let endpoint: Endpoint
        /// Whether it holds from now on (Server Moved), or for the next connection only (Use Another Server).
        let isPermanent: Bool
    }

    /// The last reference, until it is tried.
    var next: Reference?
    /// The one that is tried.
    private var followed: Reference?
    /// Those that hold from now on, by the place in the list of the server that moved.
    private var permanent: [Int: Endpoint] = [:]
    /// Redirections in a row without a stable connection between them: two servers may refer to each other for ever.
    var count = 0

    /// The number of redirections in a row that are followed at once; later ones wait as for a lost connection.
    static let limit = 8

    /// Whether the next attempt follows a reference, and without a delay.
    var isFollowedAtOnce: Bool { next != nil && count <= Self.limit }

    /// Where the next attempt leads to, for a server of the list; nil for that server itself.
    func takeNext(server: Int) -> Endpoint? {
        (followed, next) = (next, nil)
        return followed?.endpoint ?? permanent[server]
    }

    /// A server has accepted the connection.
    func accepted(server: Int) {
        if let followed, followed.isPermanent { permanent[server] = followed.endpoint }
        (followed, next) = (nil, nil)
    }
}
