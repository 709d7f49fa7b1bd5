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

extension FrameScanner {
    mutating func scanHeaders(
        _ bytes: RawSpan, _ base: Int, _ version: STOMPVersion?, _ limits: STOMPLimits
    ) throws(STOMPProtocolError) -> Bool {
        let end = min(bytes.byteCount, base + limits.maximumHeaderBytes + 2)
        while true {
            if colon < 0 {
                guard
                    let found = bytes.firstOffset(
                        of: UInt8(ascii: ":"), or: UInt8(ascii: "\n"), from: base + cursor, to: end)
                else { return try pauseInHeaders(end - base, limits) }
                if bytes.byte(at: found) == UInt8(ascii: "\n") {
                    let isEmpty =
                        found - base == lineStart
                        || (found - base == lineStart + 1 && bytes.byte(at: found - 1) == UInt8(ascii: "\r"))
                    guard isEmpty else { throw .noColon(bytes, base + lineStart, found) }
                    try finishHeaders(bytes, base, found + 1 - base, version, limits)
                    return true
                }
                colon = found - base
                cursor = colon + 1
            }
            guard let feed = bytes.firstOffset(of: UInt8(ascii: "\n"), from: base + cursor, to: end) else {
                return try pauseInHeaders(end - base, limits)
            }
            var valueEnd = feed - base
            if bytes.byte(at: feed - 1) == UInt8(ascii: "\r") { valueEnd -= 1 }
            guard valueEnd - lineStart <= limits.maximumLineBytes else {
                throw .limit("a header line", limits.maximumLineBytes, "bytes")
            }
            guard colon > lineStart else {
                throw STOMPProtocolError(.malformedHeader, "A header line has no name before its colon.")
            }
            headerCount += 1
            guard headerCount <= limits.maximumHeaders else {
                throw .limit("a frame", limits.maximumHeaders, "headers")
            }
            let name = try trimmedName(bytes, base, version)
            note(bytes, base, name: name.lowerBound, name.upperBound, value: colon + 1, valueEnd)
            cursor = feed + 1 - base
            lineStart = cursor
            colon = -1
        }
    }

    /// The name of the current line, without the blanks that 1.0 peers may put around it. A handshake that names no
    /// version is read as one of 1.0.
    @inline(__always)
    private func trimmedName(
        _ bytes: RawSpan, _ base: Int, _ version: STOMPVersion?
    ) throws(STOMPProtocolError) -> Range<Int> {
        guard version == nil || version == .v10 || command.isHandshake,
            bytes.isBlank(at: base + lineStart) || bytes.isBlank(at: base + colon - 1)
        else { return lineStart..<colon }
        return try trimmingBlanks(bytes, base)
    }

    private func trimmingBlanks(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) -> Range<Int> {
        let name = bytes.trimmingBlanks(base + lineStart..<base + colon)
        guard !name.isEmpty else {
            throw STOMPProtocolError(.malformedHeader, "A header line has only blanks before its colon.")
        }
        return name.lowerBound - base..<name.upperBound - base
    }

    /// All received bytes are examined, and the headers are incomplete.
    private mutating func pauseInHeaders(_ seen: Int, _ limits: STOMPLimits) throws(STOMPProtocolError) -> Bool {
        cursor = max(cursor, seen)
        guard cursor - lineStart <= limits.maximumLineBytes + 1 else {
            throw .limit("a header line", limits.maximumLineBytes, "bytes")
        }
        guard cursor <= limits.maximumHeaderBytes + 1 else {
            throw .limit("the headers", limits.maximumHeaderBytes, "bytes")
        }
        return false
    }

