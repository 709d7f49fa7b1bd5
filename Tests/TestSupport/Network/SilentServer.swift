import Foundation

/// A listener whose queue is full and that accepts nobody: whoever connects hears nothing.
public final class SilentServer: Sendable {
    private let descriptor: Int32
    private let fillers: [Int32]
    public let port: UInt16

    public init(unixPath: String? = nil) throws {
        #if canImport(Darwin)
            let stream = SOCK_STREAM
        #else
            let stream = Int32(SOCK_STREAM.rawValue)
        #endif
        let family = unixPath == nil ? AF_INET : AF_UNIX
        let descriptor = socket(family, stream, 0)
        var storage = sockaddr_storage()
        withUnsafeMutableBytes(of: &storage) { raw in
            if let unixPath {
                var address = sockaddr_un()
                address.sun_family = sa_family_t(AF_UNIX)
                withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: unixPath.utf8.prefix($0.count - 1)) }
                raw.storeBytes(of: address, as: sockaddr_un.self)
            } else {
                var address = sockaddr_in()
                address.sin_family = sa_family_t(AF_INET)
                address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
                raw.storeBytes(of: address, as: sockaddr_in.self)
            }
        }
        var size = socklen_t(unixPath == nil ? MemoryLayout<sockaddr_in>.size : MemoryLayout<sockaddr_un>.size)
        func with<Result>(_ body: (UnsafeMutablePointer<sockaddr>) -> Result) -> Result {
            withUnsafeMutablePointer(to: &storage) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1, body)
            }
        }
        guard with({ bind(descriptor, $0, size) }) == 0, listen(descriptor, 0) == 0 else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        if unixPath == nil { _ = with { getsockname(descriptor, $0, &size) } }
        var fillers: [Int32] = []
        for _ in 0..<4 {
            let filler = socket(family, stream, 0)
            _ = fcntl(filler, F_SETFL, O_NONBLOCK)
            _ = with { connect(filler, $0, size) }
            fillers.append(filler)
        }
        let isTCP = unixPath == nil
        port =
            isTCP
            ? withUnsafeBytes(of: &storage) { UInt16(bigEndian: $0.load(as: sockaddr_in.self).sin_port) } : 0
        self.descriptor = descriptor
        self.fillers = fillers
    }

    /// Takes everybody out of the queue.
    public func acceptAll() {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        while true {
            let connection = accept(descriptor, nil, nil)
            guard connection >= 0 else { return }
            close(connection)
        }
    }

    deinit {
        for filler in fillers { close(filler) }
        close(descriptor)
    }
}
