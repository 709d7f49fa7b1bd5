/// Checks UTF-8 (RFC 3629) that arrives in pieces, whatever the split.
package struct UTF8Validator: Sendable, Hashable {
    /// How many bytes the character that has begun still lacks.
    private var missing: UInt8 = 0
    /// What the next byte has to lie in, when one is missing: narrower than 80…BF after E0, ED, F0 and F4, which is
    /// where overlong forms, surrogates and numbers above U+10FFFF would be.
    private var lowest: UInt8 = 0x80
    private var highest: UInt8 = 0xBF

    package init() {}

    /// Whether the bytes so far end where a character ends.
    package var isAtBoundary: Bool { missing == 0 }

    /// Takes the next bytes and returns the offset of the first that cannot be part of any UTF-8 text, or nil.
    package mutating func check(_ bytes: RawSpan) -> Int? {
        var index = 0
        let end = bytes.byteCount
        while index < end {
            if missing == 0 {
                while end - index >= 8, bytes.littleEndian(UInt64.self, at: index) & 0x8080_8080_8080_8080 == 0 {
                    index += 8
                }
                guard index < end else { return nil }
            }
            guard take(bytes.byte(at: index)) else { return index }
            index += 1
        }
        return nil
    }

    @inline(__always)
    private mutating func take(_ byte: UInt8) -> Bool {
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