    /// Notes where the headers are that the engine and most programs read; of repeated ones the first.
    private mutating func note(_ bytes: RawSpan, _ base: Int, name: Int, _ nameEnd: Int, value: Int, _ valueEnd: Int) {
        let slot = Slot(start: Int32(truncatingIfNeeded: value), end: Int32(truncatingIfNeeded: valueEnd))
        switch nameEnd - name {
        case 7 where !receipt.isSet && bytes.holds("receipt", at: base + name): receipt = slot
        case 10:
            if command == .message {
                if !messageID.isSet, bytes.holds("message-id", at: base + name) { messageID = slot }
            } else if !receiptID.isSet, bytes.holds("receipt-id", at: base + name) {
                receiptID = slot
            }
        case 11:
            if !destination.isSet, bytes.holds("destination", at: base + name) {
                destination = slot
            } else if !transaction.isSet, bytes.holds("transaction", at: base + name) {
                transaction = slot
            }
        case 12:
            if !subscription.isSet, bytes.holds("subscription", at: base + name) {
                subscription = slot
            } else if !contentType.isSet, bytes.holds("content-type", at: base + name) {
                contentType = slot
            }
        case 14 where !lengthSlot.isSet && bytes.holds("content-length", at: base + name):
            lengthSlot = slot
        default: break
        }
    }

    private mutating func finishHeaders(
        _ bytes: RawSpan, _ base: Int, _ end: Int, _ version: STOMPVersion?, _ limits: STOMPLimits
    ) throws(STOMPProtocolError) {
        headerEnd = lineStart
        guard headerEnd <= limits.maximumHeaderBytes else {
            throw .limit("the headers", limits.maximumHeaderBytes, "bytes")
        }
        bodyStart = end
        cursor = end
        let traits = TextTraits(bytes, from: base + headerStart, to: base + headerEnd)
        hasEscapes = traits.hasBackslash
        if traits.hasReturn, version == .v12 { try checkReturns(bytes, base) }
        guard traits.isASCII || bytes.isUTF8(from: base + headerStart, to: base + headerEnd) else {
            throw STOMPProtocolError(.invalidUTF8, "A header of \(name(in: bytes, base)) is not UTF-8.")
        }
        // Before the version is known only the handshake and an ERROR can come, and an ERROR then is read as it is.
        if hasEscapes, let version {
            let escaping = STOMPEscaping(version, for: command)
            if let offset = escaping.firstUndefined(in: bytes, from: base + headerStart, to: base + headerEnd) {
                throw .undefinedEscape(bytes, offset, base + headerEnd, version)
            }
        }
        guard lengthSlot.isSet else {
            step = .openBody
            return
        }
        let blanks = version ?? .v10 == .v10
        let length = try Self.contentLength(
            bytes, base + Int(lengthSlot.start)..<base + Int(lengthSlot.end), trimsBlanks: blanks)
        guard length <= limits.maximumBodyBytes else {
            throw STOMPProtocolError(
                .limitExceeded,
                "The peer announces a body of \(length) bytes; the limit is \(limits.maximumBodyBytes). Raise maximumBodyBytes if that is wanted."
            )
        }
        guard length == 0 || command.mayHaveBody else { throw .body(of: name(in: bytes, base)) }
        contentLength = length
        step = .countedBody
    }

    /// A CR is allowed before a line feed only (STOMP 1.2 "Augmented BNF").
    private func checkReturns(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) {
        var offset = base + headerStart
        let end = base + headerEnd
        while let found = bytes.firstOffset(of: UInt8(ascii: "\r"), from: offset, to: end) {
            guard found + 1 < end, bytes.byte(at: found + 1) == UInt8(ascii: "\n") else {
                throw STOMPProtocolError(
                    .malformedHeader,
                    "A header of \(name(in: bytes, base)) holds a carriage return that ends no line, which STOMP 1.2 does not allow."
                )
            }
            offset = found + 1
        }
    }

    /// The number in a `content-length` header: decimal digits that fit into an Int, nothing else.
    static func contentLength(
        _ bytes: RawSpan, _ value: Range<Int>, trimsBlanks: Bool
    ) throws(STOMPProtocolError) -> Int {
        let range = trimsBlanks ? bytes.trimmingBlanks(value) : value
        let (start, end) = (range.lowerBound, range.upperBound)
        var value = 0
        var isNumber = end > start
        for offset in start..<end where isNumber {
            let digit = bytes.byte(at: offset) &- UInt8(ascii: "0")
            let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
            let (sum, carry) = shifted.addingReportingOverflow(Int(digit))
            isNumber = digit <= 9 && !overflow && !carry
            value = sum
        }
        guard isNumber else {
            throw STOMPProtocolError(
                .invalidContentLength,
                "content-length is \"\(bytes.text(in: start..<min(end, start + 40)) ?? "?")\", which is no number of bytes."
            )
        }
        return value
    }
}
