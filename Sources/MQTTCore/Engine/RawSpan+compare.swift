extension RawSpan {
    /// Whether the bytes from `start` on equal `other`. Eight at a time, from the end.
    @inline(__always)
    func isEqual(at start: Int, to other: RawSpan) -> Bool {
        var remaining = other.byteCount
        guard start >= 0, byteCount - start >= remaining else { return false }
        // Safe: `remaining` bytes are there in both, as was just checked.
        while remaining >= 8 {
            remaining &-= 8
            if unsafe uncheckedWord(at: start &+ remaining) != other.uncheckedWord(at: remaining) { return false }
        }
        while remaining > 0 {
            remaining -= 1
            if byte(at: start + remaining) != other.byte(at: remaining) { return false }
        }
        return true
    }

    /// Whether two stretches of the bytes, which lie in them, are equal: 16 bytes at a time, and up to 64 without a
    /// branch, since for heads of messages that is less than finding out where they differ.
    @inline(__always) @unsafe
    func isEqualUnchecked(_ first: Int, _ second: Int, count: Int) -> Bool {
        // Safe: the offsets stay in `0..<count` of both stretches.
        if count < 16 { return unsafe isShortEqual(first, second, count: count) }
        let last = count &- 16
        var difference = unsafe difference(first, second) | difference(first &+ last, second &+ last)
        if count > 32 {
            // What is compared may overlap.
            let middle = count &- 32
            unsafe difference |=
                self.difference(first &+ 16, second &+ 16) | self.difference(first &+ middle, second &+ middle)
            var offset = 32
            while offset < middle {
                unsafe difference |= self.difference(first &+ offset, second &+ offset)
                offset &+= 16
            }
        }
        return difference.x | difference.y == 0
    }

    @inline(__always) @unsafe
    private func isShortEqual(_ first: Int, _ second: Int, count: Int) -> Bool {
        // Safe: as above.
        var left = count
        if left >= 8 {
            left &-= 8
            if unsafe uncheckedWord(at: first &+ left) != uncheckedWord(at: second &+ left) { return false }
        }
        while left > 0 {
            left &-= 1
            if unsafe uncheckedByte(at: first &+ left) != uncheckedByte(at: second &+ left) { return false }
        }
        return true
    }

    /// Not 0 if and only if 16 bytes differ from 16 others.
    @inline(__always) @unsafe
    private func difference(_ first: Int, _ second: Int) -> SIMD2<UInt64> {
        // Safe: the caller knows that they are there.
        unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: first, as: SIMD2<UInt64>.self)
            ^ unsafeLoadUnaligned(fromUncheckedByteOffset: second, as: SIMD2<UInt64>.self)
    }

    /// A hash of the bytes: good enough to spread topics, not meant to withstand an enemy, who could only cause misses.
    var hashed: UInt64 {
        var hash = UInt64(truncatingIfNeeded: byteCount) &* 0x9E37_79B9_7F4A_7C15
        var offset = 0
        while offset + 8 <= byteCount {
            hash = (hash ^ word(at: offset)) &* 0xFF51_AFD7_ED55_8CCD
            hash ^= hash >> 32
            offset += 8
        }
        var tail: UInt64 = 0
        while offset < byteCount {
            tail = tail << 8 | UInt64(byte(at: offset))
            offset += 1
        }
        hash = (hash ^ tail) &* 0xC4CE_B9FE_1A85_EC53
        return hash ^ hash >> 29
    }
}
