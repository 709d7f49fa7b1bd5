import Foundation
import Synchronization

/// A server on a loopback port that is of no use, in one of the ways that networks know.
public final class BadServer: Sendable {
    public enum Kind: Sendable, CaseIterable {
        /// Nothing listens there.
        case closed
        /// The connection does not come about.
        case unreachable
        /// The connection comes about, and then nothing.
        case mute
        /// Whoever connects gets bytes that belong to no protocol.
        case garbage
        /// Whoever sends something gets the answer of a web server.
        case web
    }

    public let port: Int
    private let silent: SilentServer?
    private let descriptor: Int32
    /// Whether the server's thread closes the descriptor, perhaps before `deinit` runs.
    private let hasThread: Bool
    private let isOver = Atomic(false)

    /// Starts to listen, unless that is what it does not do; ends with the last reference.
    public static func start(_ kind: Kind) throws -> BadServer {
        let server = try BadServer(kind)
        guard server.hasThread else { return server }
        // Has a thread of its own, since it blocks, and holds the server only while it looks.
        let descriptor = server.descriptor
        Thread.detachNewThread { [weak server] in
            while server?.isOver.load(ordering: .relaxed) == false {
                var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                guard poll(&entry, 1, 20) > 0 else { continue }
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { continue }
                var bytes = (0..<64).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 5) }
                if kind == .web {
                    var request = [UInt8](repeating: 0, count: 4_096)
                    _ = request.withUnsafeMutableBytes { read(connection, $0.baseAddress, $0.count) }
                    bytes = Array("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".utf8)
                }
                _ = bytes.withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
                close(connection)
            }
            close(descriptor)
        }
        return server
    }

    private init(_ kind: Kind) throws {
        hasThread = kind == .garbage || kind == .web
        silent = kind == .unreachable ? try SilentServer() : nil
        port = silent.map { Int($0.port) } ?? FreePort.next()
        guard kind == .mute || hasThread else {
            descriptor = -1
            return
        }
        let address = SocketAddress.loopback(UInt16(port))
        descriptor = address.makeSocket()
        guard address.withPointer({ bind(descriptor, $0, $1) }) == 0, listen(descriptor, 16) == 0 else {
            let code = errno
            close(descriptor)
            throw SystemCallError("listening on \(port)", code)
        }
        _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
    }

    deinit {
        isOver.store(true, ordering: .relaxed)
        if descriptor >= 0, !hasThread { close(descriptor) }
    }
}
