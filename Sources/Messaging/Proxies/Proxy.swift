/// The way out of a network that lets nobody connect by himself; see the configurations of the clients.
///
/// The proxy looks the server's name up; TLS and WebSocket run through it, so that it sees no more than where they go.
public struct Proxy: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case none, environment
        case http(String)
        case socks5(String)
    }
    let kind: Kind

    /// Servers are reached directly.
    public static let none = Proxy(kind: .none)
    /// As the environment says when the client is made: the first of `https_proxy`, `HTTPS_PROXY`, `all_proxy` and
    /// `ALL_PROXY` that is there names an `http://`, `socks5://` or `socks5h://` proxy for all schemes, and
    /// `no_proxy` or `NO_PROXY` the servers that are reached directly: a list of `name`, `.suffix`, `name:port`,
    /// addresses, or `*` for all.
    public static let environment = Proxy(kind: .environment)

    /// A proxy that knows HTTP's CONNECT: `http://[user:password@]host[:port]`, with port 80 if there is none.
    ///
    /// A mistake in the URL is reported when the client connects.
    public static func http(_ url: String) -> Proxy { Proxy(kind: .http(url)) }

    /// A SOCKS5 proxy (RFC 1928, RFC 1929): `socks5://[user:password@]host[:port]`, with port 1080 if there is none.
    ///
    /// A mistake in the URL is reported when the client connects.
    public static func socks5(_ url: String) -> Proxy { Proxy(kind: .socks5(url)) }
}

extension Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Without user name and password.
    public var description: String {
        switch kind {
        case .none: "none"
        case .environment: "environment"
        case .http(let url), .socks5(let url): ProxyURL.masked(url)
        }
    }

    public var debugDescription: String { description }
    // What is inside holds the password.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
