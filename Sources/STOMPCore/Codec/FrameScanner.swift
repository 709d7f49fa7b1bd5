import MessagingWire

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

        @inline(__always)
        mutating func setFirst(_ value: Slot) { if !isSet { self = value } }
    }

    var step = Step.betweenFrames
    /// The next byte to examine.
    var cursor = 0
    var lineStart = 0
    /// Where the colon of the current line is; -1 while it is not found.
    var colon = -1
    var contentLength = -1
    var headerCount = 0

    var command = STOMPCommand.unknown
    var commandEnd = 0
    var headerStart = 0
    /// One past the line feed of the last header.
    var headerEnd = 0
    var bodyStart = 0
    var bodyEnd = 0
    /// Whether any header holds a backslash.
    var hasEscapes = false
    /// Whether any header line holds a carriage return, that of its end included.
    var hasReturns = false
    var isASCII = true

    var destination = Slot()
    var subscription = Slot()
    var receipt = Slot()
    var receiptID = Slot()
    var transaction = Slot()
    /// The `message-id` of a MESSAGE.
    var messageID = Slot()
    var contentType = Slot()
    var lengthSlot = Slot()

    /// Bytes of the whole frame, its NUL included, once it is complete.
    var frameEnd: Int { bodyEnd + 1 }

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

    /// Continues the search for the end of the frame that begins at `base`. Returns true when the frame is complete.
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
        if cursor == 0, bytes.holds("MESSAGE\n", at: base) {
            command = .message
            commandEnd = 7
            beginHeaders(at: 8)
            return true
        }
        // No command is longer than a dozen letters; something that never ends its first line is no STOMP peer.
        let longest = min(limits.maximumLineBytes, 256)
        let end = min(bytes.byteCount, base + longest + 2)
        guard end > base else { return false }
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
        beginHeaders(at: feed + 1 - base)
        return true
    }

    private mutating func beginHeaders(at offset: Int) {
        cursor = offset
        lineStart = offset
        headerStart = offset
        step = .headers
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
