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
