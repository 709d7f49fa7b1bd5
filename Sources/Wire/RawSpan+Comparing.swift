/// Comparisons, eight bytes at a time and from the end, where names that share a beginning differ.
extension RawSpan {
    /// Whether `other` follows at `start`; false where the span ends before.
    @inlinable @inline(__always)
    package func isEqual(at start: Int, to other: RawSpan) -> Bool {
        guard start >= 0, byteCount - start >= other.byteCount else { return false }
        // Safe: as many bytes are there in both, as was just checked.
        return unsafe isEqualUnchecked(start, other, 0, count: other.byteCount)
    }

    /// Whether `count` bytes here and in `other` are equal; offsets outside trap.
    @inlinable
    package func isEqual(_ start: Int, _ count: Int, to other: RawSpan, at otherStart: Int) -> Bool {
        require(start, start &+ count)
        other.require(otherStart, otherStart &+ count)
        // Safe: inside of both, as was just checked.
        return unsafe isEqualUnchecked(start, other, otherStart, count: count)
    }

    @inlinable @inline(__always) @unsafe
    package func isEqualUnchecked(_ start: Int, _ other: RawSpan, _ otherStart: Int, count: Int) -> Bool {
        // Safe: the caller knows that `count` bytes are there in both.
        var left = count
        while left >= 8 {
            left &-= 8
            if unsafe uncheckedWord(at: start &+ left) != other.uncheckedWord(at: otherStart &+ left) { return false }
        }
        while left > 0 {
            left &-= 1
            if unsafe uncheckedByte(at: start &+ left) != other.uncheckedByte(at: otherStart &+ left) { return false }
        }
        return true
    }

    /// Whether two stretches of these bytes, both inside the span, are equal: 16 bytes at a time, and up to 64 without a
    /// branch, since for heads of messages that is less than finding out where they differ.
    @inlinable @inline(__always) @unsafe
    package func isEqualUnchecked(_ first: Int, _ second: Int, count: Int) -> Bool {
        // Safe: the offsets stay in `0..<count` of both stretches.
        if count < 16 { return unsafe isEqualUnchecked(first, self, second, count: count) }
        let last = count &- 16
        var difference = unsafe difference(first, second) | difference(first &+ last, second &+ last)
        if count > 32 {
            // The stretches compared here may overlap with those above.
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

    /// Not 0 if and only if 16 bytes differ from 16 others.
    @inlinable @inline(__always) @unsafe
    func difference(_ first: Int, _ second: Int) -> SIMD2<UInt64> {
        // Safe: the caller knows that they are there.
        unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: first, as: SIMD2<UInt64>.self)
            ^ unsafeLoadUnaligned(fromUncheckedByteOffset: second, as: SIMD2<UInt64>.self)
    }

    /// Whether `text` follows at `start`; false where the span ends before.
    @inlinable
    package func holds(_ text: StaticString, at start: Int) -> Bool {
        let count = text.utf8CodeUnitCount
        guard start >= 0, byteCount - start >= count else { return false }
        let known = unsafe UnsafeRawPointer(text.utf8Start)
        // Safe: a StaticString of more than one scalar has a pointer to that many code units, for as long as the process
        // runs; no load goes beyond `count`, which both have. The last load overlaps the one before it.
        if count >= 8 {
            var index = 0
            while index < count &- 8 {
                if unsafe known.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                    != uncheckedWord(at: start &+ index)
                {
                    return false
                }
                index &+= 8
            }
            index = count &- 8
            return unsafe known.loadUnaligned(fromByteOffset: index, as: UInt64.self).littleEndian
                == uncheckedWord(at: start &+ index)
        }
        for index in 0..<count {
            if unsafe known.load(fromByteOffset: index, as: UInt8.self) != byte(at: start &+ index) { return false }
        }
        return true
    }
}
