/// Looks names up. Names that this machine can resolve by itself do not wait for names whose server is silent.
package typealias Resolver = LookUps<NameQuery, [SocketAddress]>

private let sharedResolver = Resolver()

extension LookUps where Query == NameQuery, Found == [SocketAddress] {
    package static var shared: Resolver { sharedResolver }

    /// - Parameters:
    ///   - ask: looks one name up and may block; the system's way unless a test has another.
    ///   - known: what needs no network, or nil: the system's file of hosts unless a test has another.
    package convenience init(
        maximumThreads: Int = 16, ask: @escaping @Sendable (NameQuery) -> NameQuery.Answer = { $0.lookUp() },
        known: @escaping @Sendable (NameQuery) -> NameQuery.Answer? = { $0.knownHere() }
    ) {
        self.init(maximumThreads: maximumThreads, threadName: "messaging-names", ask: ask, known: known)
    }

    /// All addresses of `endpoint`, in the system's order of preference; never empty.
    package func resolve(_ endpoint: Endpoint) async throws(TransportError) -> [SocketAddress] {
        if let known = try endpoint.knownAddresses { return known }
        guard case .host(let name, let port) = endpoint else { return [] }
        let call = PendingCall<Result<[SocketAddress], TransportError>>()
        start(NameQuery(name, .any)) { call.end($0) }
        return try await call.answer().get().map { $0.with(port: port) }
    }
}
