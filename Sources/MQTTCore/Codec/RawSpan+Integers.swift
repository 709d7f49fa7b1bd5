/// Integers as MQTT writes them: big-endian, at any address [MQTT 1.5.2].
extension RawSpan {
    /// The byte at an offset; traps outside the span, so callers compare with `byteCount` first.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // Safe: the load is checked against the span's bounds, and every bit pattern is a UInt8.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// The Two Byte Integer at an offset; traps outside the span.
    @inline(__always)
    func uint16(at offset: Int) -> UInt16 {
        // Safe: the load is checked against the span's bounds, and every bit pattern is a UInt16.
        UInt16(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }

    /// The Four Byte Integer at an offset; traps outside the span.
    @inline(__always)
    func uint32(at offset: Int) -> UInt32 {
        // Safe: the load is checked against the span's bounds, and every bit pattern is a UInt32.
        UInt32(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// A byte whose place was compared with the bounds already.
    @inline(__always) @unsafe
    func uncheckedByte(at offset: Int) -> UInt8 {
        unsafe unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
    }

    /// The same for runs of words whose bounds were checked together: a check for each costs more than the load.
    @inline(__always) @unsafe
    func uncheckedWord(at offset: Int) -> UInt64 {
        unsafe unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: UInt64.self)
    }

    /// Eight bytes at an offset in the machine's order, to look at them all at once; traps outside the span.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        // Safe: the load is checked against the span's bounds, and every bit pattern is a UInt64.
        unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }
}
