/// Which opening handshakes a server takes; one that decides by itself reads `WebSocketUpgradeRequest` instead.
package struct WebSocketServerPolicy: Sendable, Hashable {
    /// Paths that are served; nil for all. Others are answered with 404.
    package var paths: [String]?
    /// Names in the Host field, without port, that are ours; nil for all. Others are answered with 403, which keeps a
    /// page elsewhere from reaching a loopback server through a name of its own.
    package var hosts: [String]?
    /// Origins whose pages may connect; nil for all. Others are answered with 403; clients without one are no browsers.
    package var origins: [String]?
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
        if let origins, let origin = request.origin, !origins.contains(where: { HTTPSyntax.isEqual($0, origin) }) {
            throw WebSocketRefusal(status: 403, "pages of \(origin) may not connect")
        }
        if let paths, !paths.contains(where: { HTTPSyntax.isSame($0, request.path) }) {
            throw WebSocketRefusal(status: 404, "nothing speaks WebSocket at \(request.path)")
        }
        let chosen = request.subprotocols.first { offered in
            subprotocols.contains { HTTPSyntax.isSame($0, offered) }
        }
        guard chosen != nil || !requiresSubprotocol else {
            throw WebSocketRefusal(
                status: 400, "offer one of these sub-protocols: \(subprotocols.joined(separator: ", "))")
        }
        return chosen
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
