import Foundation
import Synchronization

/// Loopback TCP ports that nobody listens on.
public enum FreePort {
    /// Below the ephemeral range, where an outgoing connection could take the port before the server binds it.
    private static let range: Range<UInt16> = 15_000..<32_000
    private struct State {
        /// Starts anywhere, so that two test processes on one machine seldom meet.
        var next = UInt16.random(in: range)
        var handedOut: Set<UInt16> = []
    }
    private static let state = Mutex(State())

    /// A port that is free now on 127.0.0.1 and ::1, and that this process has not been given before.
    public static func next() -> Int {
        state.withLock { state in
            for _ in range {
                let port = state.next
                state.next = port + 1 < range.upperBound ? port + 1 : range.lowerBound
                if !state.handedOut.contains(port), lock(port), isFree(port) {
                    state.handedOut.insert(port)
                    return Int(port)
                }
            }
            fatalError("no free loopback port in \(range)")
        }
    }

    /// Each byte of this file is a port. What a process locks stays locked until it exits, so that no other test process
    /// is given a port between its choice here and the moment when a broker binds it. One for all, whatever TMPDIR they have.
    private static let locks = open("/tmp/swift-messaging-ports", O_RDWR | O_CREAT | O_CLOEXEC, 0o666)

    /// False if another process has the port; where the file cannot be opened, only `isFree` protects it.
    private static func lock(_ port: UInt16) -> Bool {
        var range = flock()
        range.l_type = Int16(F_WRLCK)
        range.l_whence = Int16(SEEK_SET)
        range.l_start = off_t(port)
        range.l_len = 1
        return locks < 0 || fcntl(locks, F_SETLK, &range) == 0 || (errno != EAGAIN && errno != EACCES)
    }

    private static func isFree(_ port: UInt16) -> Bool {
        SocketAddress.loopback(port).canBind && (SocketAddress.loopback6(port).canBind || errno != EADDRINUSE)
    }
}
