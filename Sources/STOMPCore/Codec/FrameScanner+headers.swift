import MessagingWire

/// What header text needs before it can be handed out.
struct TextTraits {
    let isASCII: Bool
    private(set) var hasBackslash = false
    private(set) var hasReturn = false

    /// Checks the bytes in `start..<end` for anything besides plain ASCII without backslashes and carriage returns. A
    /// range that does not lie inside the span traps.
    init(_ bytes: RawSpan, from start: Int, to end: Int) {
        bytes.require(start, end)
        // Backslash and CR differ in the bits 0x51: with these set both are 0x5D, as L, M and ] are, which is sorted
        // out below. A single comparison covers both.
        let isFound: Bool
        if end &- start >= 16 {
            var high = SIMD16<UInt8>()
            var found = SIMDMask<SIMD16<Int8>>()
            var offset = start
            let last = end &- 16
            // The last bytes overlap with those before them unless there are whole groups.
            while offset < last {
                unsafe Self.add(bytes, offset, &high, &found)
                offset &+= 16
            }
            unsafe Self.add(bytes, last, &high, &found)
            // A mask consists of 16 bytes. Asking it whether any of them is set would be a loop over them.
            let (marks, highs) = unsafe (
                unsafeBitCast(found, to: SIMD2<UInt64>.self), unsafeBitCast(high, to: SIMD2<UInt64>.self)
            )
            isFound = marks.x | marks.y != 0
            isASCII = (highs.x | highs.y) & WordBits.highs == 0
        } else if end &- start >= 8 {
            // The words may overlap.
            let (one, other) = unsafe (bytes.uncheckedWord(at: start), bytes.uncheckedWord(at: end &- 8))
            let differing = WordBits.copies(of: 0x51)
            let either = WordBits.copies(of: 0x5D)
            let marks = WordBits.matches(one | differing, either) | WordBits.matches(other | differing, either)
            isFound = marks & WordBits.highs != 0
            isASCII = (one | other) & WordBits.highs == 0
        } else {
            var (high, isFoundYet) = (UInt8(0), false)
            for offset in start..<end {
                let byte = bytes.byte(at: offset)
                high |= byte
                isFoundYet = isFoundYet || byte | 0x51 == 0x5D
            }
            isFound = isFoundYet
            isASCII = high < 0x80
        }
        guard isFound else { return }
        hasBackslash = bytes.firstOffset(of: UInt8(ascii: "\\"), from: start, to: end) != nil
        hasReturn = bytes.firstOffset(of: UInt8(ascii: "\r"), from: start, to: end) != nil
    }

