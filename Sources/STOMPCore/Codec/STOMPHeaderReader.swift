import MessagingWire

/// Reads header strings from the header lines of a frame on demand.
///
/// A frame that the engine or the decoder let pass has been checked: its headers are UTF-8 and hold only escapes that
/// its version defines. Given other bytes, the reader repairs what is not UTF-8 and does not change undefined
/// escapes; it never traps.
public struct STOMPHeaderReader: Sendable, Hashable {
    public var escaping: STOMPEscaping
    /// Whether blanks around names and values belong to the syntax, as 1.0 peers write it (`session: x`). From 1.1 on
    /// they are part of the value (STOMP 1.1 "Overview").
    public var trimsBlanks: Bool
    /// Whether a line without a colon continues the value before it, as in the `message` of an ERROR.
    private let joinsLines: Bool

    /// The reader for frames of that command in that version.
    public init(version: STOMPVersion, command: STOMPCommand = .message) {
        escaping = STOMPEscaping(version, for: command)
        trimsBlanks = version == .v10
        joinsLines = command == .error
    }

    /// All header lines in `block`, which holds nothing else and begins with the first of them.
    public func headers(in block: RawSpan) -> STOMPHeaders {
        var fields: [STOMPHeaders.Field] = []
        var line = HeaderLine(at: 0, in: block)
        while let current = line {
            let name = string(block, current.nameStart, current.nameEnd)
            if joinsLines, !current.hasColon, let last = fields.indices.last {
                let needsBlank = !fields[last].value.isEmpty && !name.isEmpty
                fields[last].value += needsBlank ? " " + name : name
            } else {
                fields.append(.init(name, string(block, current.valueStart, current.valueEnd)))
            }
            line = HeaderLine(at: current.next, in: block)
        }
        return STOMPHeaders(fields)
    }

    /// The value of the first header of that name, or nil.
    public func value(of name: String, in block: RawSpan) -> String? {
        guard let range = rawValue(of: name, in: block) else { return nil }
        return string(block, range.lowerBound, range.upperBound)
    }

    /// The range of the value of the first header of that name in `block`, still escaped; nil if the header is missing.
    public func rawValue(of name: String, in block: RawSpan) -> Range<Int>? {
        name.withUTF8Span { wanted in
            isWritten(wanted) ? plainValue(of: wanted, in: block) : foundValue(of: wanted, in: block)
        }
    }

    /// Whether a header of that name begins its line with exactly these bytes and a colon: nothing is trimmed, and no
    /// escape stands for one of them.
    private func isWritten(_ name: RawSpan) -> Bool {
        let traits = TextTraits(name, from: 0, to: name.byteCount)
        return !trimsBlanks && !traits.hasBackslash && !traits.hasReturn
            && name.firstOffset(of: UInt8(ascii: ":"), or: UInt8(ascii: "\n"), from: 0, to: name.byteCount) == nil
    }

    /// Compares the beginnings of lines, and searches for nothing but their ends.
    private func plainValue(of wanted: RawSpan, in block: RawSpan) -> Range<Int>? {
        let (count, end) = (wanted.byteCount, block.byteCount)
        var start = 0
        while start < end {
            let feed = block.firstOffset(of: UInt8(ascii: "\n"), from: start, to: end) ?? end
            guard feed > start else { return nil }
            let colon = start + count
            if colon < feed, block.byte(at: colon) == UInt8(ascii: ":"), block.isEqual(at: start, to: wanted) {
                let hasReturn = feed < end && block.byte(at: feed - 1) == UInt8(ascii: "\r")
                return colon + 1..<(hasReturn ? feed - 1 : feed)
            }
            start = feed + 1
        }
        return nil
    }

    private func foundValue(of wanted: RawSpan, in block: RawSpan) -> Range<Int>? {
        var line = HeaderLine(at: 0, in: block)
        while let current = line {
            if isName(wanted, block, current) {
                return trimmed(block, current.valueStart, current.valueEnd)
            }
            line = HeaderLine(at: current.next, in: block)
        }
        return nil
    }

    /// The text of `range` in `block`, unescaped.
    public func string(in block: RawSpan, _ range: Range<Int>) -> String {
        let range = range.clamped(to: 0..<block.byteCount)
        return string(block, range.lowerBound, range.upperBound)
    }

    private func isName(_ wanted: RawSpan, _ block: RawSpan, _ line: HeaderLine) -> Bool {
        let range = trimmed(block, line.nameStart, line.nameEnd)
        guard escaping != .none,
            block.firstOffset(of: UInt8(ascii: "\\"), from: range.lowerBound, to: range.upperBound) != nil
        else { return range.count == wanted.byteCount && block.isEqual(at: range.lowerBound, to: wanted) }
        let name = escaping.unescaped(block, from: range.lowerBound, to: range.upperBound)
        // UInt8 has no padding, so all bytes are initialised.
        return unsafe name.count == wanted.byteCount && name.span.bytes.isEqual(at: 0, to: wanted)
    }

    private func string(_ block: RawSpan, _ start: Int, _ end: Int) -> String {
        let range = trimmed(block, start, end)
        let traits = TextTraits(block, from: range.lowerBound, to: range.upperBound)
        if escaping != .none, traits.hasBackslash {
            return String(
                decoding: escaping.unescaped(block, from: range.lowerBound, to: range.upperBound), as: UTF8.self)
        }
        if traits.isASCII { return String(checked: block, range, isASCII: true) }
        return block.text(in: range)
            ?? String(decoding: block.bytes(in: range), as: UTF8.self)
    }

    private func trimmed(_ block: RawSpan, _ start: Int, _ end: Int) -> Range<Int> {
        trimsBlanks ? block.trimmingBlanks(start..<end) : start..<end
    }
}

/// One header line: name up to the first colon, value up to the end of the line, CR stripped only before LF
/// (STOMP 1.2 "Augmented BNF").
struct HeaderLine {
    var nameStart: Int
    var nameEnd: Int
    var valueStart: Int
    var valueEnd: Int
    /// Where the next line begins.
    var next: Int
    /// A line without a colon is the name alone.
    var hasColon: Bool { nameEnd < valueStart }

    /// The line that begins at `start`; nil at the end of the block or at an empty line.
    init?(at start: Int, in block: RawSpan) {
        guard start < block.byteCount else { return nil }
        let feed = block.firstOffset(of: UInt8(ascii: "\n"), from: start, to: block.byteCount)
        var end = feed ?? block.byteCount
        if feed != nil, end > start, block.byte(at: end - 1) == UInt8(ascii: "\r") { end -= 1 }
        guard end > start else { return nil }
        let colon = block.firstOffset(of: UInt8(ascii: ":"), from: start, to: end)
        nameStart = start
        nameEnd = colon ?? end
        valueStart = colon.map { $0 + 1 } ?? end
        valueEnd = end
        next = (feed ?? block.byteCount) + 1
    }
}
