import Wire

/// Opens TCP and Unix-domain connections without blocking any thread.
package enum Connector {
    /// Connects to the first address of `endpoint` that answers, in the manner of RFC 8305: families alternate, and
    /// the next address is tried as well when one has not answered within 250 ms.
    ///
    /// - Parameters:
    ///   - peerName: what the stream calls its other end; the endpoint if it is nil.
    ///   - timeout: nanoseconds for all of it, the name's look-up included.
    ///   - resolver: looks names up; IPv4 and IPv6 apart, and IPv6 goes first if its answer comes within 50 ms.
    package static func connect(
        to endpoint: Endpoint, peerName: String? = nil, timeout: Int64, resolver: Resolver = .shared, loop: EventLoop
    ) async throws(TransportError) -> SocketStream {
        let deadline = MonotonicClock.now.advanced(byNanoseconds: timeout)
        let race = ConnectRace(
            endpoint: endpoint, peerName: peerName ?? "\(endpoint)", deadline: deadline, resolver: resolver, loop: loop)
        let result = await race.call.answer {
            race.start()
        } onCancel: {
            race.cancel()
        }
        return try result.get()
    }

    static func interleaved(_ addresses: [SocketAddress]) -> [SocketAddress] {
        guard let first = addresses.first else { return [] }
        let preferred = addresses.filter { $0.family == first.family }
        let others = addresses.filter { $0.family != first.family }
        var result: [SocketAddress] = []
        for index in 0..<max(preferred.count, others.count) {
            if index < preferred.count { result.append(preferred[index]) }
            if index < others.count { result.append(others[index]) }
        }
        return result
    }
}
