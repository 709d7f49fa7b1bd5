/// A masking key and the position in it (section 5.3); masking and unmasking are the same exclusive or.
package struct WebSocketMask: Sendable, Hashable {
    /// The key with its next byte lowest.
    private var key: UInt32

    /// - Parameter key: the four bytes of the frame header, the first of them lowest.
    package init(littleEndian key: UInt32) {
        self.key = key
    }

    /// Leaves bytes as they are.
    package static var none: WebSocketMask { WebSocketMask(littleEndian: 0) }

    /// Masks `bytes` in place and moves on by their number.
    package mutating func apply(to bytes: UnsafeMutableRawBufferPointer) {
        guard let base = bytes.baseAddress else { return }
        // Source and target are the same bytes of one buffer whose bounds the caller vouches for.
        unsafe copy(from: UnsafeRawPointer(base), to: base, count: bytes.count)
    }

    /// Writes `count` bytes from `source`, masked, to `target`, and moves on by their number.
    ///
    /// The two either are the same or do not overlap. Eight bytes at a time; the compiler makes vectors of them.
    @unsafe
    @inline(__always)
    mutating func copy(from source: UnsafeRawPointer, to target: UnsafeMutableRawPointer, count: Int) {
        let wide = (UInt64(key) << 32 | UInt64(key)).littleEndian
        let wideEnd = count & ~7
        var index = 0
        while index < wideEnd {
            let word = unsafe source.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            unsafe target.storeBytes(of: word ^ wide, toByteOffset: index, as: UInt64.self)
            index += 8
        }
        while index < count {
            let byte = unsafe source.load(fromByteOffset: index, as: UInt8.self)
            let part = UInt8(truncatingIfNeeded: key >> UInt32((index & 3) &* 8))
            unsafe target.storeBytes(of: byte ^ part, toByteOffset: index, as: UInt8.self)
            index += 1
        }
        let turn = UInt32((count & 3) &* 8)
        key = key >> turn | key << ((32 - turn) & 31)
    }

    /// Appends `bytes`, masked or unmasked, in one pass.
    @inline(__always)
    mutating func append(_ bytes: RawSpan, to target: inout [UInt8]) {
        guard bytes.byteCount > 0 else { return }
        target.append(addingCapacity: bytes.byteCount) { room in
            // Safe: the room has exactly the number of bytes in the span, and all of them are written.
            unsafe room.withUnsafeMutableBufferPointer { buffer, count in
                unsafe bytes.withUnsafeBytes { source in
                    let end = UnsafeMutableRawPointer(buffer.baseAddress!)
                    unsafe copy(from: source.baseAddress!, to: end, count: source.count)
                }
                count = bytes.byteCount
            }
        }
    }
}
