/// Single bytes and integers at any address. What is checked traps outside the span, so callers compare with `byteCount`
/// first; what is not checked says so in its name.
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
