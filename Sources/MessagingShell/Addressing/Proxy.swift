import MessagingWire
package import Transport

/// A proxy that connections to servers pass, for networks that allow no direct connection.
///
/// The proxy resolves the server's name. TLS and WebSocket run through it, so that with TLS it sees only the address of the
/// server.
public struct Proxy: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case none, environment
        case http(ByteKey)
        case socks5(ByteKey)
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
    public static func http(_ url: String) -> Proxy { Proxy(kind: .http(ByteKey(url))) }

    /// A SOCKS5 proxy (RFC 1928, RFC 1929): `socks5://[user:password@]host[:port]`. Default port: 1080.
    ///
    /// A mistake in the URL is reported when the client connects.
    public static func socks5(_ url: String) -> Proxy { Proxy(kind: .socks5(ByteKey(url))) }
}

extension Proxy: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The proxy without user name and password.
    public var description: String {
        switch kind {
        case .none: "none"
        case .environment: "environment"
        case .http(let url), .socks5(let url): ProxyURL.masked(url.text)
        }
    }

    public var debugDescription: String { description }
    // The stored properties hold the password.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Chooses the proxy for a server, if there is one.
package struct ProxyChoice: Sendable {
    private let proxy: Result<ProxyServer?, TransportError>
    private let exceptions: ProxyExceptions

    /// - Parameter variable: reads a variable of the environment; called only by this initializer.
    package init(_ proxy: Proxy, variable: (String) -> String?) {
        var exceptions = ProxyExceptions("")
        self.proxy = Result { () throws(TransportError) in
            switch proxy.kind {
            case .none:
                return nil
            case .http(let url):
                return try ProxyURL.read(url.text, kind: .http, origin: "the proxy")
            case .socks5(let url):
                return try ProxyURL.read(url.text, kind: .socks5, origin: "the proxy")
            case .environment:
                let names = ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
                guard let name = names.first(where: { Self.value($0, variable) != nil }),
                    let url = Self.value(name, variable)
                else { return nil }
                exceptions = ProxyExceptions(Self.value("no_proxy", variable) ?? Self.value("NO_PROXY", variable) ?? "")
                return try ProxyURL.read(url, kind: nil, origin: "the environment's \(name)")
            }
        }
        self.exceptions = exceptions
    }

    /// - Throws: ``TransportError`` if the proxy's URL is invalid.
    package func proxy(for endpoint: Endpoint) throws(TransportError) -> ProxyServer? {
        guard case .host(let host, let port) = endpoint, !exceptions.contain(host, port: port) else { return nil }
        return try proxy.get()
    }

    /// The value of a variable that is set and not empty.
    private static func value(_ name: String, _ variable: (String) -> String?) -> String? {
        variable(name).flatMap { $0.isEmpty ? nil : $0 }
    }
}

/// The servers that `no_proxy` names.
struct ProxyExceptions: Sendable {
    private struct Entry {
        var name: String
        var literal: IPLiteral?
        var port: UInt16?
    }

    private let entries: [Entry]
    private let isEverything: Bool

    init(_ list: String) {
        let words = list.lowercased().split { $0 == "," || $0.isWhitespace }.map(String.init)
        isEverything = words.contains("*")
        entries = words.compactMap(Self.entry)
    }

    private static func entry(_ word: String) -> Entry? {
        // An IPv6 address without brackets can have no port.
        if let literal = IPLiteral(word) { return Entry(name: word, literal: literal) }
        guard let authority = try? URLAuthority(Array(word.utf8)[...]) else { return nil }
        return Entry(name: plain(authority.host), literal: IPLiteral(authority.host), port: authority.port)
    }

    /// The name without `*.` or `.` at its beginning (every name includes those below it) and without the root's dot.
    private static func plain(_ name: String) -> String {
        var name = name[...]
        if name.hasPrefix("*.") { name = name.dropFirst() }
        if name.hasPrefix(".") { name = name.dropFirst() }
        if name.hasSuffix(".") { name = name.dropLast() }
        return String(name)
    }

    func contain(_ host: String, port: UInt16) -> Bool {
        if isEverything { return true }
        let literal = IPLiteral(host)
        let name = Self.plain(host.lowercased())
        return entries.contains { entry in
            guard entry.port == nil || entry.port == port else { return false }
            if let literal { return entry.literal == literal }
            return !entry.name.isEmpty && (name == entry.name || name.hasSuffix(".\(entry.name)"))
        }
    }
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
                ProxyServer.Login(userName: $0.userName ?? "", password: $0.password ?? "")
            }
            let port = authority.port ?? (named == .http ? 80 : 1080)
            return ProxyServer(named, endpoint: .host(authority.host, port: port), login: login)
        } catch {
            throw bad(text, origin, error.reason)
        }
    }

    private static func bad(_ text: String, _ origin: String, _ reason: String) -> TransportError {
        TransportError(.badURL, "\(origin) '\(masked(text))' is not a proxy's URL: \(reason).")
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
