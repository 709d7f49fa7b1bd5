import MessagingHTTPCore
import MessagingWire

/// Which opening handshakes a server takes; one that decides by itself reads `WebSocketUpgradeRequest` instead.
package struct WebSocketServerPolicy: Sendable, Hashable {
    /// Paths that are served; nil for all. Others are answered with 404.
    package var paths: [String]?
    /// Names in the Host field, without port, that are ours; nil for all. Others are answered with 403, which keeps a
    /// page elsewhere from reaching a loopback server through a name of its own.
    package var hosts: [String]?
    /// Origins whose pages may connect; nil for all. Others are answered with 403; clients without one are no browsers.
    package var origins: [String]?
    /// Whether pages that this machine serves over HTTP may connect besides, whatever the port.
    package var acceptsLoopbackOrigins = false
    /// The sub-protocols that are spoken.
    package var subprotocols: [String] = []
    /// Whether a client that offers none of them is answered with 400 instead of a connection without one.
    package var requiresSubprotocol = false

    package init() {}

    /// The sub-protocol to speak: the first that the client offers and we have; nil for none.
    ///
    /// - Throws: the refusal to answer with.
    package func decide(_ request: WebSocketUpgradeRequest) throws(WebSocketRefusal) -> String? {
        if let hosts, !hosts.contains(where: { HTTPSyntax.isEqual($0, Self.name(of: request.host)) }) {
            throw WebSocketRefusal(status: 403, "this server is not \(request.host)")
        }
        if let origin = request.origin, !accepts(origin) {
            let whose = origin == "null" ? "pages that were opened from files (Origin: null)" : "pages of \(origin)"
            throw WebSocketRefusal(status: 403, "\(whose) may not connect to this server")
        }
        if let paths, !paths.contains(where: { $0.hasSameBytes(as: request.path) }) {
            throw WebSocketRefusal(status: 404, "nothing speaks WebSocket at \(request.path)")
        }
        let chosen = request.subprotocols.first { offered in
            subprotocols.contains { $0.hasSameBytes(as: offered) }
        }
        guard chosen != nil || !requiresSubprotocol else {
            throw WebSocketRefusal(
                status: 400, "offer one of these sub-protocols: \(subprotocols.joined(separator: ", "))")
        }
        return chosen
    }

    private func accepts(_ origin: String) -> Bool {
        guard let origins else { return true }
        return origins.contains { HTTPSyntax.isEqual($0, origin) }
            || acceptsLoopbackOrigins && Self.isLoopback(origin)
    }

    /// Whether an origin is `http:`, a name of the loopback interface and, perhaps, a port (RFC 6454 section 6.2).
    private static func isLoopback(_ origin: String) -> Bool {
        let scheme = "http://"
        guard HTTPSyntax.isEqual(HTTPSyntax.text(Array(origin.utf8.prefix(scheme.utf8.count))[...]), scheme) else {
            return false
        }
        let host = HTTPSyntax.text(Array(origin.utf8.dropFirst(scheme.utf8.count))[...])
        let name = name(of: host)
        // What looks like a port could hide another host, as in http://localhost:x@elsewhere.
        let port = host.utf8.dropFirst(name.utf8.count)
        guard port.isEmpty || port.count > 1 && port.first == HTTPSyntax.colon,
            port.dropFirst().allSatisfy({ (0x30...0x39).contains($0) })
        else { return false }
        return ["127.0.0.1", "localhost", "[::1]"].contains { HTTPSyntax.isEqual($0, name) }
    }

    /// Without the port; an IPv6 literal keeps its brackets, which hold colons of its own.
    private static func name(of host: String) -> String {
        let bytes = Array(host.utf8)
        if bytes.first == UInt8(ascii: "["), let end = bytes.firstIndex(of: UInt8(ascii: "]")) {
            return HTTPSyntax.text(bytes[...end])
        }
        return HTTPSyntax.text(bytes[..<(bytes.firstIndex(of: HTTPSyntax.colon) ?? bytes.endIndex)])
    }
}
