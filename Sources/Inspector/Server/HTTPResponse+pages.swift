package import MessagingHTTPCore

extension HTTPResponse {
    /// A sentence as plain text.
    package static func text(_ status: Int, _ text: String, _ fields: HTTPFields = [:]) -> HTTPResponse {
        var fields = fields
        fields.append("Content-Type", "text/plain; charset=utf-8")
        return HTTPResponse(status: status, fields: fields, body: Array((text + "\n").utf8))
    }

    /// Data that only this server's pages may read.
    static func data(_ contentType: String, _ body: [UInt8], _ fields: HTTPFields = [:]) -> HTTPResponse {
        var fields = fields
        fields.append("Content-Type", contentType)
        fields.append("Cross-Origin-Resource-Policy", "same-origin")
        return HTTPResponse(status: 200, fields: fields, body: body)
    }

    /// What every response of a page server says.
    mutating func addCommonFields() {
        // The next program on this port may be a newer one.
        fields.append("Cache-Control", "no-store")
        fields.append("X-Content-Type-Options", "nosniff")
        // Other sites must not learn the token in the address.
        if fields.first("Referrer-Policy") == nil { fields.append("Referrer-Policy", "same-origin") }
        if fields.first("Content-Security-Policy") == nil {
            fields.append("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
        }
    }
}
