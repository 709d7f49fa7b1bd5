import MessagingWire

/// Collects the first bytes of a response's body, which ends by its length, its last chunk or the stream's end
/// (RFC 9112 section 6.3).
package struct HTTPBodyCollector: Sendable {
    package private(set) var isComplete = false
    private var bytes: [UInt8] = []
    private let limit: Int
    private let isChunked: Bool

    /// - Parameter limit: bytes to collect, including the framing of chunks; the body is complete when it is reached.
    package init(status: Int, fields: HTTPFields, limit: Int) {
        isChunked = fields.list("Transfer-Encoding", contains: "chunked")
        let length = isChunked ? nil : fields.first("Content-Length").flatMap { Int($0) }
        let isEmpty = status == 204 || status == 304
        self.limit = isEmpty ? 0 : max(0, min(limit, length ?? limit))
        isComplete = self.limit == 0
    }

    /// Takes the bytes that belong to the body and returns how many.
    package mutating func receive(_ span: RawSpan) -> Int {
        var index = 0
        while index < span.byteCount && !isComplete {
            bytes.append(span.byte(at: index))
            index += 1
            // The last chunk ends in an empty line, so only that needs a check.
            let mayEnd = isChunked && bytes.suffix(4).elementsEqual("\r\n\r\n".utf8)
            isComplete = bytes.count == limit || mayEnd && unchunked().isWhole
        }
        return index
    }

    /// The body as far as it has arrived, without the framing of chunks.
    package var body: [UInt8] { isChunked ? unchunked().body : bytes }

    /// Decodes chunks up to the first invalid one: an error page is not worth an error of its own.
    private func unchunked() -> (body: [UInt8], isWhole: Bool) {
        var body: [UInt8] = []
        var rest = bytes[...]
        while let lineEnd = rest.firstIndex(of: 0x0A) {
            let digits = rest[..<lineEnd].prefix { $0 != 0x0D && $0 != UInt8(ascii: ";") && $0 != HTTPSyntax.space }
            guard let size = Int(HTTPSyntax.text(digits), radix: 16), size >= 0 else { break }
            rest = rest[(lineEnd + 1)...]
            if size == 0 { return (body, true) }
            body.append(contentsOf: rest.prefix(size))
            rest = rest.dropFirst(size).dropFirst(2)
        }
        return (body, false)
    }
}
