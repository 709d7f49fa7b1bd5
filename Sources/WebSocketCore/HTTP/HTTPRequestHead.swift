/// A request as far as its header fields.
package struct HTTPRequestHead: Sendable, Hashable {
    package var method: String
    /// What stands in the request line: path and query, or a whole URL as proxies get it.
    package var target: String
    /// The path of the target, still percent-encoded.
    package var path: String
    /// What follows the target's question mark; nil without one.
    package var query: String?
    /// The x of HTTP/1.x.
    package var minorVersion: Int
    package var fields: HTTPFields

    /// Whether the client wants to speak WebSocket; if not, the server answers with a page, or not at all.
    package var asksForWebSocket: Bool { fields.list("Upgrade", contains: "websocket") }

    init(startLine: [UInt8], fields: HTTPFields) throws(WebSocketHandshakeError) {
        let parts = startLine.split(separator: HTTPSyntax.space, omittingEmptySubsequences: false)
        guard parts.count == 3, HTTPSyntax.isToken(parts[0]), let minor = HTTPSyntax.minorVersion(of: parts[2]) else {
            throw WebSocketHandshakeError(.notHTTP, "the first line is not a request of HTTP/1")
        }
        let target = parts[1]
        guard !target.isEmpty, target.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw .malformed("request target is empty or not ASCII")
        }
        method = HTTPSyntax.text(parts[0])
        self.target = HTTPSyntax.text(target)
        minorVersion = minor
        self.fields = fields
        let origin = Self.originForm(of: target)
        let question = origin.firstIndex(of: UInt8(ascii: "?")) ?? origin.endIndex
        path = HTTPSyntax.text(origin[..<question])
        query = question < origin.endIndex ? HTTPSyntax.text(origin[(question + 1)...]) : nil
    }

    /// Without scheme and authority, if the target has them (section 4.2.1 item 1).
    private static func originForm(of target: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        guard target.first != UInt8(ascii: "/") else { return target }
        for scheme in ["http://", "https://", "ws://", "wss://"] {
            guard HTTPSyntax.isEqual(HTTPSyntax.text(target.prefix(scheme.utf8.count)), scheme) else { continue }
            let rest = target.dropFirst(scheme.utf8.count)
            let path = rest.drop { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
            return path.first == UInt8(ascii: "/") ? path : ArraySlice("/".utf8 + Array(path))
        }
        return target
    }
}
