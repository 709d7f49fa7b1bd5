import Transport

/// A proxy that connections to servers pass, for networks that allow no direct connection.
///
/// The proxy resolves the server's name. TLS and WebSocket run through it, so that with TLS it sees only the address of the
/// server.
public struct Proxy: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case none, environment
        case http(String)
        case socks5(String)
    }
    let kind: Kind

    /// Connects to servers directly.
    public static let none = Proxy(kind: .none)
    /// Uses the environment's variables, read when the client is made: the first of `https_proxy`, `HTTPS_PROXY`,
    /// `all_proxy` and `ALL_PROXY` that is set is the URL of an `http://`, `socks5://` or `socks5h://` proxy for all
    /// schemes. `no_proxy` or `NO_PROXY` lists the servers to connect to directly: `name`, `.suffix`, `name:port`,
    /// addresses, or `*` for all.
    public static let environment = Proxy(kind: .environment)

    /// A proxy with HTTP's CONNECT method: `http://[user:password@]host[:port]`. Default port: 80.
    ///
    /// A mistake in the URL is reported when the client connects.
    public static func http(_ url: String) -> Proxy { Proxy(kind: .http(url)) }

    /// A SOCKS5 proxy (RFC 1928, RFC 1929): `socks5://[user:password@]host[:port]`. Default port: 1080.
    ///
    /// A mistake in the URL is reported when the client connects.
    public static func socks5(_ url: String) -> Proxy { Proxy(kind: .socks5(url)) }
}

extension Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The proxy without user name and password.
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

/// Reads the URL of a proxy.
enum ProxyURL {
    /// - Parameters:
    ///   - kind: what it must be; nil lets the scheme decide, with HTTP for a URL that has none.
    ///   - origin: where the URL comes from, for messages.
    static func read(_ text: String, kind: ProxyServer.Kind?, origin: String) throws(TransportError) -> ProxyServer {
        let bytes = Array(text.utf8)
        let marker = Array("://".utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: marker) }
        let scheme = start.map { URLAuthority.string(bytes[..<$0]).lowercased() }
        let named: ProxyServer.Kind
        switch scheme {
        case nil: named = kind ?? .http
        case "http": named = .http
        case "socks5", "socks5h": named = .socks5
        default:
            throw bad(text, origin, "the scheme '\(scheme ?? "")' is not one of http, socks5, socks5h")
        }
        guard kind == nil || kind == named else {
            throw bad(text, origin, "it must begin with \(kind == .http ? "http" : "socks5")://")
        }
        var rest = bytes[(start.map { $0 + marker.count } ?? 0)...]
        if rest.last == UInt8(ascii: "/") { rest.removeLast() }
        guard !rest.contains(where: { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") })
        else { throw bad(text, origin, "a proxy has no path, and '/', '?' and '#' in a password are percent-encoded") }
        do throws(URLAuthority.Flaw) {
            let authority = try URLAuthority(rest)
            let login = authority.credentials.map {
                ProxyServer.Login(userName: $0.userName, password: $0.password ?? "")
            }
            let port = authority.port ?? (named == .http ? 80 : 1080)
            return ProxyServer(named, endpoint: .host(authority.host, port: port), login: login)
        } catch {
            throw bad(text, origin, error.reason)
        }
    }

    private static func bad(_ text: String, _ origin: String, _ reason: String) -> TransportError {
        TransportError(.badURL, "\(origin) '\(masked(text))' is not a proxy's URL: \(reason)")
    }

    /// The URL with its user info hidden, whatever else is wrong with it.
    static func masked(_ text: String) -> String {
        guard let at = text.utf8.lastIndex(of: UInt8(ascii: "@")) else { return text }
        let bytes = Array(text.utf8)
        let marker = Array("://".utf8)
        let start = bytes.indices.first { bytes[$0...].starts(with: marker) }
        let scheme = start.map { URLAuthority.string(bytes[..<($0 + marker.count)]) } ?? ""
        return scheme.utf8.count > text.utf8.distance(from: text.startIndex, to: at)
            ? "•••\(text[at...])" : "\(scheme)•••\(text[at...])"
    }
}
