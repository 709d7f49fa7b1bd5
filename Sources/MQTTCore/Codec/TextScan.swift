import MessagingWire

/// What one pass over the bytes of a string finds.
///
/// Eight bytes are examined together; only text with bytes above 0x7F is decoded, to check that it is well-formed.
struct TextScan: OptionSet {
    let rawValue: UInt8

    /// U+0000 [MQTT-1.5.4-2].
    static let null = TextScan(rawValue: 1)
    /// `+` or `#`.
    static let wildcard = TextScan(rawValue: 2)
    /// Not UTF-8 as Unicode defines it: overlong forms, surrogates, cut sequences [MQTT-1.5.4-1].
    static let illFormed = TextScan(rawValue: 4)

    /// Looks at `range`; traps if it does not lie inside `bytes`, so callers compare with `byteCount` first.
    static func scan(_ bytes: RawSpan, _ range: Range<Int>) -> TextScan {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.byteCount)
        var found: TextScan = []
        var offset = range.lowerBound
        var high: UInt64 = 0
        if range.count >= 8 {
            // Gathered without branches: a branch for each word would cost more than the rest.
            var nulls: UInt64 = 0
            var wildcards: UInt64 = 0
            let last = range.upperBound &- 8
            // Safe: the whole range lies inside, as was checked.
            while offset < last {
                gather(unsafe bytes.uncheckedWord(at: offset), &high, &nulls, &wildcards)
                offset &+= 8
            }
            gather(unsafe bytes.uncheckedWord(at: last), &high, &nulls, &wildcards)
            if nulls & WordBits.highs != 0 { found.insert(.null) }
            if wildcards & WordBits.highs != 0 { found.insert(.wildcard) }
        } else {
            while offset < range.upperBound {
                let byte = bytes.byte(at: offset)
                high |= UInt64(byte)
                if byte == 0 { found.insert(.null) }
                if byte | 0x08 == 0x2B { found.insert(.wildcard) }
                offset += 1
            }
        }
        if high & WordBits.highs != 0, !bytes.isUTF8(from: range.lowerBound, to: range.upperBound) {
            found.insert(.illFormed)
        }
        return found
    }

    /// Whether `range` is ASCII that a name may contain: no U+0000, no `+`, no `#`. Nearly all names are, and testing
    /// only for this costs a third of a scan. Traps as ``scan(_:_:)`` does.
    static func isPlainName(_ bytes: RawSpan, _ range: Range<Int>) -> Bool {
        precondition(range.lowerBound >= 0 && range.upperBound <= bytes.byteCount)
        let end = range.upperBound
        var offset = range.lowerBound
        var found: UInt64 = 0
        // Safe: the whole range lies inside, as was checked.
        if range.count >= 16 {
            let last = end &- 16
            while offset < last {
                unsafe found |=
                    notPlain(bytes.uncheckedWord(at: offset)) | notPlain(bytes.uncheckedWord(at: offset &+ 8))
                offset &+= 16
            }
            // Overlaps with the bytes before, unless they are whole words.
            unsafe found |= notPlain(bytes.uncheckedWord(at: last)) | notPlain(bytes.uncheckedWord(at: last &+ 8))
        } else if range.count >= 8 {
            unsafe found = notPlain(bytes.uncheckedWord(at: offset)) | notPlain(bytes.uncheckedWord(at: end &- 8))
        } else {
            while offset < end {
                // With seven harmless bytes above it.
                unsafe found |= notPlain(0x6161_6161_6161_6100 | UInt64(bytes.uncheckedByte(at: offset)))
                offset &+= 1
            }
        }
        return found & WordBits.highs == 0
    }

    /// Has the highest bit of some byte set if and only if a byte is above 0x7F, zero, `+` or `#`.
    @inline(__always)
    private static func notPlain(_ word: UInt64) -> UInt64 {
        // If no byte is above 0x7F, only a zero byte borrows.
        let ones: UInt64 = 0x0101_0101_0101_0101
        let wildcards = (word | 0x0808_0808_0808_0808) ^ 0x2B2B_2B2B_2B2B_2B2B
        return word | (word &- ones) | (wildcards &- ones)
    }

    @inline(__always)
    private static func gather(
        _ word: UInt64, _ high: inout UInt64, _ nulls: inout UInt64, _ wildcards: inout UInt64
    ) {
        high |= word
        nulls |= WordBits.zeros(word)
        wildcards |= Self.wildcards(word)
    }

    /// Copies a topic name to `target`, which has room for it. Returns false if the name contains U+0000 or a wildcard.
    @inline(__always) @unsafe
    static func copyName(_ name: RawSpan, to target: UnsafeMutableRawPointer) -> Bool {
        let count = name.byteCount
        guard count >= 8 else {
            var isName = true
            for offset in 0..<count {
                let byte = name.byte(at: offset)
                unsafe target.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
                if byte == 0 || byte | 0x08 == 0x2B { isName = false }
            }
            return isName
        }
        // Safe: offsets stay below `count`, in the span and in the target.
        let last = count &- 8
        var offset = 0
        while offset < last {
            let word = unsafe name.copyWord(at: offset, to: target)
            if forbiddenInNames(word) != 0 { return false }
            offset &+= 8
        }
        // Overlaps with the word before it unless the name consists of whole words.
        return forbiddenInNames(unsafe name.copyWord(at: last, to: target)) == 0
    }

    /// Not 0 if and only if the word holds U+0000, `+` or `#`.
    @inline(__always)
    private static func forbiddenInNames(_ word: UInt64) -> UInt64 {
        (WordBits.zeros(word) | wildcards(word)) & WordBits.highs
    }

    /// Has the highest bit of some byte set if and only if a byte is `+` or `#`; the other bits mean nothing.
    @inline(__always)
    private static func wildcards(_ word: UInt64) -> UInt64 {
        // `#` is 0x23 and `+` is 0x2B: they differ in one bit.
        WordBits.zeros((word | 0x0808_0808_0808_0808) ^ 0x2B2B_2B2B_2B2B_2B2B)
    }
}
