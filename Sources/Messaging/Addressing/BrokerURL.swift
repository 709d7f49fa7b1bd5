public import Transport

/// Where a broker is and how it is reached, read from a URL.
public struct BrokerURL: Sendable, Hashable {
    /// What lies between the socket and the protocol.
    public enum Scheme: String, Sendable, Hashable {
        case mqtt, mqtts, stomp, stomps, ws, wss, unix

        /// Whether the connection is encrypted.
        public var isSecure: Bool { self == .mqtts || self == .stomps || self == .wss }
        /// Whether the protocol runs inside a WebSocket.
        public var isWebSocket: Bool { self == .ws || self == .wss }

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

    public let scheme: Scheme
    public private(set) var endpoint: Endpoint
    /// The path and query of a WebSocket, `/` when the URL has none.
    public let resource: String
    /// From the user info of the URL, percent-decoded.
    public let credentials: Credentials?

    /// The host's name or address without brackets; empty for a Unix-domain socket.
    public var host: String {
        if case .host(let name, _) = endpoint { name } else { "" }
    }

    /// Reads a URL such as `mqtt://user:secret@host:1883`, `wss://host/path`, `stomp://[::1]` or `unix:/path`.
    ///
    /// `http` and `https` are taken for `ws` and `wss`.
    /// - Throws: ``TransportError/Code/badURL`` with the part that is wrong.
    public init(_ text: String) throws(TransportError) {
        let bytes = Array(text.utf8)
        guard let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else {
            throw Self.bad(text, "it has no scheme; write for example mqtt://\(text)")
        }
        var name = Self.string(bytes[..<colon]).lowercased()
        if name == "http" { name = "ws" }
        if name == "https" { name = "wss" }
        guard let scheme = Scheme(rawValue: name) else {
            throw Self.bad(text, "the scheme '\(name)' is not one of mqtt, mqtts, stomp, stomps, ws, wss, unix")
        }
        self.scheme = scheme
        var rest = bytes[(colon + 1)...]
        let slashes = Array("//".utf8)
        if scheme == .unix {
            // unix:/path and unix:///path name the same socket.
            if rest.starts(with: slashes) { rest = rest.dropFirst(2) }
            guard let path = Self.decoded(rest), !path.isEmpty else { throw Self.bad(text, "it names no socket") }
            endpoint = .unix(path: path)
            resource = "/"
            credentials = nil
            return
        }
        guard rest.starts(with: slashes) else { throw Self.bad(text, "'//' must follow '\(name):'") }
        rest = rest.dropFirst(2)
        let end = rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: "#") }
        var authority = rest[..<(end ?? rest.endIndex)]
        let tail = rest[(end ?? rest.endIndex)...]
        let path = Self.string(tail.prefix { $0 != UInt8(ascii: "#") })
        if !scheme.isWebSocket && !path.isEmpty && path != "/" {
            throw Self.bad(text, "'\(path)' does not belong in it: only WebSocket URLs have a path")
        }
        resource = path.isEmpty ? "/" : path.utf8.first == UInt8(ascii: "/") ? path : "/" + path

