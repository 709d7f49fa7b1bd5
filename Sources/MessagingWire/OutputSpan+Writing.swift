/// Writing into memory that the caller has reserved; more than fits traps.
extension OutputSpan where Element == UInt8 {
    /// An integer, most significant byte first.
    @inlinable @inline(__always)
    package mutating func append(uint16 value: UInt16) {
        append(UInt8(truncatingIfNeeded: value >> 8))
        append(UInt8(truncatingIfNeeded: value))
    }

    /// An integer, most significant byte first.
    @inlinable
    package mutating func append(uint32 value: UInt32) {
        unsafe withUnsafeMutableBufferPointer { buffer, initialized in
            precondition(buffer.count - initialized >= 4)
            // Safe: the room was checked.
            let rest = UnsafeMutableRawBufferPointer(buffer.extracting(initialized...))
            unsafe rest.storeBytes(of: value.bigEndian, as: UInt32.self)
            initialized += 4
        }
    }

    /// A copy of bytes.
    @inlinable @inline(__always)
    package mutating func append(copying bytes: RawSpan) {
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

    /// The UTF-8 bytes of a string.
    @inlinable
    package mutating func append(utf8 string: String) {
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
}
