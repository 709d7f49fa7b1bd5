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
                if !state.handedOut.contains(port), isFree(port) {
                    state.handedOut.insert(port)
                    return Int(port)
                }
            }
            fatalError("no free loopback port in \(range)")
        }
    }

    private static func isFree(_ port: UInt16) -> Bool {
        SocketAddress.loopback(port).canBind && (SocketAddress.loopback6(port).canBind || errno != EADDRINUSE)
    }
}
