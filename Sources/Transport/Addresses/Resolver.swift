import Synchronization

/// Turns names into addresses with `getaddrinfo`, which blocks, on threads of its own: never on a cooperative one.
package enum Resolver {
    /// The addresses of `endpoint`, in the system's order of preference; never empty.
    package static func resolve(_ endpoint: Endpoint) async throws(TransportError) -> [SocketAddress] {
        switch endpoint {
        case .unix(let path):
            guard let address = SocketAddress(unixPath: path) else {
                throw TransportError(
                    .badURL, "'\(path)' cannot be the path of a Unix socket: it must be 1 to 107 bytes without NUL")
            }
            return [address]
        case .host(let name, let port):
            // A literal address needs no look-up, and should not stand behind somebody's slow one.
            if case .success(let addresses) = lookUp(name, port: port, flags: Int32(AI_NUMERICHOST)) {
                return addresses
            }
            let result = await withUnsafeContinuation { continuation in
                ResolverThreads.run { threads in
                    continuation.resume(returning: threads.flatMap { lookUp(name, port: port, flags: 0) })
                }
            }
            return try result.get()
        }
    }

    private static func lookUp(
        _ name: String, port: UInt16, flags: Int32
    ) -> Result<[SocketAddress], TransportError> {
        // getaddrinfo would see the part before it.
        guard !name.utf8.contains(0) else {
            return .failure(TransportError(.unknownHost, "a host name cannot hold a NUL character"))
        }
        var hints = addrinfo()
        hints.ai_flags = Int32(AI_NUMERICSERV) | flags
        hints.ai_socktype = LibC.streamSocketType
        var list: UnsafeMutablePointer<addrinfo>?
        let code = getaddrinfo(name, String(port), &hints, &list)
        guard code == 0, let list else {
            let reason = code == 0 ? "no address" : String(cString: gai_strerror(code))
            return .failure(
                TransportError(.unknownHost, "cannot find the host '\(name)': \(reason); check its spelling and DNS"))
        }
        defer { freeaddrinfo(list) }
        var addresses: [SocketAddress] = []
        var entry: UnsafeMutablePointer<addrinfo>? = list
        while let current = entry {
            if let address = current.pointee.ai_addr {
                addresses.append(SocketAddress(address, size: current.pointee.ai_addrlen))
            }
            entry = current.pointee.ai_next
        }
        guard !addresses.isEmpty else {
            return .failure(TransportError(.unknownHost, "the host '\(name)' has no address"))
        }
        return .success(addresses)
    }
}

/// At most four threads that look names up, started when needed: one slow name server holds up no other look-up,
/// and a fleet of clients does not start a thread each.
private enum ResolverThreads {
    /// Is given the reason if there is no thread to run on.
    typealias Job = @Sendable (Result<Void, TransportError>) -> Void

    private struct State {
        var jobs: [Job] = []
        var running = 0
    }

    private static let state = Lock(State())

    static func run(_ job: @escaping Job) {
        let starts = state.withLock { state in
            state.jobs.append(job)
            guard state.running < 4 else { return false }
            state.running += 1
            return true
        }
        guard starts else { return }
        let code = startThread(named: "messaging-names", work)
        guard code != 0 else { return }
        let orphans = state.withLock { state -> [Job] in
            state.running -= 1
            guard state.running == 0 else { return [] }
            defer { state.jobs = [] }
            return state.jobs
        }
        let failure = TransportError(
            .systemLimit, "cannot look names up: no thread can be started (\(System.describe(code)))", errno: code)
        for job in orphans { job(.failure(failure)) }
    }

    private static func work() {
        while let job = state.withLock({ state -> Job? in
            if state.jobs.isEmpty {
                state.running -= 1
                return nil
            }
            return state.jobs.removeFirst()
        }) {
            job(.success(()))
        }
    }
}
