import Wire

/// Finds one frame in the bytes that have come so far, and remembers how far it looked, so that a frame in a thousand
/// reads is scanned once.
///
/// All positions count from the first byte of the frame, which stays the first byte that the caller presents. Nothing
/// is copied and nothing allocated; what the scanner notes is integers.
struct FrameScanner {
    enum Step: UInt8 { case betweenFrames, command, headers, countedBody, openBody }

    /// Where a value stands; `start` is -1 for a header that is not there.
    struct Slot {
        var start: Int32 = -1
        var end: Int32 = -1
        var isSet: Bool { start >= 0 }
    }

    private(set) var step = Step.betweenFrames
    /// The next byte to look at.
    private(set) var cursor = 0
    private var lineStart = 0
    /// Where the colon of the current line is; -1 while it is not found.
    private var colon = -1
    private var contentLength = -1
    private(set) var headerCount = 0

    private(set) var command = STOMPCommand.unknown
    private(set) var commandEnd = 0
    private(set) var headerStart = 0
    /// One past the line feed of the last header.
    private(set) var headerEnd = 0
    private(set) var bodyStart = 0
    private(set) var bodyEnd = 0
    /// Whether any header holds a backslash.
    private(set) var hasEscapes = false

    private(set) var destination = Slot()
    private(set) var subscription = Slot()
    private(set) var receipt = Slot()
    private(set) var receiptID = Slot()
    private(set) var transaction = Slot()
    /// Whether a MESSAGE has a `message-id`.
    private(set) var hasMessageID = false
    private var sawContentLength = false

    /// Bytes of the whole frame, its NUL included, once it is complete.
    var frameEnd: Int { bodyEnd + 1 }

    /// How many bytes the frame has at least, as far as can be known by now.
    var bytesNeeded: Int { step == .countedBody ? bodyStart + contentLength + 1 : cursor + 1 }

    /// Whether nothing of a frame was seen yet.
    var isBetweenFrames: Bool { step == .betweenFrames }

    mutating func reset() { self = FrameScanner() }

    /// The line ends between frames at `base`, and their bytes: heart-beats, and what brokers put after a NUL.
    /// A CR counts only together with its LF.
    func lineEnds(in bytes: RawSpan, from base: Int) -> (count: Int, bytes: Int) {
        var offset = base
        var count = 0
        let end = bytes.byteCount
        while offset < end {
            switch bytes.byte(at: offset) {
            case UInt8(ascii: "\n"): offset &+= 1
            case UInt8(ascii: "\r") where offset &+ 1 < end && bytes.byte(at: offset &+ 1) == UInt8(ascii: "\n"):
                offset &+= 2
            default: return (count, offset &- base)
            }
            count &+= 1
        }
        return (count, offset &- base)
    }

    /// Goes on looking for the end of the frame that begins at `base`. True when it is complete.
    mutating func scan(
        _ bytes: RawSpan, from base: Int, version: STOMPVersion?, limits: STOMPLimits
    ) throws(STOMPProtocolError) -> Bool {
        if step == .betweenFrames {
            guard base < bytes.byteCount else { return false }
            // Half of a CRLF: wait for the other half. A TLS alert, from a server that expects TLS, has two bytes too.
            let first = bytes.byte(at: base)
            if bytes.byteCount - base == 1, first == UInt8(ascii: "\r") || (version == nil && first == 0x15) {
                return false
            }
            step = .command
        }
        if step == .command {
            guard try scanCommand(bytes, base, limits) else { return false }
        }
        if step == .headers {
            guard try scanHeaders(bytes, base, version, limits) else { return false }
        }
        return step == .countedBody ? try scanCountedBody(bytes, base) : try scanOpenBody(bytes, base, limits)
    }

    private mutating func scanCommand(
        _ bytes: RawSpan, _ base: Int, _ limits: STOMPLimits
    ) throws(STOMPProtocolError) -> Bool {
        // No command is longer than a dozen letters; something that never ends its first line is no STOMP peer.
        let longest = min(limits.maximumLineBytes, 256)
        let end = min(bytes.byteCount, base + longest + 2)
        guard let feed = bytes.firstOffset(of: UInt8(ascii: "\n"), from: base + cursor, to: end) else {
            guard end - base <= longest + 1 else { throw .limit("a command line", longest, "bytes") }
            // Judged now: the end of the line may never come. A CR may be half of it.
            let isHalf = bytes.byte(at: end - 1) == UInt8(ascii: "\r")
            let seen = isHalf ? end - 1 : end
            try checkCommand(bytes, base, from: base + cursor, to: seen, end: end)
            cursor = seen - base
            return false
        }
        commandEnd = feed - base
        if bytes.byte(at: feed - 1) == UInt8(ascii: "\r") { commandEnd -= 1 }
        guard commandEnd <= longest else { throw .limit("a command line", longest, "bytes") }
        command = STOMPCommand(bytes, base, base + commandEnd)
        if command == .unknown {
            try checkCommand(bytes, base, from: base, to: base + commandEnd, end: base + commandEnd)
        }
        cursor = feed + 1 - base
        lineStart = cursor
        headerStart = cursor
        step = .headers
        return true
    }

