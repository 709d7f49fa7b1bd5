// What is said about malformed frames, apart from the code that finds them.

import Wire

extension STOMPProtocolError {
    static func limit(_ what: String, _ most: Int, _ unit: String) -> STOMPProtocolError {
        STOMPProtocolError(
            .limitExceeded, "The peer sends \(what) of more than \(most) \(unit). Raise STOMPLimits if that is wanted.")
    }

    static func body(of name: String) -> STOMPProtocolError {
        STOMPProtocolError(.unexpectedBody, "\(name) has a body; only SEND, MESSAGE and ERROR may have one.")
    }

    static func malformedCommand(_ bytes: RawSpan, _ start: Int, _ end: Int) -> STOMPProtocolError {
        STOMPProtocolError(
            .malformedCommand,
            "A frame begins with \"\(excerpt(bytes, start, end))\", which is no command. Is the peer a STOMP server, and is TLS expected there?"
        )
    }

    static func noColon(_ bytes: RawSpan, _ start: Int, _ end: Int) -> STOMPProtocolError {
        STOMPProtocolError(.malformedHeader, "A header line has no colon: \"\(excerpt(bytes, start, end))\".")
    }

    static func undefinedEscape(
        _ bytes: RawSpan, _ start: Int, _ end: Int, _ version: STOMPVersion
    ) -> STOMPProtocolError {
        STOMPProtocolError(
            .undefinedEscape,
            "A header holds \"\(excerpt(bytes, start, min(start + 2, end)))\", which STOMP \(version) does not define.")
    }

    /// At most 60 bytes for people to read: what is not printable ASCII becomes a dot.
    private static func excerpt(_ bytes: RawSpan, _ start: Int, _ end: Int) -> String {
        var text = ""
        for offset in start..<min(end, start + 60) {
            let byte = bytes.byte(at: offset)
            text.unicodeScalars.append((0x20...0x7E).contains(byte) ? Unicode.Scalar(byte) : ".")
        }
        return end - start > 60 ? text + "…" : text
    }
}

extension RawSpan {
    /// The number in a `content-length` header: decimal digits that fit into an Int, nothing else.
    func contentLength(_ start: Int, _ end: Int, trimsBlanks: Bool) throws(STOMPProtocolError) -> Int {
        var start = start
        var end = end
        if trimsBlanks {
            while start < end, byte(at: start).isBlank { start += 1 }
            while start < end, byte(at: end - 1).isBlank { end -= 1 }
        }
        var value = 0
        var isNumber = end > start
        for offset in start..<end where isNumber {
            let digit = byte(at: offset) &- UInt8(ascii: "0")
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = shifted.addingReportingOverflow(Int(digit))
            isNumber = digit <= 9 && !overflow && !carry
            value = sum
        }
        guard isNumber else {
            throw STOMPProtocolError(
                .invalidContentLength,
                "content-length is \"\(text(in: start..<Swift.min(end, start + 40)) ?? "?")\", which is no number of bytes."
            )
        }
        return value
    }
}
