import Foundation
import Synchronization

/// A listener on a loopback port that runs a script for each connection, each on a thread of its own.
final class Listener: Sendable {
    typealias Script = @Sendable (Peer) throws -> Void

    let port: Int
    private let descriptor: Int32
    private let counts = Mutex((connections: 0, received: 0))

    /// Connections so far.
    var connections: Int { counts.withLock { $0.connections } }
    /// Bytes that clients have sent over connections that have ended.
    var received: Int { counts.withLock { $0.received } }

    /// - Parameter script: nil for a listener that never accepts.
    init(until deadline: ContinuousClock.Instant, _ script: Script?) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        #if canImport(Darwin)
            let descriptor = socket(AF_INET, SOCK_STREAM, 0)
        #else
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        #endif
        self.descriptor = descriptor
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> UInt16 in
                guard bind(descriptor, pointer, size) == 0, listen(descriptor, 128) == 0 else { return 0 }
                getsockname(descriptor, pointer, &size)
                return UnsafeRawPointer(pointer).load(as: sockaddr_in.self).sin_port.byteSwapped
            }
        }
        precondition(port != 0, "no port is free")
        self.port = Int(port)
        guard let script else { return }
        Thread.detachNewThread { [self] in
            while true {
                let connection = accept(descriptor, nil, nil)
                guard connection >= 0 else { return }
                let number = counts.withLock { counts in
                    counts.connections += 1
                    return counts.connections
                }
                Thread.detachNewThread { [self] in
                    let peer = Peer(connection, number: number, until: deadline)
                    try? script(peer)
                    close(connection)
                    counts.withLock { $0.received += peer.received }
                }
            }
        }
    }
}
