/// Searches of the bytes in `start..<end`, eight at a time. A range that does not lie inside the span traps.
extension RawSpan {
    /// The offset of the first byte that equals `byte`, or nil.
    @inlinable
    package func firstOffset(of byte: UInt8, from start: Int, to end: Int) -> Int? {
        require(start, end)
        var offset = start
        let wanted = WordBits.copies(of: byte)
        while end &- offset >= 8 {
            // Safe: inside, as was checked above.
            let found = WordBits.matches(unsafe uncheckedWord(at: offset), wanted) & WordBits.highs
            if found != 0 { return offset &+ found.trailingZeroBitCount >> 3 }
            offset &+= 8
        }
        while offset < end {
            if self.byte(at: offset) == byte { return offset }
            offset &+= 1
        }
        return nil
    }

    /// The offset of the first byte that equals one of two, or nil.
    @inlinable
    package func firstOffset(of one: UInt8, or other: UInt8, from start: Int, to end: Int) -> Int? {
        require(start, end)
        var offset = start
        let first = WordBits.copies(of: one)
        let second = WordBits.copies(of: other)
        while end &- offset >= 8 {
            // Safe: inside, as was checked above.
            let word = unsafe uncheckedWord(at: offset)
            let found = (WordBits.matches(word, first) | WordBits.matches(word, second)) & WordBits.highs
            if found != 0 { return offset &+ found.trailingZeroBitCount >> 3 }
            offset &+= 8
        }
        while offset < end {
            let byte = byte(at: offset)
            if byte == one || byte == other { return offset }
            offset &+= 1
        }
        return nil
    }

    /// Whether the byte at an offset is a space or a tab; traps outside the span.
    @inlinable @inline(__always)
    package func isBlank(at offset: Int) -> Bool {
        let byte = byte(at: offset)
        return byte == 0x20 || byte == 0x09
    }

    /// Whether the bytes from an offset on are a TLS alert, with which a TLS server answers what is not TLS (RFC 8446 section
    /// 5.1, type 21).
    package func isTLSAlert(from start: Int = 0) -> Bool {
        byteCount - start >= 2 && byte(at: start) == 0x15 && byte(at: start + 1) == 3
    }

    /// The range without the spaces and tabs at both ends of it.
    package func trimmingBlanks(_ range: Range<Int>) -> Range<Int> {
        require(range.lowerBound, range.upperBound)
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(at: start) { start += 1 }
        while start < end, isBlank(at: end - 1) { end -= 1 }
        return start..<end
    }
}

/// Finding bytes eight at a time: 64 bits have a zero byte exactly where `(word - 0x01…) & ~word` has the highest bit
/// of its lowest such byte set, and XOR with eight copies of a byte turns "equal to" into "zero".
@usableFromInline package enum WordBits {
    /// The highest bit of each byte.
    @inlinable @inline(__always)
    package static var highs: UInt64 { 0x8080_8080_8080_8080 }

    /// Eight copies of a byte.
    @inlinable @inline(__always)
    package static func copies(of byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

    /// Has the highest bit of some byte set if and only if a byte is zero. The lowest such bit marks the first zero
    /// byte; all other bits mean nothing, so mask them with ``highs``.
    @inlinable @inline(__always)
    package static func zeros(_ word: UInt64) -> UInt64 { (word &- 0x0101_0101_0101_0101) & ~word }

    /// The same for bytes that equal the one that `copies` holds eight times.
    @inlinable @inline(__always)
    package static func matches(_ word: UInt64, _ copies: UInt64) -> UInt64 { zeros(word ^ copies) }
}

extension RawSpan {
    /// Whether the bytes in `start..<end` are well-formed UTF-8 (The Unicode Standard, table 3-7). A range that does
    /// not lie inside the span traps.
    @inlinable
    package func isUTF8(from start: Int, to end: Int) -> Bool {
        require(start, end)
        var validator = UTF8Validator()
        return validator.check(self, from: start, to: end) == nil && validator.isAtBoundary
    }

    /// The text in a range, or nil if it is not UTF-8.
    package func text(in range: Range<Int>) -> String? {
        let part = extracting(range)
        // Safe: the buffer is used inside the closure only.
        return unsafe part.withUnsafeBytes { unsafe String(validating: $0, as: UTF8.self) }
    }

    /// A copy of the bytes in a range.
    @inlinable
    package func bytes(in range: Range<Int>) -> [UInt8] { extracting(range).copied }

    /// A copy of all bytes.
    @inlinable
    package var copied: [UInt8] {
        // Safe: the buffer is used inside the closure only.
        unsafe withUnsafeBytes { unsafe [UInt8]($0) }
    }

    /// Appends a copy of all bytes to an array.
    @inlinable
    package func append(to array: inout [UInt8]) {
        // Safe: the buffer is used inside the closure only.
        unsafe withUnsafeBytes { unsafe array.append(contentsOf: $0) }
    }
}

/// Checks UTF-8 (RFC 3629) that arrives in pieces, however it is split.
@usableFromInline package struct UTF8Validator: Sendable, Hashable {
    /// How many bytes the character that has begun still lacks.
    @usableFromInline var missing: UInt8 = 0
    /// What the next byte has to lie in, when one is missing: narrower than 80…BF after E0, ED, F0 and F4, which
    /// excludes overlong forms, surrogates and numbers above U+10FFFF.
    @usableFromInline var lowest: UInt8 = 0x80
    @usableFromInline var highest: UInt8 = 0xBF

    @inlinable package init() {}

    /// Whether the bytes so far end where a character ends.
    @inlinable package var isAtBoundary: Bool { missing == 0 }

    /// Takes the next bytes and returns the offset of the first that cannot be part of any UTF-8 text, or nil.
    package mutating func check(_ bytes: RawSpan) -> Int? {
        check(bytes, from: 0, to: bytes.byteCount)
    }

    /// The same for the bytes in `start..<end`.
    @inlinable
    package mutating func check(_ bytes: RawSpan, from start: Int, to end: Int) -> Int? {
        var index = start
        while index < end {
            if missing == 0 {
                while end - index >= 8, bytes.word(at: index) & WordBits.highs == 0 { index += 8 }
                guard index < end else { return nil }
            }
            guard take(bytes.byte(at: index)) else { return index }
            index += 1
        }
        return nil
    }

    @inlinable @inline(__always)
    mutating func take(_ byte: UInt8) -> Bool {
        guard missing == 0 else {
            guard byte >= lowest && byte <= highest else { return false }
            missing -= 1
            lowest = 0x80
            highest = 0xBF
            return true
        }
        switch byte {
        case 0x00...0x7F: return true
        case 0xC2...0xDF: missing = 1
        case 0xE0: (missing, lowest) = (2, 0xA0)
        case 0xED: (missing, highest) = (2, 0x9F)
        case 0xE1...0xEF: missing = 2
        case 0xF0: (missing, lowest) = (3, 0x90)
        case 0xF1...0xF3: missing = 3
        case 0xF4: (missing, highest) = (3, 0x8F)
        default: return false
        }
        return true
    }
}
