/// A response as far as its header fields.
package struct HTTPResponseHead: Sendable, Hashable {
    package var status: Int
    /// The words behind the status, which may be none.
    package var reason: String
    /// The x of HTTP/1.x.
    package var minorVersion: Int
    package var fields: HTTPFields

    /// Whether another response follows it (RFC 9110 section 15.2); 101 ends the exchange instead.
    package var isInterim: Bool { (100..<200).contains(status) && status != 101 }

    init(startLine: [UInt8], fields: HTTPFields) throws(WebSocketHandshakeError) {
        let parts = startLine.split(separator: HTTPSyntax.space, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let minor = HTTPSyntax.minorVersion(of: parts[0]), parts[1].count == 3,
            parts[1].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let status = Int(HTTPSyntax.text(parts[1])),
            status >= 100
        else {
            throw WebSocketHandshakeError(.notHTTP, "the first line is not a response of HTTP/1")
        }
        self.status = status
        reason = parts.count == 3 ? HTTPSyntax.text(parts[2]) : ""
        minorVersion = minor
        self.fields = fields
    }
}

/// Reads the head of one response that arrives in pieces; interim ones are passed over, and what follows the head is
/// left to the caller.
package struct HTTPResponseParser: Sendable {
    /// The response, once its head is whole.
    package private(set) var response: HTTPResponseHead?
    private var head: HTTPHeadParser

    package init(limits: HTTPHeadLimits = HTTPHeadLimits()) {
        head = HTTPHeadParser(limits: limits)
    }

    /// Takes bytes up to the end of the head and returns how many; none once `response` is there.
    ///
    /// - Throws: `notHTTP` as early as the first line allows, `malformedHead`, `headTooLarge`.
    package mutating func receive(_ bytes: RawSpan) throws(WebSocketHandshakeError) -> Int {
        var consumed = 0
        while consumed < bytes.byteCount && response == nil {
            consumed += try head.receive(bytes.extracting(consumed..<bytes.byteCount))
            guard head.isComplete else {
                // What speaks something else may never end a head.
                if !head.startLine.isEmpty { _ = try HTTPResponseHead(startLine: head.startLine, fields: [:]) }
                continue
            }
            let found = try HTTPResponseHead(startLine: head.startLine, fields: head.fields)
            if found.isInterim { head.restart() } else { response = found }
        }
        return consumed
    }
}
