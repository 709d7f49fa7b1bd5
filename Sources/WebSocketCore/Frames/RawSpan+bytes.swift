extension RawSpan {
    /// The byte at `offset`; checked against the bounds of the span.
    @inline(__always)
    func byte(at offset: Int) -> UInt8 {
        // Every bit pattern is a UInt8, and the load checks its bounds.
        unsafe unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }

    /// The unsigned number of `Value`'s width at `offset`, most significant byte first.
    @inline(__always)
    func bigEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        // Every bit pattern is an integer, and the load checks its bounds.
        Value(bigEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
    }

    /// The unsigned number of `Value`'s width at `offset`, least significant byte first.
    @inline(__always)
    func littleEndian<Value: FixedWidthInteger & BitwiseCopyable>(_ type: Value.Type, at offset: Int) -> Value {
        // Every bit pattern is an integer, and the load checks its bounds.
        Value(littleEndian: unsafe unsafeLoadUnaligned(fromByteOffset: offset, as: Value.self))
    }
}
