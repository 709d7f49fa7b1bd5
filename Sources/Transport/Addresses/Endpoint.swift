/// Where a server listens: a host and port, or a Unix-domain socket.
public enum Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name or a literal IPv4 or IPv6 address, without brackets.
    case host(String, port: UInt16)
    /// The path of a Unix-domain socket.
    case unix(path: String)

    public var description: String {
        switch self {
        case .host(let name, let port):
            // An IPv6 literal is the only host that holds a colon.
            name.utf8.contains(UInt8(ascii: ":")) ? "[\(name)]:\(port)" : "\(name):\(port)"
        case .unix(let path):
            "unix:\(path)"
        }
    }
}

extension Endpoint {
    /// Whether it is reached without a network: a Unix-domain socket, or the loopback interface.
    package var isOnThisMachine: Bool {
        guard case .host(let name, _) = self else { return true }
        if let bytes = IPLiteral(name)?.bytes {
            return bytes.count == 4 ? bytes[0] == 127 : bytes.dropLast().allSatisfy { $0 == 0 } && bytes.last == 1
        }
        return name.lowercased() == "localhost"
    }
}

/// An address written as a number: what needs no name server.
package struct IPLiteral: Sendable, Hashable {
    /// Four of IPv4 or sixteen of IPv6, in network order.
    package let bytes: [UInt8]

    /// Nil for anything but an address; a zone, which means something on this machine alone, is left out.
    package init?(_ text: String) {
        let number = text.utf8.contains(UInt8(ascii: ":")) ? String(text.prefix { $0 != "%" }) : text
        // inet_pton would see the part before it.
        guard !number.utf8.contains(0) else { return nil }
        var four = in_addr()
        var sixteen = in6_addr()
        // Safe: inet_pton writes exactly an address of the family.
        if unsafe inet_pton(AF_INET, number, &four) == 1 {
            bytes = unsafe withUnsafeBytes(of: &four) { unsafe Array($0) }
        } else if unsafe inet_pton(AF_INET6, number, &sixteen) == 1 {
            bytes = unsafe withUnsafeBytes(of: &sixteen) { unsafe Array($0) }
        } else {
            return nil
        }
    }
}

extension Endpoint {
    /// The address of an endpoint that needs no look-up; nil for a name.
    var knownAddresses: [SocketAddress]? {
        get throws(TransportError) {
            switch self {
            case .unix(let path):
                guard let address = SocketAddress(unixPath: path) else {
                    throw TransportError(
                        .badURL,
                        "'\(path)' cannot be the path of a Unix socket: it must be 1 to "
                            + "\(SocketAddress.maximumPathSize) bytes without NUL.")
                }
                return [address]
            case .host(let name, let port):
                return NameQuery(name, .any).literal?.map { $0.with(port: port) }
            }
        }
    }
}