    /// Commands are printable ASCII without blanks.
    private func checkCommand(
        _ bytes: RawSpan, _ base: Int, from start: Int, to seen: Int, end: Int
    ) throws(STOMPProtocolError) {
        var offset = start
        while offset < seen {
            guard (0x21...0x7E).contains(bytes.byte(at: offset)) else { throw .malformedCommand(bytes, base, end) }
            offset += 1
        }
    }

    private mutating func scanHeaders(
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
            bytes.byte(at: base + lineStart).isBlank || bytes.byte(at: base + colon - 1).isBlank
        else { return lineStart..<colon }
        return try trimmingBlanks(bytes, base)
    }

    private func trimmingBlanks(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) -> Range<Int> {
        var (start, end) = (lineStart, colon)
        while start < end, bytes.byte(at: base + start).isBlank { start += 1 }
        while start < end, bytes.byte(at: base + end - 1).isBlank { end -= 1 }
        guard start < end else {
            throw STOMPProtocolError(.malformedHeader, "A header line has only blanks before its colon.")
        }
        return start..<end
    }

    /// All that has come is looked at, and the headers go on.
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

    /// Keeps where the headers are that the engine itself reads; of repeated ones the first.
    private mutating func note(_ bytes: RawSpan, _ base: Int, name: Int, _ nameEnd: Int, value: Int, _ valueEnd: Int) {
        let slot = Slot(start: Int32(truncatingIfNeeded: value), end: Int32(truncatingIfNeeded: valueEnd))
        switch nameEnd - name {
        case 7 where !receipt.isSet && bytes.holds("receipt", at: base + name): receipt = slot
        case 10:
            if command == .message {
                if !hasMessageID { hasMessageID = bytes.holds("message-id", at: base + name) }
            } else if !receiptID.isSet, bytes.holds("receipt-id", at: base + name) {
                receiptID = slot
            }
        case 11:
            if !destination.isSet, bytes.holds("destination", at: base + name) {
                destination = slot
            } else if !transaction.isSet, bytes.holds("transaction", at: base + name) {
                transaction = slot
            }
        case 12 where !subscription.isSet && bytes.holds("subscription", at: base + name): subscription = slot
        case 14 where !sawContentLength && bytes.holds("content-length", at: base + name):
            sawContentLength = true
            lengthSlot = slot
        default: break
        }
    }

    private var lengthSlot = Slot()

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
            if let offset = bytes.firstUndefinedEscape(escaping, from: base + headerStart, to: base + headerEnd) {
                throw .undefinedEscape(bytes, offset, base + headerEnd, version)
            }
        }
        guard sawContentLength else {
            step = .openBody
            return
        }
        let blanks = version ?? .v10 == .v10
        let length = try bytes.contentLength(
            base + Int(lengthSlot.start), base + Int(lengthSlot.end), trimsBlanks: blanks)
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

    private mutating func scanCountedBody(_ bytes: RawSpan, _ base: Int) throws(STOMPProtocolError) -> Bool {
        let end = bodyStart + contentLength
        guard bytes.byteCount - base > end else { return false }
        guard bytes.byte(at: base + end) == 0 else {
            throw STOMPProtocolError(
                .missingTerminator,
                "The byte after a body of \(contentLength) bytes is \(bytes.byte(at: base + end)), not NUL: content-length counts bytes, and this one is wrong."
            )
        }
        bodyEnd = end
        return true
    }

    private mutating func scanOpenBody(
        _ bytes: RawSpan, _ base: Int, _ limits: STOMPLimits
    ) throws(STOMPProtocolError) -> Bool {
        let most = command.mayHaveBody ? limits.maximumBodyBytes : 0
        let end = min(bytes.byteCount, base + bodyStart + most + 1)
        guard let terminator = bytes.firstOffset(of: 0, from: base + cursor, to: end) else {
            cursor = max(cursor, end - base)
            guard cursor - bodyStart <= most else {
                if !command.mayHaveBody { throw .body(of: name(in: bytes, base)) }
                throw .limit("a body", limits.maximumBodyBytes, "bytes")
            }
            return false
        }
        bodyEnd = terminator - base
        return true
    }

    func name(in bytes: RawSpan, _ base: Int) -> String { bytes.text(in: base..<base + commandEnd) ?? "?" }
}
