import Foundation

/// A socket address for the raw sockets of the tests.
struct SocketAddress: Sendable {
    private var storage = sockaddr_storage()
    private var length: socklen_t = 0
    let family: Int32

    private init<Address>(_ address: Address, family: Int32) {
        self.family = family
        length = socklen_t(MemoryLayout<Address>.size)
        withUnsafeMutableBytes(of: &storage) { $0.storeBytes(of: address, as: Address.self) }
    }

    static func loopback(_ port: UInt16) -> SocketAddress {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return SocketAddress(address, family: AF_INET)
    }

    static func loopback6(_ port: UInt16) -> SocketAddress {
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = port.bigEndian
        address.sin6_addr = in6addr_loopback
        return SocketAddress(address, family: AF_INET6)
    }

    /// Cuts a path that is too long for the system's structure.
    static func unix(_ path: String) -> SocketAddress {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { target in
            target.copyBytes(from: path.utf8.prefix(target.count - 1))
        }
        return SocketAddress(address, family: AF_UNIX)
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, length) }
        }
    }

    func makeSocket() -> Int32 {
        #if canImport(Darwin)
            let stream = SOCK_STREAM
        #else
            let stream = Int32(SOCK_STREAM.rawValue)
        #endif
        let descriptor = socket(family, stream, 0)
        if descriptor >= 0 { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        return descriptor
    }

    /// Whether a socket can be bound to the address now; leaves `errno` of the attempt.
    var canBind: Bool {
        let descriptor = makeSocket()
        guard descriptor >= 0 else { return false }
        let result = withPointer { bind(descriptor, $0, $1) }
        let code = errno
        close(descriptor)
        errno = code
        return result == 0
    }
}
