/// Single bytes and integers at any address. What is checked traps outside the span, so callers compare with
/// `byteCount` first; the names of unchecked loads begin with `unchecked`.
extension RawSpan {
    /// The byte at an offset; traps outside the span.
    @inlinable @inline(__always)
    package func byte(at offset: Int) -> UInt8 {
        // Safe: the load is checked against the span's bounds, and every bit pattern is a UInt8.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// The integer of `Value`'s width at an offset, most significant byte first; traps outside the span.
    @inlinable @inline(__always)
    package func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        // Safe: the load is checked against the span's bounds, and every bit pattern is an integer.
        Value(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
    }

    /// The integer of `Value`'s width at an offset, least significant byte first; traps outside the span.
    @inlinable @inline(__always)
    package func littleEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        // Safe: the load is checked against the span's bounds, and every bit pattern is an integer.
        Value(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
    }

    /// Eight bytes, the first in the lowest bits; traps outside the span.
    @inlinable @inline(__always)
    package func word(at offset: Int) -> UInt64 {
        littleEndian(UInt64.self, at: offset)
    }

    /// A byte whose offset was compared with the bounds already.
    @inlinable @inline(__always) @unsafe
    package func uncheckedByte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// ``word(at:)`` for loops whose bounds were checked together: a check for each load costs more than the load.
    @inlinable @inline(__always) @unsafe
    package func uncheckedWord(at offset: Int) -> UInt64 {
        UInt64(littleEndian: unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self))
    }

    /// Traps unless `start..<end` lies inside the span: what a loop of unchecked loads relies on.
    @inlinable @inline(__always)
    package func require(_ start: Int, _ end: Int) {
        precondition(start >= 0 && end <= byteCount, "A range beyond the end of what was received.")
    }
}

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
        if left >= 8 {
            left &-= 8
            while left > 0 {
                if unsafe uncheckedWord(at: start &+ left) != other.uncheckedWord(at: otherStart &+ left) {
                    return false
                }
                left &-= 8
            }
            // Overlaps with the word behind it unless there are whole words.
            return unsafe uncheckedWord(at: start) == other.uncheckedWord(at: otherStart)
        }
        while left > 0 {
            left &-= 1
            if unsafe uncheckedByte(at: start &+ left) != other.uncheckedByte(at: otherStart &+ left) { return false }
        }
        return true
    }

    /// Whether two stretches of these bytes, both inside the span, are equal: 16 bytes at a time, and up to 64 without
    /// a branch, since for heads of messages that is less than finding out where they differ.
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
        // Safe: a StaticString of more than one scalar has a pointer to that many code units, for as long as the
        // process runs; no load goes beyond `count`, which both have. The last load overlaps the one before it.
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

extension RawSpan {
    /// A hash of the bytes: good enough to spread topics, and not meant to withstand an attacker, who could only cause
    /// misses.
    @inlinable
    package var hashed: UInt64 {
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

extension RawSpan {
    /// A hash for tables whose keys a peer chooses: without the seed, bytes that collide cannot be chosen.
    @inlinable
    package func hashed(seed: UInt64) -> UInt64 {
        let count = byteCount
        var hash = seed ^ UInt64(truncatingIfNeeded: count)
        // A second secret, so that without the seed no bytes can be chosen that make a factor zero, or that
        // exchange both factors.
        let mask = Self.fold(seed ^ 0xC4CE_B9FE_1A85_EC53, 0x9E37_79B9_7F4A_7C15)
        // Safe: offsets stay below `count`. The last words overlap those before them.
        if count >= 16 {
            var offset = 0
            let last = count &- 16
            while offset < last {
                hash = Self.fold(
                    hash ^ (unsafe uncheckedWord(at: offset)), mask ^ (unsafe uncheckedWord(at: offset &+ 8)))
                offset &+= 16
            }
            return Self.fold(hash ^ (unsafe uncheckedWord(at: last)), mask ^ (unsafe uncheckedWord(at: last &+ 8)))
        }
        if count >= 8 {
            return Self.fold(hash ^ (unsafe uncheckedWord(at: 0)), mask ^ (unsafe uncheckedWord(at: count &- 8)))
        }
        var word: UInt64 = 0
        for offset in 0..<count { word = word << 8 | UInt64(byte(at: offset)) }
        return Self.fold(hash ^ word, mask)
    }

    /// Both halves of a product, so that each bit of the result depends on each bit of the factors.
    @inlinable @inline(__always)
    static func fold(_ one: UInt64, _ other: UInt64) -> UInt64 {
        let product = one.multipliedFullWidth(by: other)
        return product.high ^ product.low
    }
}

/// Copies to memory that the caller has reserved, eight bytes at a time: for names and short bodies a call of `memcpy`
/// would cost more than the copy.
extension RawSpan {
    /// Copies all bytes to `target`, which has room for them.
    @inlinable @inline(__always) @unsafe
    package func copyWords(to target: UnsafeMutableRawPointer) {
        let count = byteCount
        if count >= 8 && count <= 64 {
            // Safe: offsets stay below `count`, in the span and in the target.
            let last = count &- 8
            var offset = 0
            while offset < last {
                _ = unsafe copyWord(at: offset, to: target)
                offset &+= 8
            }
            // Overlaps with the word before it unless there are whole words.
            _ = unsafe copyWord(at: last, to: target)
        } else if count > 0 {
            unsafe withUnsafeBytes { source in
                guard let from = source.baseAddress else { return }
                unsafe target.copyMemory(from: from, byteCount: count)
            }
        }
    }

    /// Copies the eight bytes at an offset to the same offset of `target` and returns them, the first in the lowest
    /// bits. The caller has checked that both have them.
    @inlinable @inline(__always) @unsafe
    package func copyWord(at offset: Int, to target: UnsafeMutableRawPointer) -> UInt64 {
        let word = unsafe uncheckedWord(at: offset)
        unsafe target.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
        return word
    }
}
