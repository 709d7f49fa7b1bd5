import Foundation
import Synchronization

/// A link that a test can break: listens on a loopback port and passes bytes on to another one, both ways.
public final class TCPRelay: Sendable {
    private enum Mode {
        case open
        /// Bytes disappear, and no end of connection shows it, as on a link without a carrier.
        case swallowing
        /// Connections end, and new ones are refused.
        case cut
    }

    /// The state that the relay's threads share; they end with the relay.
    private final class Shared: Sendable {
        let mode = Mutex(Mode.open)
        let lastWords: [UInt8]
        /// One of so many reads is followed by a pause of 50 ms; 0 for none.
        let stallInterval: Int
        let isOver = Atomic(false)
        let swallowed = Atomic(0)

        init(lastWords: [UInt8], stallInterval: Int) {
            self.lastWords = lastWords
            self.stallInterval = stallInterval
        }
    }

    public let port: Int
    private let shared: Shared

    /// - Parameters:
    ///   - target: The port of the server on 127.0.0.1.
    ///   - lastWords: The first connection's bytes disappear after this text of the client, however busy the machine is.
    ///   - stallInterval: One of so many reads is followed by a pause of 50 ms, as on a link that loses packets. Default:
    ///     0, none.
    public static func start(
        to target: Int, swallowingAfter lastWords: String = "", stallingOneReadIn stallInterval: Int = 0
    ) throws -> TCPRelay {
        try TCPRelay(to: target, lastWords: Array(lastWords.utf8), stallInterval: stallInterval)
    }

    private init(to target: Int, lastWords: [UInt8], stallInterval: Int) throws {
        shared = Shared(lastWords: lastWords, stallInterval: stallInterval)
        port = FreePort.next()
        let address = SocketAddress.loopback(UInt16(port))
        let listener = address.makeSocket()
        var on: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        guard address.withPointer({ bind(listener, $0, $1) }) == 0, listen(listener, 64) == 0 else {
            let code = errno
            close(listener)
            throw SystemCallError("listening on \(port)", code)
        }
        let shared = shared
        Thread.detachNewThread { Self.accept(listener, to: target, shared) }
    }

    deinit {
        shared.isOver.store(true, ordering: .relaxed)
    }

    /// Bytes of the client that went nowhere.
    public var swallowedCount: Int { shared.swallowed.load(ordering: .relaxed) }

    /// From now on bytes disappear in both directions.
    public func swallow() { shared.mode.withLock { $0 = .swallowing } }

    /// Ends all connections; new ones are refused until `restore()`.
    public func cut() { shared.mode.withLock { $0 = .cut } }

    /// New connections reach the server again.
    public func restore() { shared.mode.withLock { $0 = .open } }

    private static func accept(_ listener: Int32, to target: Int, _ shared: Shared) {
        var lastWords = shared.lastWords
        while !shared.isOver.load(ordering: .relaxed) {
            guard isReadable(listener) else { continue }
            let client = Foundation.accept(listener, nil, nil)
            guard client >= 0 else { continue }
            let address = SocketAddress.loopback(UInt16(target))
            let server = address.makeSocket()
            guard shared.mode.withLock({ $0 != .cut }), address.withPointer({ connect(server, $0, $1) }) == 0 else {
                close(client)
                close(server)
                continue
            }
            let words = lastWords
            lastWords = []
            Thread.detachNewThread { pass(client, server, until: words, shared) }
        }
        close(listener)
    }

    /// One connection, until either end closes it or the link is cut.
    private static func pass(_ client: Int32, _ server: Int32, until lastWords: [UInt8], _ shared: Shared) {
        defer {
            close(client)
            close(server)
        }
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        /// The client's bytes in which its last words are looked for.
        var said: [UInt8] = []
        var reads = 0
        while !shared.isOver.load(ordering: .relaxed) {
            if shared.mode.withLock({ $0 == .cut }) { return }
            var entries = [
                pollfd(fd: client, events: Int16(POLLIN), revents: 0),
                pollfd(fd: server, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&entries, 2, 20) > 0 else { continue }
            for (entry, target) in zip(entries, [server, client]) where entry.revents != 0 {
                let count = read(entry.fd, &chunk, chunk.count)
                guard count > 0 else { return }
                reads += 1
                if shared.stallInterval > 0, reads % shared.stallInterval == 0 { usleep(50_000) }
                switch shared.mode.withLock({ $0 }) {
                case .open where entry.fd == client && !lastWords.isEmpty:
                    said += chunk[..<count]
                    let end = said.firstRange(of: lastWords)?.upperBound
                    let swallowed = end.map { said.count - $0 } ?? 0
                    guard write(chunk[..<(count - swallowed)], to: target) else { return }
                    guard end != nil else { continue }
                    shared.mode.withLock { $0 = .swallowing }
                    shared.swallowed.add(swallowed, ordering: .relaxed)
                case .open: guard write(chunk[..<count], to: target) else { return }
                case .swallowing: if entry.fd == client { shared.swallowed.add(count, ordering: .relaxed) }
                // What follows swallowed bytes must not arrive without them.
                case .cut: return
                }
            }
        }
    }

    private static func isReadable(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 20) > 0
    }

    private static func write(_ bytes: ArraySlice<UInt8>, to descriptor: Int32) -> Bool {
        var rest = bytes
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }
}