    @inline(__always) @unsafe
    private static func add(
        _ bytes: RawSpan, _ offset: Int, _ high: inout SIMD16<UInt8>, _ found: inout SIMDMask<SIMD16<Int8>>
    ) {
        // The caller has checked that sixteen bytes are there.
        let group = unsafe bytes.unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: SIMD16<UInt8>.self)
        high |= group
        found .|= (group | SIMD16(repeating: 0x51)) .== SIMD16(repeating: 0x5D)
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
                    if !isEmpty {
                        try continueValue(bytes, base, upTo: found, limits)
                        continue
                    }
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
            try countHeader(limits)
            let name = try trimmedName(bytes, base, version)
            let value = Slot(
                start: Int32(truncatingIfNeeded: colon + 1), end: Int32(truncatingIfNeeded: valueEnd))
            note(bytes, base + name.lowerBound, name.count, value)
            endLine(bytes, base, at: feed)
        }
    }

    @inline(__always)
    private mutating func countHeader(_ limits: STOMPLimits) throws(STOMPProtocolError) {
        headerCount &+= 1
        guard headerCount <= limits.maximumHeaders else { throw .limit("a frame", limits.maximumHeaders, "headers") }
    }

    /// Notes what the text of the current line needs, and begins the next one.
    @inline(__always)
    private mutating func endLine(_ bytes: RawSpan, _ base: Int, at feed: Int) {
        let traits = TextTraits(bytes, from: base + lineStart, to: feed)
        isASCII = isASCII && traits.isASCII
        hasEscapes = hasEscapes || traits.hasBackslash
        hasReturns = hasReturns || traits.hasReturn
        cursor = feed + 1 - base
        lineStart = cursor
        colon = -1
    }

    /// Takes a line without a colon, which continues the value before it. Only the `message` of ERROR may have such lines:
    /// ActiveMQ writes the texts of exceptions there as they are, and they tell why the connection is refused.
    private mutating func continueValue(
        _ bytes: RawSpan, _ base: Int, upTo feed: Int, _ limits: STOMPLimits
    ) throws(STOMPProtocolError) {
        guard command == .error, followsMessage(bytes, base) else { throw .noColon(bytes, base + lineStart, feed) }
        guard feed - base - lineStart <= limits.maximumLineBytes else {
            throw .limit("a header line", limits.maximumLineBytes, "bytes")
        }
        try countHeader(limits)
        endLine(bytes, base, at: feed)
    }

    /// Whether the line before the current one is the header `message`, or continues it.
    private func followsMessage(_ bytes: RawSpan, _ base: Int) -> Bool {
        guard lineStart > headerStart else { return false }
        let end = base + lineStart - 1
        var start = end
        while start > base + headerStart, bytes.byte(at: start - 1) != UInt8(ascii: "\n") { start -= 1 }
        // A line without a colon was accepted because it continues the one before.
        guard let colon = bytes.firstOffset(of: UInt8(ascii: ":"), from: start, to: end) else { return true }
        let name = bytes.trimmingBlanks(start..<colon)
        return name.count == 7 && bytes.holds("message", at: name.lowerBound)
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

    /// Notes where the value of a header is that the engine or most programs read; of repeated headers the first counts.
    ///
    /// - Parameter start: where the name of `count` bytes begins.
    @inline(__always)
    private mutating func note(_ bytes: RawSpan, _ start: Int, _ count: Int, _ value: Slot) {
        switch count {
        case 7:
            if bytes.holds("receipt", at: start) { receipt.setFirst(value) }
        case 10:
            if bytes.holds("message-id", at: start) {
                messageID.setFirst(value)
            } else if bytes.holds("receipt-id", at: start) {
                receiptID.setFirst(value)
            }
        case 11:
            if bytes.holds("destination", at: start) {
                destination.setFirst(value)
            } else if bytes.holds("transaction", at: start) {
                transaction.setFirst(value)
            }
        case 12:
            if bytes.holds("subscription", at: start) {
                subscription.setFirst(value)
            } else if bytes.holds("content-type", at: start) {
                contentType.setFirst(value)
            }
        case 14:
            if bytes.holds("content-length", at: start) { lengthSlot.setFirst(value) }
        default: break
        }
    }

    /// The headers have broken a rule: notes where the values of the others are, as far as they have arrived.
    mutating func noteRest(_ bytes: RawSpan, _ base: Int, _ version: STOMPVersion) {
        guard step == .headers else { return }
        while let feed = bytes.firstOffset(of: UInt8(ascii: "\n"), from: base + lineStart, to: bytes.byteCount) {
            // At least the command stands before it.
            let end = bytes.byte(at: feed - 1) == UInt8(ascii: "\r") ? feed - 1 : feed
            guard end > base + lineStart else { return }
            if let found = bytes.firstOffset(of: UInt8(ascii: ":"), from: base + lineStart, to: end) {
                colon = found - base
                if colon > lineStart, let name = try? trimmedName(bytes, base, version) {
                    let value = Slot(
                        start: Int32(truncatingIfNeeded: colon + 1), end: Int32(truncatingIfNeeded: end - base))
                    note(bytes, base + name.lowerBound, name.count, value)
                }
            }
            lineStart = feed + 1 - base
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
        if hasReturns, version == .v12 { try checkReturns(bytes, base) }
        guard isASCII || bytes.isUTF8(from: base + headerStart, to: base + headerEnd) else {
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
                "The other end sent a body of \(length) bytes; the limit here is \(limits.maximumBodyBytes)."
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
        if let number = Self.shortNumber(bytes, start, end) { return number }
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
                "content-length is \"\(bytes.text(in: start..<min(end, start + 40)) ?? "?")\", which is not a number of bytes."
            )
        }
        return value
    }

    /// The number that the bytes `start..<end` are the decimal digits of, if they are at most nine: too few for an
    /// overflow.
    @inline(__always)
    private static func shortNumber(_ bytes: RawSpan, _ start: Int, _ end: Int) -> Int? {
        guard end &- start <= 9, start < end else { return nil }
        var (value, offset) = (0, start)
        while offset < end {
            let digit = bytes.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value &* 10 &+ Int(digit)
            offset &+= 1
        }
        return value
    }
}
