import Foundation
import Synchronization

/// A slow link: passes TCP connections on to a port of 127.0.0.1, what the client sends at a limited rate.
///
/// It buffers very little, in the system as well, so that what has not passed is still unacknowledged at the client.
public final class ShapedRelay: Sendable {
    /// Where clients connect to.
    public let port: Int
    private let target: Int
    private let listener: Int32
    private let bytesPerTick: Int
    private let stalls = Atomic(false)
    private let isOver = Atomic(false)
    private let most = Atomic(Int.max)
    private let upward = Atomic(0)
    private let downward = Atomic(0)

    private static let tick: Int32 = 5

    /// - Parameters:
    ///   - target: the server's port.
    ///   - bytesPerSecond: from the client to the server; the other direction is not limited.
    public static func start(to target: Int, bytesPerSecond: Int) throws -> ShapedRelay {
        let relay = try ShapedRelay(target, bytesPerSecond)
        // Has a thread of its own, since it polls, and holds the relay only while it looks.
        Thread.detachNewThread { [weak relay] in
            var connections = Connections()
            while let relay, relay.isOver.load(ordering: .relaxed) == false { relay.turn(&connections) }
            connections.closeAll()
        }
        return relay
    }

    private init(_ target: Int, _ bytesPerSecond: Int) throws {
        self.target = target
        bytesPerTick = max(1, bytesPerSecond * Int(Self.tick) / 1000)
        port = FreePort.next()
        let address = SocketAddress.loopback(UInt16(port))
        listener = address.makeSocket()
        // Connections inherit it; the system allows itself twice as much.
        var size: Int32 = 2048
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        guard address.withPointer({ bind(listener, $0, $1) }) == 0, listen(listener, 16) == 0 else {
            let code = errno
            close(listener)
            throw SystemCallError("listening on \(port)", code)
        }
        _ = fcntl(listener, F_SETFL, fcntl(listener, F_GETFL) | O_NONBLOCK)
    }

    deinit {
        close(listener)
    }

    /// Bytes that have passed from clients to the server.
    public var bytesPassed: Int { upward.load(ordering: .relaxed) }

    /// Bytes that have passed from the server to clients.
    public var bytesReturned: Int { downward.load(ordering: .relaxed) }

    /// From now on nothing passes in either direction, and nobody is told; or it passes again.
    public func setStalled(_ stalled: Bool) { stalls.store(stalled, ordering: .relaxed) }

    /// Until the next call so many bytes pass from clients to the server, counted from the start, and no more.
    public func pass(upTo count: Int) { most.store(count, ordering: .relaxed) }

    /// Ends all connections.
    public func stop() { isOver.store(true, ordering: .relaxed) }

    private struct Connections {
        var pairs: [(client: Int32, server: Int32)] = []

        func closeAll() {
            for pair in pairs {
                close(pair.client)
                close(pair.server)
            }
        }
    }

    private func turn(_ connections: inout Connections) {
        var entry = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
        if poll(&entry, 1, Self.tick) > 0 {
            let client = accept(listener, nil, nil)
            let server = SocketAddress.loopback(UInt16(target)).makeSocket()
            if client >= 0, SocketAddress.loopback(UInt16(target)).withPointer({ connect(server, $0, $1) }) == 0 {
                for descriptor in [client, server] {
                    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
                }
                connections.pairs.append((client, server))
            } else {
                close(client)
                close(server)
            }
        }
        guard !stalls.load(ordering: .relaxed) else { return }
        connections.pairs.removeAll { pair in
            let left = most.load(ordering: .relaxed) - bytesPassed
            let up = left > 0 ? pass(from: pair.client, to: pair.server, atMost: min(bytesPerTick, left)) : 0
            let down = pass(from: pair.server, to: pair.client, atMost: 65_536)
            if let up { upward.add(up, ordering: .relaxed) }
            if let down { downward.add(down, ordering: .relaxed) }
            guard up == nil || down == nil else { return false }
            close(pair.client)
            close(pair.server)
            return true
        }
    }

    /// Returns how many bytes passed; nil when one end is gone.
    private func pass(from source: Int32, to target: Int32, atMost limit: Int) -> Int? {
        var buffer = [UInt8](repeating: 0, count: limit)
        let count = recv(source, &buffer, limit, 0)
        if count == 0 { return nil }
        if count < 0 { return errno == EAGAIN || errno == EINTR ? 0 : nil }
        var sent = 0
        while sent < count {
            let written = buffer.withUnsafeBytes {
                send(target, $0.baseAddress! + sent, count - sent, Int32(MSG_NOSIGNAL))
            }
            if written > 0 {
                sent += written
            } else if errno == EAGAIN {
                var entry = pollfd(fd: target, events: Int16(POLLOUT), revents: 0)
                _ = poll(&entry, 1, 100)
                if isOver.load(ordering: .relaxed) { return nil }
            } else if errno != EINTR {
                return nil
            }
        }
        return count
    }
}
