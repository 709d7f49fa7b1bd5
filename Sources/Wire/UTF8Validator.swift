/// Checks UTF-8 (RFC 3629) that arrives in pieces, however it is split.
@usableFromInline package struct UTF8Validator: Sendable, Hashable {
    /// How many bytes the character that has begun still lacks.
    @usableFromInline var missing: UInt8 = 0
    /// What the next byte has to lie in, when one is missing: narrower than 80…BF after E0, ED, F0 and F4, which excludes
    /// overlong forms, surrogates and numbers above U+10FFFF.
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
