import MessagingWire
public import Transport

/// The URL of a broker: its endpoint, and the protocols on the way to it.
public struct BrokerURL: Sendable, Hashable {
    /// The scheme of a URL: the protocols between the socket and the client's protocol.
    public enum Scheme: String, Sendable, Hashable, CaseIterable {
        /// MQTT over TCP.
        case mqtt
        /// MQTT over TLS.
        case mqtts
        /// STOMP over TCP.
        case stomp
        /// STOMP over TLS.
        case stomps
        /// WebSocket over TCP.
        case ws
        /// WebSocket over TLS.
        case wss
        /// A Unix-domain socket.
        case unix

        /// Whether the connection is encrypted.
        public var isSecure: Bool { self == .mqtts || self == .stomps || self == .wss }
        /// Whether the protocol runs inside a WebSocket.
        public var isWebSocket: Bool { self == .ws || self == .wss }

        /// The same with TLS; nil where there is no such scheme, or this is it.
        var secured: Scheme? {
            switch self {
            case .mqtt: .mqtts
            case .stomp: .stomps
            case .ws: .wss
            case .mqtts, .stomps, .wss, .unix: nil
            }
        }

        var defaultPort: UInt16 {
            switch self {
            case .mqtt: 1883
            case .mqtts: 8883
            case .stomp: 61613
            case .stomps: 61614
            case .ws: 80
            case .wss: 443
            case .unix: 0
            }
        }
    }

    /// The host and port, or the path of a Unix-domain socket.
    public private(set) var endpoint: Endpoint
    /// What the URL begins with.
    public let scheme: Scheme
    /// The path and query of a WebSocket, `/` when the URL has none. Descriptions hide the query's values, which may be
    /// tokens.
    public private(set) var resource: String
    /// The user info of the URL, percent-decoded.
    public var credentials: Credentials? { login?.value }
    private let login: Shared<Credentials>?

    /// The host's name or address without brackets; empty for a Unix-domain socket.
    public var host: String {
        if case .host(let name, _) = endpoint { name } else { "" }
    }

    /// Reads a URL such as `mqtt://user:secret@host:1883`, `wss://host/path`, `stomp://[::1]` or `unix:/path`.
    ///
    /// `http` and `https` are read as `ws` and `wss`.
    /// - Throws: ``TransportError`` with the code `badURL` and the part that is invalid.
    public init(_ text: String) throws(TransportError) {
        try self.init(text, for: [])
    }

    /// The URL of a server of a client that accepts only these schemes, of which the first is the plain one; any scheme
    /// if `schemes` is empty.
    package init(_ text: String, for schemes: [Scheme]) throws(TransportError) {
        try self.init(text, accepted: schemes.isEmpty ? Scheme.allCases : schemes)
        guard schemes.isEmpty || schemes.contains(scheme) else {
            throw Self.bad(description, Self.unaccepted(scheme.rawValue, schemes))
        }
    }

    private static func unaccepted(_ name: String, _ schemes: [Scheme]) -> String {
        "the scheme '\(name)' is not one of \(schemes.map(\.rawValue).joined(separator: ", "))"
    }

    /// - Parameter accepted: the schemes that messages name; they propose the first.
    private init(_ text: String, accepted: [Scheme]) throws(TransportError) {
        let plain = accepted.first ?? .mqtt
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            throw Self.bad(
                text, "it has no scheme; write for example \(plain.rawValue)://\(text.isEmpty ? "localhost" : text)")
        }
        var name = URLAuthority.string(bytes[..<colon]).lowercased()
        if name == "http" { name = "ws" }
        if name == "https" { name = "wss" }
        guard let scheme = Scheme(rawValue: name) else {
            let after = bytes[(colon + 1)...]
            let rest = URLAuthority.string(after)
            let proposal: String? =
                switch name {
                case "tcp": "\(plain.rawValue):\(rest)"
                case "ssl", "tls": "\((plain.secured ?? plain).rawValue):\(rest)"
                default:
                    // Or a host and a port, as in `localhost:1883`.
                    if let scheme = Self.composed(name) {
                        "\(scheme.rawValue):\(rest)"
                    } else if let digit = after.first, (0x30...0x39).contains(digit) {
                        "\(plain.rawValue)://\(text)"
                    } else {
                        nil
                    }
                }
            if let proposal {
                throw Self.bad(text, "its scheme is missing or unknown; write \(Self.masked(proposal))")
            }
            throw Self.bad(text, Self.unaccepted(name, accepted))
        }
        self.scheme = scheme
        var rest = bytes[(colon + 1)...]
        let slashes = Array("//".utf8)
        if scheme == .unix {
            // unix:/path and unix:///path name the same socket.
            if rest.starts(with: slashes) { rest = rest.dropFirst(2) }
            guard let path = PercentEncoding.decoded(rest), !path.isEmpty else {
                throw Self.bad(text, "it names no socket")
            }
            endpoint = .unix(path: path)
            resource = "/"
            login = nil
            return
        }
        guard rest.starts(with: slashes) else { throw Self.bad(text, "'//' must follow '\(name):'") }
        rest = rest.dropFirst(2)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        let tail = rest[(end ?? rest.endIndex)...]
        let beforeTail = rest[..<(end ?? rest.endIndex)]
        // A password whose '/', '?' or '#' is not percent-encoded ends there, and its '@' follows. The text before it
        // would be taken for a host and a port, and be shown.
        let mayEndPassword = tail.contains(UInt8(ascii: "@"))
        let isCut = mayEndPassword && !beforeTail.contains(UInt8(ascii: "@"))
        if mayEndPassword && !scheme.isWebSocket || isCut && tail.first == UInt8(ascii: "#") {
            throw Self.bad(text, Self.unescaped(tail, in: scheme))
        }
        let path = URLAuthority.string(tail.prefix { $0 != UInt8(ascii: "#") })
        if !scheme.isWebSocket && !path.isEmpty && path != "/" {
            throw Self.bad(text, "'\(path)' does not belong in it: only WebSocket URLs have a path")
        }
        resource = path.isEmpty ? "/" : path.utf8.first == UInt8(ascii: "/") ? path : "/" + path

