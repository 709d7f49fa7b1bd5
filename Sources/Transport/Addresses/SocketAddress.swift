/// One address to connect to or to listen on.
package struct SocketAddress: Sendable {
    private var storage: sockaddr_storage
    private let size: socklen_t

    package var family: Int32 { Int32(storage.ss_family) }
    package var isIPv6: Bool { family == AF_INET6 }

    // Safe in all functions: sockaddr_storage is large enough for every address and may be read as any of them; a pointer to
    // it is used during the call only.
    init(_ pointer: UnsafePointer<sockaddr>, size: socklen_t) {
        storage = sockaddr_storage()
        self.size = min(size, socklen_t(MemoryLayout<sockaddr_storage>.size))
        unsafe withUnsafeMutableBytes(of: &storage) { target in
            unsafe target.copyMemory(from: UnsafeRawBufferPointer(start: pointer, count: Int(self.size)))
        }
    }

    /// The longest path of a Unix-domain socket, in bytes: 107 on Linux, 103 on Darwin. A NUL follows it.
    static var maximumPathSize: Int { MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1 }

    /// The address of a Unix-domain socket; nil when the path is empty, holds a NUL, or is too long for the system.
    package init?(unixPath path: String) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        let fits = unsafe withUnsafeMutableBytes(of: &address.sun_path) { target in
            guard bytes.count <= Self.maximumPathSize else { return false }
            unsafe target.copyBytes(from: bytes)
            return true
        }
        guard fits, !bytes.isEmpty, !bytes.contains(0) else { return nil }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        self = unsafe withUnsafeBytes(of: &address) { raw in
            // A sockaddr_un is a sockaddr to every call that takes one.
            unsafe SocketAddress(raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), size: size)
        }
    }

    /// The same address with a port.
    func with(port: UInt16) -> SocketAddress {
        var result = self
        unsafe withUnsafeMutablePointer(to: &result.storage) { pointer in
            switch unsafe Int32(pointer.pointee.ss_family) {
            case AF_INET:
                unsafe pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    unsafe $0.pointee.sin_port = port.bigEndian
                }
            case AF_INET6:
                unsafe pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    unsafe $0.pointee.sin6_port = port.bigEndian
                }
            default: break
            }
        }
        return result
    }

    func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        unsafe withUnsafeBytes(of: storage) { raw in
            // sockaddr_storage is made to be read as any sockaddr.
            unsafe body(raw.baseAddress!.assumingMemoryBound(to: sockaddr.self), size)
        }
    }

    /// The address a socket is bound to, or nil.
    static func local(of descriptor: Int32) -> SocketAddress? {
        unsafe address { unsafe getsockname(descriptor, $0, $1) }
    }

    /// The address a socket is connected to, or nil.
    static func remote(of descriptor: Int32) -> SocketAddress? {
        unsafe address { unsafe getpeername(descriptor, $0, $1) }
    }

    /// The address that a system call writes, or nil if it fails.
    private static func address(
        _ call: (UnsafeMutablePointer<sockaddr>, UnsafeMutablePointer<socklen_t>) -> Int32
    ) -> SocketAddress? {
        var storage = sockaddr_storage()
        var size = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return unsafe withUnsafeMutableBytes(of: &storage) { raw in
            let pointer = unsafe raw.baseAddress!.assumingMemoryBound(to: sockaddr.self)
            guard unsafe call(pointer, &size) == 0 else { return nil }
            return unsafe SocketAddress(pointer, size: size)
        }
    }

    /// The port, or 0 for addresses that have none.
    var port: UInt16 {
        unsafe withPointer { pointer, _ in
            switch unsafe Int32(pointer.pointee.sa_family) {
            case AF_INET:
                unsafe pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    unsafe UInt16(bigEndian: $0.pointee.sin_port)
                }
            case AF_INET6:
                unsafe pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                    unsafe UInt16(bigEndian: $0.pointee.sin6_port)
                }
            default: 0
            }
        }
    }
}

extension SocketAddress: Equatable {
    package static func == (one: SocketAddress, other: SocketAddress) -> Bool {
        guard one.size == other.size else { return false }
        // Both are `size` bytes long.
        return unsafe one.withPointer { first, size in
            unsafe other.withPointer { second, _ in unsafe memcmp(first, second, Int(size)) == 0 }
        }
    }
}
