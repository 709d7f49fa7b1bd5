import MessagingWire

/// Limits on the head of a request or response.
package struct HTTPHeadLimits: Sendable, Hashable {
    /// All lines with their ends, interim responses included, in bytes. Default: 16 KiB.
    package var maximumBytes = 16 << 10
    /// The number of header fields. Default: 100.
    package var maximumFields = 100

    package init() {}
}

/// Reads a start line and header fields that arrive in pieces, and nothing after the empty line that ends them.
///
/// Stricter than RFC 9112 requires: lines end in CR LF, a field is one line. Heads that other receivers might read
/// differently are refused, so that no intermediary can be deceived. Only a response whose first line ends in LF alone may
/// do so throughout (section 2.2): the login pages of some networks answer like that, and it is worth knowing where they are.
package struct HTTPHeadParser: Sendable {
    package private(set) var startLine: [UInt8] = []
    package private(set) var fields = HTTPFields()
    package private(set) var isComplete = false
    private let limits: HTTPHeadLimits
    private var line: [UInt8] = []
    private var hasStartLine = false
    private var endsInLineFeed = false
    /// Of all heads together.
    package private(set) var byteCount = 0

    package init(limits: HTTPHeadLimits) {
        self.limits = limits
    }

    /// Takes bytes up to the end of the head and returns how many.
    package mutating func receive(_ bytes: RawSpan) throws(HTTPError) -> Int {
        var index = 0
        while index < bytes.byteCount && !isComplete {
            try take(bytes.byte(at: index))
            index += 1
        }
        return index
    }

    /// Begins another head after an interim response, whose bytes still count.
    package mutating func restart() {
        startLine = []
        fields = HTTPFields()
        isComplete = false
        hasStartLine = false
    }

    private mutating func take(_ byte: UInt8) throws(HTTPError) {
        byteCount += 1
        guard byteCount <= limits.maximumBytes else {
            throw HTTPError(.headTooLarge, "The HTTP head is longer than \(limits.maximumBytes) bytes.")
        }
        let follows = line.last == 0x0D
        if byte == 0x0A, !follows, endsInLineFeed || !hasStartLine && line.starts(with: "HTTP/1.".utf8) {
            endsInLineFeed = true
            return try finishLine()
        }
        guard HTTPSyntax.isValueByte(byte) && !follows || byte == 0x0D && !follows || byte == 0x0A && follows else {
            guard hasStartLine else { throw HTTPError(.notHTTP, "The peer does not speak HTTP.") }
            throw HTTPError(.malformedHead, "The HTTP head has a control character or a wrong line end.")
        }
        guard byte == 0x0A else { return line.append(byte) }
        line.removeLast()
        try finishLine()
    }

    private mutating func finishLine() throws(HTTPError) {
        try takeLine()
        line.removeAll(keepingCapacity: true)
    }

    private mutating func takeLine() throws(HTTPError) {
        guard hasStartLine else {
            startLine = line
            hasStartLine = true
            return
        }
        guard !line.isEmpty else {
            isComplete = true
            return
        }
        guard fields.fields.count < limits.maximumFields else {
            throw HTTPError(.headTooLarge, "The HTTP head has more than \(limits.maximumFields) fields.")
        }
        guard let colon = line.firstIndex(of: HTTPSyntax.colon), HTTPSyntax.isToken(line[..<colon]) else {
            throw HTTPError(.malformedHead, "A header line has no proper field name.")
        }
        fields.append(
            HTTPSyntax.text(line[..<colon]), HTTPSyntax.text(HTTPSyntax.trimmed(line[(colon + 1)...])))
    }
}
