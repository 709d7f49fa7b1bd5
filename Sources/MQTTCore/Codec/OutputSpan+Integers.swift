/// What packets consist of, written one after the other; the caller reserved the room.
extension OutputSpan where Element == UInt8 {
    @inline(__always)
    mutating func append(uint16 value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    mutating func append(uint32 value: UInt32) {
        append(uint16: UInt16(truncatingIfNeeded: value >> 16))
        append(uint16: UInt16(truncatingIfNeeded: value))
    }

    /// A Variable Byte Integer in its shortest form; `value` is not above `VariableByteInteger.maximum`.
    @inline(__always)
    mutating func append(variable value: Int) {
        var rest = value
        while rest > 0x7F {
            append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        append(UInt8(truncatingIfNeeded: rest))
    }

    /// A run of bytes as it is.
    @inline(__always)
    mutating func append(copying bytes: RawSpan) {
        let count = bytes.byteCount
        if count == 0 { return }
        unsafe withUnsafeMutableBufferPointer { buffer, initialized in
            precondition(count <= buffer.count - initialized)
            unsafe bytes.withUnsafeBytes { source in
                // Safe: the room was checked above, the source is `count` bytes long, and a buffer that is being
                // written exclusively does not overlap with one that is borrowed.
                guard let from = source.baseAddress, let to = buffer.baseAddress else { return }
                unsafe UnsafeMutableRawPointer(to + initialized).copyMemory(from: from, byteCount: count)
            }
            initialized += count
        }
    }

    /// A length and the bytes of a string, not longer than 65,535.
    mutating func append(string: String) {
        append(uint16: UInt16(truncatingIfNeeded: string.utf8.count))
        // The span cannot be written inside the closure that lends the string, so the lending is turned around.
        let count = string.utf8.count
        unsafe withUnsafeMutableBufferPointer { buffer, initialized in
            precondition(count <= buffer.count - initialized)
            string.withUTF8Span { bytes in
                unsafe bytes.withUnsafeBytes { source in
                    // Safe: as above.
                    guard let from = source.baseAddress, let to = buffer.baseAddress else { return }
                    unsafe UnsafeMutableRawPointer(to + initialized).copyMemory(from: from, byteCount: count)
                }
            }
            initialized += count
        }
    }

    /// A length and bytes, not more than 65,535.
    mutating func append(binary: [UInt8]) {
        append(uint16: UInt16(truncatingIfNeeded: binary.count))
        append(copying: unsafe binary.span.bytes)
    }
}
