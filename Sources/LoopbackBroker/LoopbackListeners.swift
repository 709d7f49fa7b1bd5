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
            return try await openFree(loop, accepted)
        case .exactly(let number):
            return try await open(number, loop, accepted)
        case .preferred(let number):
            do throws(TransportError) {
                return try await open(number, loop, accepted)
            } catch {
                guard error.code == .cannotListen else { throw error }
                return try await openFree(loop, accepted)
            }
        }
    }

    private static func openFree(
        _ loop: EventLoop, _ accepted: @escaping @Sendable (SocketStream) -> Void
    ) async throws(TransportError) -> [Listener] {
        var last = TransportError(.cannotListen, "No port is free on both 127.0.0.1 and ::1.")
        for _ in 0..<16 {
            do throws(TransportError) {
                return try await open(0, loop, accepted)
            } catch {
                // The number that was free on one address is taken on the other: another number.
                last = error
            }
        }
        throw last
    }

    private static func open(
        _ number: Int, _ loop: EventLoop, _ accepted: @escaping @Sendable (SocketStream) -> Void
    ) async throws(TransportError) -> [Listener] {
        guard let port = UInt16(exactly: number) else {
            throw TransportError(.badURL, "\(number) is not a port. Use a number from 0 to 65535.")
        }
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
