import Foundation
import Synchronization

/// A plain connection for tests that write bytes by hand. Non-blocking and polled, so that no thread is ever held.
public final class RawConnection: Sendable {
    private let descriptor: Int32
    /// Received, but beyond the terminator that somebody asked for.
    private let unread = Mutex<[UInt8]>([])

    private init(_ descriptor: Int32) {
        self.descriptor = descriptor
    }

    deinit {
        close(descriptor)
    }

    /// Connects to 127.0.0.1.
    public static func open(port: Int, timeout: Duration = .patience) async throws -> RawConnection {
        try await open(.loopback(UInt16(port)), "127.0.0.1:\(port)", timeout)
    }

    /// Connects to a Unix socket.
    public static func open(unix path: String, timeout: Duration = .patience) async throws -> RawConnection {
        try await open(.unix(path), path, timeout)
    }

    private static func open(
        _ address: SocketAddress, _ name: String, _ timeout: Duration
    ) async throws -> RawConnection {
        let descriptor = address.makeSocket()
        guard descriptor >= 0 else { throw SystemCallError("socket") }
        let connection = RawConnection(descriptor)
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        if address.withPointer({ connect(descriptor, $0, $1) }) == 0 { return connection }
        guard errno == EINPROGRESS else { throw SystemCallError("connecting to \(name)") }
        let writable = await eventually(timeout: timeout, every: .milliseconds(1)) {
            connection.isReady(POLLOUT) || Task.isCancelled
        }
        guard writable else { throw TimeoutError("no connection to \(name) within \(timeout)") }
        var code: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &size)
        guard code == 0 else { throw SystemCallError("connecting to \(name)", code) }
        return connection
    }

    private func isReady(_ events: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// Sends all bytes.
    public func send(_ bytes: [UInt8], timeout: Duration = .patience) async throws {
        var rest = bytes[...]
        let deadline = ContinuousClock.now + timeout
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if errno == EAGAIN {
                guard ContinuousClock.now < deadline else { throw TimeoutError("peer took no bytes for \(timeout)") }
                try await Task.sleep(for: .milliseconds(1))
            } else if errno != EINTR {
                throw SystemCallError("send")
            }
        }
    }

    /// Ends our direction; what the peer sends can still be received.
    public func endSending() { _ = shutdown(descriptor, Int32(SHUT_WR)) }

    /// Sends text as UTF-8.
    public func send(_ text: String) async throws { try await send(Array(text.utf8)) }

    /// What has arrived, at most 64 KiB; nil while nothing has, empty at the end of the stream.
    public func receiveNow() throws -> [UInt8]? {
        let kept = unread.withLock { unread in
            defer { unread = [] }
            return unread
        }
        if !kept.isEmpty { return kept }
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        if count >= 0 { return Array(chunk[..<count]) }
        if errno == EAGAIN || errno == EINTR { return nil }
        throw SystemCallError("recv")
    }

    /// Collects bytes until `isComplete` holds for all of them or the peer has closed.
    public func receive(
        timeout: Duration = .patience, until isComplete: ([UInt8]) -> Bool
    ) async throws -> [UInt8] {
        var collected: [UInt8] = []
        let deadline = ContinuousClock.now + timeout
        while !isComplete(collected) {
            if let chunk = try receiveNow() {
                if chunk.isEmpty { break }
                collected += chunk
                continue
            }
            guard ContinuousClock.now < deadline else {
                throw TimeoutError("only \(collected.count) bytes within \(timeout): \(collected.prefix(200))")
            }
            try await Task.sleep(for: .milliseconds(1))
        }
        return collected
    }

    /// Collects at least `count` bytes, fewer when the peer closes before.
    public func receive(atLeast count: Int, timeout: Duration = .patience) async throws -> [UInt8] {
        try await receive(timeout: timeout) { $0.count >= count }
    }

    /// Collects bytes up to and with the next `terminator`; what came after it is for the next call.
    public func receive(through terminator: UInt8, timeout: Duration = .patience) async throws -> [UInt8] {
        let bytes = try await receive(timeout: timeout) { $0.contains(terminator) }
        guard let end = bytes.firstIndex(of: terminator) else { return bytes }
        unread.withLock { $0 = Array(bytes[(end + 1)...]) }
        return Array(bytes[...end])
    }
}
