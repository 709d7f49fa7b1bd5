import Wire

/// How long the head of a request or response may be.
package struct HTTPHeadLimits: Sendable, Hashable {
    /// All lines together with their ends, in bytes; of interim responses too.
    package var bytes = 16 << 10
    /// How many header fields.
    package var fields = 100

    package init() {}
}

/// Reads a start line and header fields that arrive in pieces, and nothing after the empty line that ends them.
///
/// Stricter than RFC 9112 allows to be: lines end in CR LF, a field is one line. What other receivers might read
/// differently is refused, so that no intermediary can be deceived.
struct HTTPHeadParser {
    private(set) var startLine: [UInt8] = []
    private(set) var fields = HTTPFields()
    private(set) var isComplete = false
    private let limits: HTTPHeadLimits
    private var line: [UInt8] = []
    private var hasStartLine = false
    private var byteCount = 0

    init(limits: HTTPHeadLimits) {
        self.limits = limits
    }

    /// Takes bytes up to the end of the head and returns how many.
    mutating func receive(_ bytes: RawSpan) throws(WebSocketHandshakeError) -> Int {
        var index = 0
        while index < bytes.byteCount && !isComplete {
            try take(bytes.byte(at: index))
            index += 1
        }
        return index
    }

    /// Begins another head after an interim response; what it took is still counted.
    mutating func restart() {
        startLine = []
        fields = HTTPFields()
        isComplete = false
        hasStartLine = false
    }

    private mutating func take(_ byte: UInt8) throws(WebSocketHandshakeError) {
        byteCount += 1
        guard byteCount <= limits.bytes else {
            throw WebSocketHandshakeError(.headTooLarge, "HTTP head of more than \(limits.bytes) bytes")
        }
        let follows = line.last == 0x0D
        guard HTTPSyntax.isValueByte(byte) && !follows || byte == 0x0D && !follows || byte == 0x0A && follows else {
            guard hasStartLine else { throw WebSocketHandshakeError(.notHTTP, "the peer does not speak HTTP") }
            throw .malformed("control character or wrong line end in the HTTP head")
        }
        guard byte == 0x0A else { return line.append(byte) }
        line.removeLast()
        try takeLine()
        line.removeAll(keepingCapacity: true)
    }

    private mutating func takeLine() throws(WebSocketHandshakeError) {
        guard hasStartLine else {
            startLine = line
            hasStartLine = true
            return
        }
        guard !line.isEmpty else {
            isComplete = true
            return
        }
        guard fields.fields.count < limits.fields else {
            throw WebSocketHandshakeError(.headTooLarge, "more than \(limits.fields) header fields")
        }
        guard let colon = line.firstIndex(of: HTTPSyntax.colon), HTTPSyntax.isToken(line[..<colon]) else {
            throw .malformed("header line without a proper field name")
        }
        fields.append(
            HTTPSyntax.text(line[..<colon]), HTTPSyntax.text(HTTPSyntax.trimmed(line[(colon + 1)...])))
    }
}
