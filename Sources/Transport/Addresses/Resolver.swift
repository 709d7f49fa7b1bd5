import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

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
            let result = await withUnsafeContinuation { continuation in
                ResolverThreads.run { continuation.resume(returning: lookUp(name, port: port)) }
            }
            return try result.get()
        }
    }

    private static func lookUp(_ name: String, port: UInt16) -> Result<[SocketAddress], TransportError> {
        var hints = addrinfo()
        hints.ai_flags = Int32(AI_NUMERICSERV)
        #if canImport(Glibc)
            hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        #else
            hints.ai_socktype = SOCK_STREAM
        #endif
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
    private struct State {
        var jobs: [@Sendable () -> Void] = []
        var running = 0
    }

    private static let state = Mutex(State())

    static func run(_ job: @escaping @Sendable () -> Void) {
        let starts = state.withLock { state in
            state.jobs.append(job)
            guard state.running < 4 else { return false }
            state.running += 1
            return true
        }
        if starts { startThread(named: "messaging-names", work) }
    }

    private static func work() {
        while let job = state.withLock({ state -> (@Sendable () -> Void)? in
            if state.jobs.isEmpty {
                state.running -= 1
                return nil
            }
            return state.jobs.removeFirst()
        }) {
            job()
        }
    }
}
