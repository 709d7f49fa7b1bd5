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

    /// Appends the response; the connection is to be closed after it, and `Connection: close` says so.
    ///
    /// - Parameter omitsBody: for an answer to HEAD, whose fields describe a body that is not sent.
    /// - Throws: `invalidField`.
    package func write(into output: inout [UInt8], omitsBody: Bool = false) throws(WebSocketError) {
        try fields.checkForWriting(reserved: ["Connection", "Content-Length", "Transfer-Encoding", "Upgrade"])
        output.appendLine("HTTP/1.1 \(status) \(Self.phrase(of: status))")
        output.appendLine("Connection: close")
        output.appendLine("Content-Length: \(body.count)")
        fields.write(into: &output)
        if !omitsBody { output.append(contentsOf: body) }
    }

    /// The usual words for a status; empty for one that has none here.
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
