package import MessagingHTTPCore
import MessagingWire

/// A client's opening handshake as a server sees it, checked by section 4.2.1.
package struct WebSocketUpgradeRequest: Sendable, Hashable {
    /// The path of the target, still percent-encoded.
    package let path: String
    package let query: String?
    /// The Host field: name and, if it is not the scheme's own, port.
    package let host: String
    /// The page that a browser's script came from; other clients rarely send one.
    package let origin: String?
    /// The sub-protocols that the client offers, in its order of preference.
    package let subprotocols: [String]
    package let fields: HTTPFields
    private let key: String

    /// - Throws: a refusal with status 400, or 426 for another version of the protocol.
    package init(_ head: HTTPRequestHead) throws(WebSocketRefusal) {
        let fields = head.fields
        guard head.method.utf8.elementsEqual("GET".utf8), head.minorVersion >= 1 else {
            throw .badRequest("a WebSocket handshake must be an HTTP/1.1 GET request")
        }
        guard fields.list("Upgrade", contains: "websocket"), fields.list("Connection", contains: "upgrade") else {
            throw .badRequest("Upgrade: websocket and Connection: Upgrade are needed; a proxy may have dropped one")
        }
        guard fields.all("Sec-WebSocket-Version").map({ Array($0.utf8) }) == [Array("13".utf8)] else {
            throw .wrongVersion
        }
        let keys = fields.all("Sec-WebSocket-Key")
        guard keys.count == 1, WebSocketKey.isValid(keys[0]) else {
            throw .badRequest("Sec-WebSocket-Key has to be 16 bytes in Base64")
        }
        let hosts = fields.all("Host")
        guard hosts.count == 1, !hosts[0].isEmpty else { throw .badRequest("one Host field is needed") }
        guard fields.all("Origin").count <= 1 else { throw .badRequest("more than one Origin field") }
        guard fields.all("Transfer-Encoding").isEmpty,
            fields.all("Content-Length").allSatisfy({ $0.hasSameBytes(as: "0") })
        else {
            throw .badRequest("a WebSocket handshake has no body")
        }
        let offered = fields.list("Sec-WebSocket-Protocol")
        guard offered.allSatisfy({ HTTPSyntax.isToken(Array($0.utf8)) }), Set(offered).count == offered.count else {
            throw .badRequest("Sec-WebSocket-Protocol lists something twice or that is not a token")
        }
        path = head.path
        query = head.query
        host = hosts[0]
        origin = fields.first("Origin")
        subprotocols = offered
        self.fields = fields
        key = keys[0]
    }

    /// Appends the 101 response that opens the connection (section 4.2.2 item 5).
    ///
    /// - Parameter subprotocol: one of those offered, or nil.
    /// - Throws: `invalidSubprotocol`, `invalidField`; nothing was written then.
    package func accept(
        subprotocol: String?, fields own: HTTPFields = HTTPFields(), into output: inout [UInt8]
    ) throws(WebSocketError) {
        if let subprotocol, !subprotocols.contains(where: { $0.hasSameBytes(as: subprotocol) }) {
            throw WebSocketError(.invalidSubprotocol, "The client did not offer sub-protocol \"\(subprotocol)\".")
        }
        do throws(HTTPError) { try own.checkForWriting(reserved: Self.ownFields) } catch {
            throw WebSocketError(relabelling: error)
        }
        HTTPSyntax.appendLine("HTTP/1.1 101 Switching Protocols", to: &output)
        HTTPSyntax.appendLine("Upgrade: websocket", to: &output)
        HTTPSyntax.appendLine("Connection: Upgrade", to: &output)
        HTTPSyntax.appendLine("Sec-WebSocket-Accept: \(WebSocketKey.accept(for: key))", to: &output)
        if let subprotocol { HTTPSyntax.appendLine("Sec-WebSocket-Protocol: \(subprotocol)", to: &output) }
        own.write(into: &output)
    }

    private static let ownFields = [
        "Upgrade", "Connection", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions",
        "Content-Length", "Transfer-Encoding",
    ]
}

/// A server's no to an opening handshake.
package struct WebSocketRefusal: Error, Sendable, Hashable {
    /// 400, 403, 404 or 426.
    package let status: Int
    /// Why, in words for the client's developer; it becomes the body.
    package let message: String

    package init(status: Int, _ message: String) {
        self.status = status
        self.message = message
    }

    static func badRequest(_ message: String) -> WebSocketRefusal {
        WebSocketRefusal(status: 400, message)
    }

    static var wrongVersion: WebSocketRefusal {
        WebSocketRefusal(status: 426, "this server supports only version 13 of the WebSocket protocol")
    }

    /// What to answer before the stream is closed.
    package var response: HTTPResponse {
        var fields: HTTPFields = ["Content-Type": "text/plain; charset=utf-8"]
        // Tells the client what to upgrade to (section 4.4).
        if status == 426 { fields.append("Sec-WebSocket-Version", "13") }
        return HTTPResponse(status: status, fields: fields, body: Array((message + "\n").utf8))
    }
}
