/// A response with a known body, such as a server's refusal or a static page.
package struct HTTPResponse: Sendable, Hashable {
    package var status: Int
    package var fields: HTTPFields
    package var body: [UInt8]

    package init(status: Int, fields: HTTPFields = HTTPFields(), body: [UInt8] = []) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Appends the response with `Connection: close`: close the connection after it.
    ///
    /// - Parameter omitsBody: for an answer to HEAD, whose fields describe a body that is not sent.
    /// - Throws: `invalidField`.
    package func write(into output: inout [UInt8], omitsBody: Bool = false) throws(HTTPError) {
        try fields.checkForWriting(reserved: ["Connection", "Content-Length", "Transfer-Encoding", "Upgrade"])
        HTTPSyntax.appendLine("HTTP/1.1 \(status) \(Self.phrase(of: status))", to: &output)
        HTTPSyntax.appendLine("Connection: close", to: &output)
        HTTPSyntax.appendLine("Content-Length: \(body.count)", to: &output)
        fields.write(into: &output)
        if !omitsBody { output.append(contentsOf: body) }
    }

    /// The usual reason phrase of a status; empty for a status that is not listed here.
    package static func phrase(of status: Int) -> String {
        switch status {
        case 101: "Switching Protocols"
        case 200: "OK"
        case 301: "Moved Permanently"
        case 302: "Found"
        case 307: "Temporary Redirect"
        case 308: "Permanent Redirect"
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 426: "Upgrade Required"
        case 431: "Request Header Fields Too Large"
        case 500: "Internal Server Error"
        case 503: "Service Unavailable"
        default: ""
        }
    }
}
/// The status line and the header fields of a response.
package struct HTTPResponseHead: Sendable, Hashable {
    package var status: Int
    /// The reason phrase after the status, which may be empty.
    package var reason: String
    /// The x of HTTP/1.x.
    package var minorVersion: Int
    package var fields: HTTPFields

    /// Whether another response follows it (RFC 9110 section 15.2); 101 ends the exchange instead.
    package var isInterim: Bool { (100..<200).contains(status) && status != 101 }

    package init(startLine: [UInt8], fields: HTTPFields) throws(HTTPError) {
        let parts = startLine.split(separator: HTTPSyntax.space, maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count >= 2, let minor = HTTPSyntax.minorVersion(of: parts[0]), parts[1].count == 3,
            parts[1].allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }), let status = Int(HTTPSyntax.text(parts[1])),
            status >= 100
        else {
            throw HTTPError(.notHTTP, "The first line is not a response of HTTP/1.")
        }
        self.status = status
        reason = parts.count == 3 ? HTTPSyntax.text(parts[2]) : ""
        minorVersion = minor
        self.fields = fields
    }
}

/// Reads the head of one response that arrives in pieces. Interim responses are skipped, and the bytes after the head
/// are left to the caller.
package struct HTTPResponseParser: Sendable {
    /// The response, once its head is complete.
    package private(set) var response: HTTPResponseHead?
    private var head: HTTPHeadParser

    package init(limits: HTTPHeadLimits = HTTPHeadLimits()) {
        head = HTTPHeadParser(limits: limits)
    }

    /// Takes bytes up to the end of the head and returns how many; none once `response` is set.
    ///
    /// - Throws: `notHTTP` as early as the first line allows, `malformedHead`, `headTooLarge`.
    package mutating func receive(_ bytes: RawSpan) throws(HTTPError) -> Int {
        var consumed = 0
        while consumed < bytes.byteCount && response == nil {
            consumed += try head.receive(bytes.extracting(consumed..<bytes.byteCount))
            guard head.isComplete else {
                // A peer that speaks another protocol may never end a head.
                if !head.startLine.isEmpty { _ = try HTTPResponseHead(startLine: head.startLine, fields: [:]) }
                continue
            }
            let found = try HTTPResponseHead(startLine: head.startLine, fields: head.fields)
            if found.isInterim { head.restart() } else { response = found }
        }
        return consumed
    }
}