        do throws(URLAuthority.Flaw) {
            let authority = try URLAuthority(beforeTail)
            login = authority.credentials.map { Shared($0) }
            endpoint = .host(authority.host, port: authority.port ?? scheme.defaultPort)
        } catch {
            // Wrong text before the sign may be a part of the password, so it is not shown.
            guard isCut else { throw Self.bad(text, error.reason) }
            throw Self.bad(text, Self.unescaped(tail, in: scheme) + "; without one, its host or port is wrong")
        }
        guard Self.isPercentEncoded(resource) else {
            throw Self.bad(
                text, "its path or query has a character that must be percent-encoded; write %20 for a blank")
        }
    }

    /// The scheme that stands for a broker's name of a transport, such as `stomp+nio+ssl`; nil if the name is unknown.
    private static func composed(_ name: String) -> Scheme? {
        let parts = name.split(separator: "+").map { String($0) }
        guard parts.count > 1, let scheme = Scheme(rawValue: parts[0]),
            parts.dropFirst().allSatisfy(["ssl", "tls", "nio", "tcp"].contains)
        else { return nil }
        return parts.contains("ssl") || parts.contains("tls") ? scheme.secured ?? scheme : scheme
    }

    private static func isPercentEncoded(_ resource: String) -> Bool {
        resource.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    /// What is wrong with a URL whose user name or password seems to contain the first character of `tail`.
    private static func unescaped(_ tail: ArraySlice<UInt8>, in scheme: Scheme) -> String {
        let (character, code) =
            switch tail.first {
            case UInt8(ascii: "/"): ("/", scheme.isWebSocket ? "%2F" : "%2F; only WebSocket URLs have a path")
            case UInt8(ascii: "?"): ("?", "%3F")
            default: ("#", "%23")
            }
        return "'\(character)' in its user name or password must be written as \(code)"
    }

    /// The same URL with another endpoint.
    package func redirected(to endpoint: Endpoint) -> BrokerURL {
        var other = self
        other.endpoint = endpoint
        return other
    }

    /// The same URL with another query.
    ///
    /// - Throws: ``TransportError/Code/badURL`` if it is not the URL of a WebSocket, or the query is not percent-encoded.
    package func with(query: String) throws(TransportError) -> BrokerURL {
        guard scheme.isWebSocket else {
            throw Self.bad(description, "it can have no query: only WebSocket URLs have one. Leave `query` out")
        }
        guard Self.isPercentEncoded(query) else {
            throw Self.bad(description, "the `query` of the credentials has characters that must be percent-encoded")
        }
        var other = self
        let path = resource.utf8.firstIndex(of: UInt8(ascii: "?")).map { String(resource[..<$0]) } ?? resource
        other.resource = "\(path)?\(query)"
        return other
    }

    /// The first server of a server reference that can be used; a reference has `host[:port]`, separated by spaces, or URLs.
    /// Entries that are invalid are ignored, and so are URLs with another scheme than this one: they may do without TLS.
    package func endpoint(inReference reference: String) -> Endpoint? {
        reference.utf8.split(separator: UInt8(ascii: " ")).lazy.compactMap { name in
            // Cut out of a valid string at ASCII characters.
            let text = String(decoding: name, as: UTF8.self)
            if let url = try? BrokerURL(text) { return url.scheme == scheme ? url.endpoint : nil }
            let isNumber = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && text.utf8.first != UInt8(ascii: "[")
            return try? BrokerURL("\(scheme.rawValue)://\(isNumber ? "[\(text)]" : text)").endpoint
        }.first
    }

    private static func bad(_ text: String, _ reason: String) -> TransportError {
        TransportError(.badURL, OneLine.escaped("'\(masked(text))' is not a broker's URL: \(reason)."))
    }

    /// The URL with its user info and the values of its query hidden, for messages to people.
    package static func masked(_ text: String) -> String {
        guard let colon = text.utf8.firstIndex(of: UInt8(ascii: ":")),
            let at = text.utf8.lastIndex(of: UInt8(ascii: "@")),
            colon < at
        else { return maskedQuery(text) }
        let query = text.utf8.firstIndex(of: UInt8(ascii: "?")) ?? text.endIndex
        // After a question mark, the `@` is part of a token or ends a password that was not percent-encoded.
        return text[...colon] + "//•••" + (at < query ? maskedQuery(String(text[at...])) : "")
    }

    /// A URL or resource whose query shows the names of its parameters, but not their values.
    private static func maskedQuery(_ text: String) -> String {
        guard let mark = text.utf8.firstIndex(of: UInt8(ascii: "?")) else { return text }
        let parameters = text.utf8[text.utf8.index(after: mark)...].split(
            separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        // Cut out of a valid string at ASCII characters.
        let masked = parameters.map { parameter in
            let name = parameter.prefix { $0 != UInt8(ascii: "=") }
            if name.count == parameter.count { return parameter.isEmpty ? "" : "•••" }
            return String(decoding: name, as: UTF8.self) + "=•••"
        }
        return text[...mark] + masked.joined(separator: "&")
    }
}

extension BrokerURL: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The URL without its user info and without the values of its query.
    public var description: String {
        if case .unix = endpoint { return "\(endpoint)" }
        return "\(scheme.rawValue)://\(endpoint)\(scheme.isWebSocket ? Self.maskedQuery(resource) : "")"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
