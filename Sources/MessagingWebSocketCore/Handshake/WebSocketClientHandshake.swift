package import MessagingHTTPCore
import MessagingWire

/// The client's side of an opening handshake: writes the request, reads the response (section 4.1).
package struct WebSocketClientHandshake: Sendable {
    /// What the server said.
    package enum Outcome: Sendable, Hashable {
        /// The connection is open; the sub-protocol is one of those offered, or nil when the server chose none.
        case accepted(subprotocol: String?, fields: HTTPFields)
        case refused(WebSocketRefusedResponse)
    }

    package let request: WebSocketClientRequest
    /// The value of `Sec-WebSocket-Key`.
    package let key: String
    /// Nil while the response is under way.
    package private(set) var outcome: Outcome?

    private var head: HTTPHeadParser
    private let bodyLimit: Int
    private var refusal: (response: WebSocketRefusedResponse, body: HTTPBodyCollector)?

    /// - Parameters:
    ///   - keyBytes: 16 bytes, random and new for each connection.
    ///   - bodyLimit: how many bytes of a refusal's body to keep.
    /// - Throws: `invalidKey`.
    package init(
        _ request: WebSocketClientRequest, keyBytes: [UInt8], limits: HTTPHeadLimits = HTTPHeadLimits(),
        bodyLimit: Int = 4096
    ) throws(WebSocketError) {
        guard keyBytes.count == WebSocketKey.size else {
            throw WebSocketError(.invalidKey, "A key has \(WebSocketKey.size) bytes, not \(keyBytes.count).")
        }
        self.request = request
        self.bodyLimit = bodyLimit
        key = Base64.encode(keyBytes)
        head = HTTPHeadParser(limits: limits)
    }

    /// Appends the request; once, before anything is received.
    ///
    /// - Throws: `invalidHost`, `invalidTarget`, `invalidField`, `invalidSubprotocol`; nothing was written then.
    package func writeRequest(into output: inout [UInt8]) throws(WebSocketError) {
        try request.write(key: key, into: &output)
    }

    /// Takes bytes of the response and returns how many; after `accepted`, the rest are frames.
    package mutating func receive(_ bytes: RawSpan) throws(WebSocketHandshakeError) -> Int {
        var consumed = 0
        while consumed < bytes.byteCount && outcome == nil {
            let rest = bytes.extracting(consumed..<bytes.byteCount)
            if refusal == nil {
                let isFirst = head.byteCount == 0
                do throws(HTTPError) { consumed += try head.receive(rest) } catch {
                    if isFirst, !request.isSecure, rest.byte(at: 0) == Self.tlsAlert { throw Self.answersInTLS }
                    try judgeStartLine()
                    throw WebSocketHandshakeError(relabelling: error)
                }
                if head.isComplete { try judge() } else { try judgeStartLine() }
            } else {
                consumed += refusal?.body.receive(rest) ?? 0
                finishRefusal(isEnd: false)
            }
        }
        return consumed
    }

    /// The first byte of a TLS alert, with which a TLS server may answer our request (RFC 8446 section 5.1).
    private static let tlsAlert: UInt8 = 0x15

    private static var answersInTLS: WebSocketHandshakeError {
        WebSocketHandshakeError(
            .notHTTP, "The server answers in TLS. Use a URL with TLS (wss://), or the port without.")
    }

    /// The stream has ended, or the caller waits no longer: that ends the body of a refusal too.
    ///
    /// - Throws: `endedEarly` when there is no outcome even so.
    package mutating func streamEnded() throws(WebSocketHandshakeError) {
        finishRefusal(isEnd: true)
        guard outcome == nil else { return }
        // A server that expects TLS cannot read the request, and has nothing to say.
        let hint =
            head.byteCount == 0 && !request.isSecure ? " If it expects TLS at this port, use wss:// instead." : ""
        throw WebSocketHandshakeError(
            .endedEarly,
            "The server closed the connection during the WebSocket handshake. Check that it serves WebSocket at this port and path.\(hint)"
        )
    }

    private mutating func finishRefusal(isEnd: Bool) {
        guard outcome == nil, let refusal, isEnd || refusal.body.isComplete else { return }
        var response = refusal.response
        response.body = refusal.body.body
        outcome = .refused(response)
    }

    /// The response as far as it is known.
    private func response() throws(WebSocketHandshakeError) -> HTTPResponseHead {
        do throws(HTTPError) {
            return try HTTPResponseHead(startLine: head.startLine, fields: head.fields)
        } catch {
            throw WebSocketHandshakeError(
                .notHTTP,
                "The first line of the server's answer is not a response of HTTP/1. Check that it serves WebSocket at this port."
            )
        }
    }

    /// A peer that speaks another protocol, and sends the first line, may never end a head.
    private func judgeStartLine() throws(WebSocketHandshakeError) {
        if !head.startLine.isEmpty { _ = try response() }
    }

    private mutating func judge() throws(WebSocketHandshakeError) {
        let response = try response()
        let fields = response.fields
        switch response.status {
        case 101:
            guard response.minorVersion >= 1 else {
                throw WebSocketHandshakeError(.wrongUpgrade, "The server switched protocols in HTTP/1.0.")
            }
            outcome = .accepted(subprotocol: try checkUpgrade(fields), fields: fields)
        case _ where response.isInterim:
            head.restart()
        default:
            refusal = (
                WebSocketRefusedResponse(
                    status: response.status, reason: response.reason, fields: fields, body: []),
                HTTPBodyCollector(status: response.status, fields: fields, limit: bodyLimit)
            )
            finishRefusal(isEnd: false)
        }
    }

    /// The checks of section 4.1, items 2 to 6 of what the server's response has to be.
    private func checkUpgrade(_ fields: HTTPFields) throws(WebSocketHandshakeError) -> String? {
        guard fields.list("Upgrade").count == 1, fields.list("Upgrade", contains: "websocket") else {
            throw WebSocketHandshakeError(.wrongUpgrade, "The server switched to something else than websocket.")
        }
        guard fields.list("Connection", contains: "upgrade") else {
            throw WebSocketHandshakeError(.wrongUpgrade, "The server's Connection field does not say Upgrade.")
        }
        let accepts = fields.all("Sec-WebSocket-Accept")
        guard accepts.count == 1, accepts[0].hasSameBytes(as: WebSocketKey.accept(for: key)) else {
            throw WebSocketHandshakeError(
                .wrongAccept, "Sec-WebSocket-Accept does not belong to the key that was sent.")
        }
        if let name = fields.list("Sec-WebSocket-Extensions").first {
            throw WebSocketHandshakeError(
                .unofferedExtension, "The server uses extension \(name), which was not offered.")
        }
        // A proxy in front of the server may repeat what it chose (section 11.3.4 forbids it), which takes nothing from it.
        let chosen = fields.list("Sec-WebSocket-Protocol")
        guard let name = chosen.first else { return nil }
        guard chosen.allSatisfy({ $0.hasSameBytes(as: name) }),
            request.subprotocols.contains(where: { $0.hasSameBytes(as: name) })
        else {
            throw WebSocketHandshakeError(
                .wrongSubprotocol,
                "The server chose sub-protocol \"\(chosen.joined(separator: ", "))\", which is not one of those offered."
            )
        }
        return name
    }
}

/// A server's answer other than 101: a redirect, a request for credentials, an error page.
package struct WebSocketRefusedResponse: Sendable, Hashable {
    package var status: Int
    /// The words beside the status.
    package var reason: String
    package var fields: HTTPFields
    /// The first bytes of the body, without chunks' framing.
    package var body: [UInt8]

    /// Where a redirect (3xx) points to.
    package var location: String? { (300..<400).contains(status) ? fields.first("Location") : nil }
    /// The challenges of a 401.
    package var authenticationChallenges: [String] { fields.all("WWW-Authenticate") }
}
