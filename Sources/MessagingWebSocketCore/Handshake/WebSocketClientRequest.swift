package import MessagingHTTPCore
import MessagingWire

/// What a client asks for in its opening handshake (section 4.1).
package struct WebSocketClientRequest: Sendable, Hashable {
    /// A name or an address; an IPv6 literal with or without brackets. A zone is not sent.
    package var host: String
    /// Sent unless it is the scheme's own; nil for that.
    package var port: UInt16?
    /// Whether TLS lies below, which makes 443 the scheme's own port instead of 80.
    package var isSecure: Bool
    /// Path and query, percent-encoded, from its slash on.
    package var target: String
    /// In the order of preference; the server may choose one.
    package var subprotocols: [String]
    /// Further header fields, such as Authorization, Cookie or Origin.
    package var fields: HTTPFields

    package init(
        host: String, port: UInt16? = nil, isSecure: Bool = false, target: String = "/",
        subprotocols: [String] = [], fields: HTTPFields = HTTPFields()
    ) {
        self.host = host
        self.port = port
        self.isSecure = isSecure
        self.target = target
        self.subprotocols = subprotocols
        self.fields = fields
    }

    /// The value of the Host field.
    ///
    /// - Throws: `invalidHost`.
    package func authority() throws(WebSocketError) -> String {
        do throws(HTTPError) {
            return try HTTPSyntax.authority(host: host, port: port == (isSecure ? 443 : 80) ? nil : port)
        } catch {
            throw WebSocketError(relabelling: error)
        }
    }

    /// Appends the request.
    ///
    /// - Throws: `invalidHost`, `invalidTarget`, `invalidField`, `invalidSubprotocol`; nothing was written then.
    func write(key: String, into output: inout [UInt8]) throws(WebSocketError) {
        let authority = try authority()
        try checkTarget()
        do throws(HTTPError) { try fields.checkForWriting(reserved: Self.ownFields) } catch {
            throw WebSocketError(relabelling: error)
        }
        try checkSubprotocols()
        HTTPSyntax.appendLine("GET \(target) HTTP/1.1", to: &output)
        HTTPSyntax.appendLine("Host: \(authority)", to: &output)
        HTTPSyntax.appendLine("Upgrade: websocket", to: &output)
        HTTPSyntax.appendLine("Connection: Upgrade", to: &output)
        HTTPSyntax.appendLine("Sec-WebSocket-Key: \(key)", to: &output)
        HTTPSyntax.appendLine("Sec-WebSocket-Version: 13", to: &output)
        if !subprotocols.isEmpty {
            HTTPSyntax.appendLine("Sec-WebSocket-Protocol: \(subprotocols.joined(separator: ", "))", to: &output)
        }
        fields.write(into: &output)
    }

    private static let ownFields = [
        "Host", "Upgrade", "Connection", "Content-Length", "Transfer-Encoding", "Sec-WebSocket-Key",
        "Sec-WebSocket-Version", "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions", "Sec-WebSocket-Accept",
    ]

    private func checkTarget() throws(WebSocketError) {
        let bytes = target.utf8
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(UInt8(ascii: "#")),
            bytes.allSatisfy(HTTPSyntax.isInTarget)
        else {
            // The query may be a token.
            let path = target.prefix { $0 != "?" }
            throw WebSocketError(
                .invalidTarget, "\"\(path)\" is not a request target. Begin with a slash and percent-encode the rest.")
        }
    }

    private func checkSubprotocols() throws(WebSocketError) {
        for (index, name) in subprotocols.enumerated() {
            guard HTTPSyntax.isToken(Array(name.utf8)),
                !subprotocols[..<index].contains(where: { $0.hasSameBytes(as: name) })
            else {
                throw WebSocketError(
                    .invalidSubprotocol, "Sub-protocol \"\(name)\" is not a token or is offered twice.")
            }
        }
    }
}
