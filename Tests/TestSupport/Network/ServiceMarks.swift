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

    /// TCP keep-alive of this process' sockets that are connected to a port of this machine: whether it is on, and if so the
    /// seconds without traffic, the seconds between probes, and the number of probes.
    public static func keepAlive(ofConnectionsTo port: Int) -> [[Int32]] {
        (0..<Int32(4096)).filter { peerPort($0) == port }.map { descriptor in
            #if canImport(Darwin)
                let idle = TCP_KEEPALIVE
            #else
                let idle = TCP_KEEPIDLE
            #endif
            guard option(descriptor, SOL_SOCKET, SO_KEEPALIVE) != 0 else { return [0] }
            return [1] + [idle, TCP_KEEPINTVL, TCP_KEEPCNT].map { option(descriptor, Int32(IPPROTO_TCP), $0) }
        }
    }

    /// Where this process' connections to a port of this machine leave from: the address, a percent sign, and on Linux the
    /// interface that they are bound to, if there is one.
    public static func localEnds(ofConnectionsTo port: Int) -> [String] {
        (0..<Int32(4096)).filter { peerPort($0) == port }.map { descriptor in
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let code = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
            }
            guard code == 0 else { return "?" }
            let number = UInt32(bigEndian: address.sin_addr.s_addr)
            let text = stride(from: 24, through: 0, by: -8).map { "\(number >> UInt32($0) & 0xFF)" }.joined(
                separator: ".")
            return text + "%" + interface(descriptor)
        }
    }

    private static func interface(_ descriptor: Int32) -> String {
        #if canImport(Darwin)
            return ""
        #else
            var name = [UInt8](repeating: 0, count: 16)
            var size = socklen_t(name.count)
            guard getsockopt(descriptor, SOL_SOCKET, SO_BINDTODEVICE, &name, &size) == 0 else { return "?" }
            return String(decoding: name.prefix { $0 != 0 }, as: UTF8.self)
        #endif
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
