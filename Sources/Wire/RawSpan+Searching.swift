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

    /// The range without the spaces and tabs at both ends of it.
    package func trimmingBlanks(_ range: Range<Int>) -> Range<Int> {
        require(range.lowerBound, range.upperBound)
        var (start, end) = (range.lowerBound, range.upperBound)
        while start < end, isBlank(at: start) { start += 1 }
        while start < end, isBlank(at: end - 1) { end -= 1 }
        return start..<end
    }
}
