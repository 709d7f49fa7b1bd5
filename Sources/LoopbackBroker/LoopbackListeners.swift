import Transport

/// Opens the same port on both loopback addresses.
enum LoopbackListeners {
    /// - Returns: no listener when the protocol is not served, otherwise one on 127.0.0.1 and, where the system has
    ///   IPv6, one on ::1.
    static func open(
        _ port: LoopbackBrokerOptions.Port, loop: EventLoop, accepted: @escaping @Sendable (SocketStream) -> Void
    ) async throws(TransportError) -> [Listener] {
        switch port.choice {
        case .none:
            return []
        case .free:
            return try await openFree { () throws(TransportError) in try await open(0, loop, accepted) }
        case .exactly(let number):
            return try await open(number, loop, accepted)
        case .preferred(let number):
            do throws(TransportError) {
                return try await open(number, loop, accepted)
            } catch {
                guard error.code == .cannotListen else { throw error }
                return try await openFree { () throws(TransportError) in try await open(0, loop, accepted) }
            }
        }
    }

    /// Opens a port that is free on both addresses. One that was free on the first may be taken on the second.
    static func openFree(
        _ open: () async throws(TransportError) -> [Listener]
    ) async throws(TransportError) -> [Listener] {
        var attempts = 0
        while true {
            do throws(TransportError) {
                return try await open()
            } catch {
                attempts += 1
                guard error.isAddressInUse else { throw error }
                guard attempts == maximumAttempts else { continue }
                throw TransportError(
                    .cannotListen,
                    "Found no port that is free on both 127.0.0.1 and ::1 in \(attempts) attempts. The last one: \(error.message) Set the port in LoopbackBrokerOptions, or end programs that use many ports.",
                    errno: error.errno)
            }
        }
    }

    private static let maximumAttempts = 16

    static func port(_ number: Int) throws(TransportError) -> UInt16 {
        guard let port = UInt16(exactly: number) else {
            throw TransportError(.badURL, "\(number) is not a port. Use a number from 0 to 65535.")
        }
        return port
    }

    private static func open(
        _ number: Int, _ loop: EventLoop, _ accepted: @escaping @Sendable (SocketStream) -> Void
    ) async throws(TransportError) -> [Listener] {
        let port = try port(number)
        let first = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: loop, accepted: accepted)
        do throws(TransportError) {
            let endpoint = Endpoint.host("::1", port: first.port)
            return [first, try await Listener.listen(on: endpoint, loop: loop, accepted: accepted)]
        } catch {
            // "localhost" may resolve to ::1, where another program could listen; without IPv6 no program can.
            guard error.isAddressInUse else { return [first] }
            await first.close()
            throw error
        }
    }
}
