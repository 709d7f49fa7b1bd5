// Looking for octets eight at a time: a word has a zero octet exactly where (word - 0x01…) & ~word & 0x80… has its
// lowest set bit, and XOR with a pattern turns "equal to" into "zero".

private let ones: UInt64 = 0x0101_0101_0101_0101
private let highs: UInt64 = 0x8080_8080_8080_8080

/// The pattern that `word ^ pattern` needs to have zeros where `word` has that octet.
@inline(__always)
private func pattern(_ octet: UInt8) -> UInt64 { UInt64(octet) &* ones }

/// High bits whose lowest one marks the first zero octet; bits above it may be wrong.
@inline(__always)
private func zeros(_ word: UInt64) -> UInt64 { (word &- ones) & ~word & highs }

extension RawSpan {
    /// The octet at that offset; an offset outside traps, as a subscript does.
    @inline(__always)
    func octet(_ offset: Int) -> UInt8 {
        // Every bit pattern is a UInt8, and the offset is checked by the call.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// Eight octets, the first in the lowest bits; an offset outside traps.
    @inline(__always)
    func word(_ offset: Int) -> UInt64 {
        // Every bit pattern is a UInt64, and the offsets are checked by the call.
        UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The same for runs of words whose bounds were checked together: a check for each costs more than the load.
    @inline(__always) @unsafe
    fileprivate func uncheckedWord(_ offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }

    /// Traps unless `start..<end` lies inside: what the loops below need for their unchecked loads.
    @inline(__always)
    private func require(_ start: Int, _ end: Int) {
        precondition(start >= 0 && end <= byteCount, "A search beyond the end of what was received.")
    }

    /// The offset of the first `octet` in `start..<end`, or nil; a range outside traps.
    func firstOffset(of octet: UInt8, from start: Int, to end: Int) -> Int? {
        require(start, end)
        var offset = start
        let wanted = pattern(octet)
        while end &- offset >= 8 {
            // Inside, as was checked above.
            let found = zeros(unsafe uncheckedWord(offset) ^ wanted)
            if found != 0 { return offset &+ found.trailingZeroBitCount >> 3 }
            offset &+= 8
        }
        while offset < end {
            if self.octet(offset) == octet { return offset }
            offset &+= 1
        }
        return nil
    }

    /// The offset of the first octet in `start..<end` that is one of two, or nil.
    func firstOffset(of one: UInt8, or other: UInt8, from start: Int, to end: Int) -> Int? {
        require(start, end)
        var offset = start
        let first = pattern(one)
        let second = pattern(other)
        while end &- offset >= 8 {
            // Inside, as was checked above.
            let word = unsafe uncheckedWord(offset)
            let found = zeros(word ^ first) | zeros(word ^ second)
            if found != 0 { return offset &+ found.trailingZeroBitCount >> 3 }
            offset &+= 8
        }
        while offset < end {
            let octet = octet(offset)
            if octet == one || octet == other { return offset }
            offset &+= 1
        }
        return nil
    }

    /// What `start..<end` holds besides plain ASCII without backslashes and carriage returns.
    func textTraits(from start: Int, to end: Int) -> TextTraits {
        require(start, end)
        var offset = start
        var high: UInt64 = 0
        var found: UInt64 = 0
        // Backslash and CR differ in the bits 0x51: with these set both are 0x5D, as L, M and ] are, which is sorted
        // out below. One comparison for both keeps this loop as short as it was for one.
        let differing = pattern(0x51)
        let either = pattern(0x5D)
        while end &- offset >= 8 {
            // Inside, as was checked above.
            let word = unsafe uncheckedWord(offset)
            high |= word
            let difference = (word | differing) ^ either
            found |= (difference &- ones) & ~difference
            offset &+= 8
        }
        var isFound = found & highs != 0
        while offset < end {
            let octet = octet(offset)
            high |= UInt64(octet)
            isFound = isFound || octet | 0x51 == 0x5D
            offset &+= 1
        }
        guard isFound else { return TextTraits(isASCII: high & highs == 0) }
        return TextTraits(
            isASCII: high & highs == 0,
            hasBackslash: firstOffset(of: UInt8(ascii: "\\"), from: start, to: end) != nil,
            hasReturn: firstOffset(of: UInt8(ascii: "\r"), from: start, to: end) != nil)
    }

    /// Whether the octets from `start` on are exactly `text`; false where the span ends before.
    func holds(_ text: StaticString, at start: Int) -> Bool {
        let count = text.utf8CodeUnitCount
        guard start >= 0, byteCount - start >= count else { return false }
        let known = unsafe UnsafeRawPointer(text.utf8Start)
        // A StaticString with more than one scalar has a pointer to that many code units, for as long as we run; no
        // load goes beyond `count`, which both have. The last load overlaps the one before it.
        if count >= 8 {
            var index = 0
            while index < count &- 8 {
                if unsafe known.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                    != uncheckedWord(start &+ index)
                {
                    return false
                }
                index &+= 8
            }
            index = count &- 8
            return unsafe known.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                == uncheckedWord(start &+ index)
        }
        for index in 0..<count {
            if unsafe known.load(fromByteOffset: index, as: UInt8.self) != octet(start &+ index) { return false }
        }
        return true
    }

    /// Whether two ranges of equal length, here and in `other`, hold the same octets. Compared from the end, where
    /// names that share a beginning differ.
    func hasSameOctets(_ start: Int, _ count: Int, as other: RawSpan, at otherStart: Int) -> Bool {
        require(start, start &+ count)
        other.require(otherStart, otherStart &+ count)
        var rest = count
        while rest >= 8 {
            rest &-= 8
            // Inside of both, as was checked above.
            if unsafe uncheckedWord(start &+ rest) != other.uncheckedWord(otherStart &+ rest) { return false }
        }
        while rest > 0 {
            rest &-= 1
            if octet(start &+ rest) != other.octet(otherStart &+ rest) { return false }
        }
        return true
    }

    /// The text in `start..<end`, or nil when it is not UTF-8.
    func text(_ start: Int, _ end: Int) -> String? {
        let part = extracting(start..<end)
        // The buffer is used only inside the closure.
        return unsafe part.withUnsafeBytes { unsafe String(validating: $0, as: UTF8.self) }
    }

    /// The octets in `start..<end`.
    func octets(_ start: Int, _ end: Int) -> [UInt8] {
        let part = extracting(start..<end)
        // The buffer is used only inside the closure.
        return unsafe part.withUnsafeBytes { unsafe [UInt8]($0) }
    }
}

/// What a stretch of header text needs before it can be handed out.
struct TextTraits {
    var isASCII: Bool
    var hasBackslash = false
    var hasReturn = false
}
