import Transport

/// Reads where a proxy is.
enum ProxyURL {
    /// - Parameters:
    ///   - kind: what it must be; nil lets the scheme decide, with HTTP for a URL that has none.
    ///   - origin: who wrote it, for messages.
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