        if let at = authority.lastIndex(of: UInt8(ascii: "@")) {
            let info = authority[..<at]
            authority = authority[(at + 1)...]
            let split = info.firstIndex(of: UInt8(ascii: ":"))
            let password = split.map { Self.decoded(info[($0 + 1)...]) } ?? .some(nil)
            guard let user = Self.decoded(info[..<(split ?? info.endIndex)]), let password else {
                throw TransportError(.badURL, "the user name or password in the URL is not percent-encoded UTF-8")
            }
            credentials = Credentials(userName: user, password: split == nil ? nil : password)
        } else {
            credentials = nil
        }
        let (host, port) = try Self.hostAndPort(authority, text)
        endpoint = .host(host, port: port ?? scheme.defaultPort)
    }

    /// The same way to another server.
    package func redirected(to endpoint: Endpoint) -> BrokerURL {
        var other = self
        other.endpoint = endpoint
        return other
    }

    /// The servers that a server reference names: `host[:port]`, separated by spaces; what is none is passed over.
    package func endpoints(inReference reference: String) -> [Endpoint] {
        reference.utf8.split(separator: UInt8(ascii: " ")).compactMap { name in
            // Cut out of a valid string at ASCII characters.
            let text = String(decoding: name, as: UTF8.self)
            let isNumber = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && text.utf8.first != UInt8(ascii: "[")
            return try? BrokerURL("\(scheme.rawValue)://\(isNumber ? "[\(text)]" : text)").endpoint
        }
    }

    /// Refuses the schemes of other protocols.
    package func limited(to schemes: [Scheme]) throws(TransportError) -> BrokerURL {
        guard schemes.isEmpty || schemes.contains(scheme) else {
            let names = schemes.map(\.rawValue).joined(separator: ", ")
            throw Self.bad(description, "the scheme '\(scheme.rawValue)' is not one of \(names)")
        }
        return self
    }

    private static func hostAndPort(
        _ authority: ArraySlice<UInt8>, _ text: String
    ) throws(TransportError) -> (String, UInt16?) {
        var host = authority
        var port: ArraySlice<UInt8>?
        if authority.first == UInt8(ascii: "[") {
            guard let close = authority.firstIndex(of: UInt8(ascii: "]")) else {
                throw bad(text, "an IPv6 address must end with ']'")
            }
            host = authority[(authority.startIndex + 1)..<close]
            let after = authority[(close + 1)...]
            if !after.isEmpty {
                guard after.first == UInt8(ascii: ":") else { throw bad(text, "only a port may follow ']'") }
                port = after.dropFirst()
            }
        } else if let colon = authority.lastIndex(of: UInt8(ascii: ":")) {
            host = authority[..<colon]
            port = authority[(colon + 1)...]
            guard !host.contains(UInt8(ascii: ":")) else {
                throw bad(text, "an IPv6 address must stand in brackets: [::1]")
            }
        }
        guard let name = decoded(host), !name.isEmpty else { throw bad(text, "it names no host") }
        guard let port, !port.isEmpty else { return (name, nil) }
        guard let number = UInt16(string(port)), number > 0 else {
            throw bad(text, "'\(string(port))' is not a port from 1 to 65535")
        }
        return (name, number)
    }

    private static func bad(_ text: String, _ reason: String) -> TransportError {
        TransportError(.badURL, "'\(masked(text))' is not a broker's URL: \(reason)")
    }

    /// The URL with its user info hidden, for messages to people.
    package static func masked(_ text: String) -> String {
        guard let at = text.utf8.lastIndex(of: UInt8(ascii: "@")) else { return text }
        let start = text.utf8.firstIndex(of: UInt8(ascii: ":")) ?? text.startIndex
        guard start < at else { return text }
        return text[...start] + "//•••" + text[at...]
    }

    private static func string(_ bytes: ArraySlice<UInt8>) -> String {
        // The bytes are cut out of a valid string at ASCII characters, so that nothing is repaired here.
        String(decoding: bytes, as: UTF8.self)
    }

    private static func decoded(_ bytes: ArraySlice<UInt8>) -> String? {
        var result: [UInt8] = []
        var index = bytes.startIndex
        while index < bytes.endIndex {
            if bytes[index] == UInt8(ascii: "%") {
                guard index + 2 < bytes.endIndex, let high = hexDigit(bytes[index + 1]),
                    let low = hexDigit(bytes[index + 2])
                else { return nil }
                result.append(high << 4 | low)
                index += 3
            } else {
                result.append(bytes[index])
                index += 1
            }
        }
        guard !result.contains(0) else { return nil }
        return String(validating: result, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}

extension BrokerURL: CustomStringConvertible {
    /// The URL without its user info.
    public var description: String {
        if case .unix = endpoint { return "\(endpoint)" }
        return "\(scheme.rawValue)://\(endpoint)\(scheme.isWebSocket ? resource : "")"
    }
}
