import Foundation

/// How the system treats the connections and threads of this process.
public enum ServiceMarks {
    /// The marks of this process' sockets that are connected to a port of this machine: on Linux the priority and the
    /// traffic class, on Darwin the service type.
    public static func ofConnections(to port: Int) -> [[Int32]] {
        (0..<Int32(4096)).filter { peerPort($0) == port }.map { descriptor in
            #if canImport(Darwin)
                return [option(descriptor, SOL_SOCKET, SO_NET_SERVICE_TYPE)]
            #else
                return [option(descriptor, SOL_SOCKET, SO_PRIORITY), option(descriptor, Int32(IPPROTO_IP), IP_TOS)]
            #endif
        }
    }

    private static func peerPort(_ descriptor: Int32) -> Int? {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(descriptor, $0, &size) }
        }
        guard code == 0, Int32(address.sin_family) == AF_INET else { return nil }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    private static func option(_ descriptor: Int32, _ level: Int32, _ name: Int32) -> Int32 {
        var value: Int32 = -1
        var size = socklen_t(MemoryLayout<Int32>.size)
        return getsockopt(descriptor, level, name, &value, &size) == 0 ? value : -1
    }

    /// By how much the calling thread has lowered its priority; on Linux alone.
    public static var threadNiceness: Int32 {
        #if canImport(Darwin)
            0
        #else
            getpriority(Int32(PRIO_PROCESS.rawValue), 0)
        #endif
    }
}
