import Wire

/// What header text needs before it can be handed out.
struct TextTraits {
    let isASCII: Bool
    private(set) var hasBackslash = false
    private(set) var hasReturn = false

    /// Checks the bytes in `start..<end` for anything besides plain ASCII without backslashes and carriage returns. A
    /// range that does not lie inside the span traps.
    init(_ bytes: RawSpan, from start: Int, to end: Int) {
        bytes.require(start, end)
        var offset = start
        var high: UInt64 = 0
        var found: UInt64 = 0
        // Backslash and CR differ in the bits 0x51: with these set both are 0x5D, as L, M and ] are, which is sorted
        // out below. One comparison for both keeps this loop as short as it was for one.
        let differing = WordBits.copies(of: 0x51)
        let either = WordBits.copies(of: 0x5D)
        while end &- offset >= 8 {
            // Safe: inside, as was checked above.
            let word = unsafe bytes.uncheckedWord(at: offset)
            high |= word
            found |= WordBits.matches(word | differing, either)
            offset &+= 8
        }
        var isFound = found & WordBits.highs != 0
        while offset < end {
            let byte = bytes.byte(at: offset)
            high |= UInt64(byte)
            isFound = isFound || byte | 0x51 == 0x5D
            offset &+= 1
        }
        isASCII = high & WordBits.highs == 0
        guard isFound else { return }
        hasBackslash = bytes.firstOffset(of: UInt8(ascii: "\\"), from: start, to: end) != nil
        hasReturn = bytes.firstOffset(of: UInt8(ascii: "\r"), from: start, to: end) != nil
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
