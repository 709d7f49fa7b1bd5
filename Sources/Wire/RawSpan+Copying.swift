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

    /// Copies the eight bytes at an offset to the same offset of `target` and returns them, the first in the lowest bits.
    /// The caller has checked that both have them.
    @inlinable @inline(__always) @unsafe
    package func copyWord(at offset: Int, to target: UnsafeMutableRawPointer) -> UInt64 {
        let word = unsafe uncheckedWord(at: offset)
        unsafe target.storeBytes(of: word.littleEndian, toByteOffset: offset, as: UInt64.self)
        return word
    }
}
