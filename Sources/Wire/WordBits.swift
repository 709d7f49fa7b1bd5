/// Finding bytes eight at a time: a word has a zero byte exactly where `(word - 0x01…) & ~word` has the highest bit of its
/// lowest such byte set, and XOR with eight copies of a byte turns "equal to" into "zero".
@usableFromInline package enum WordBits {
    /// The highest bit of each byte.
    @inlinable @inline(__always)
    package static var highs: UInt64 { 0x8080_8080_8080_8080 }

    /// Eight copies of a byte.
    @inlinable @inline(__always)
    package static func copies(of byte: UInt8) -> UInt64 { UInt64(byte) &* 0x0101_0101_0101_0101 }

    /// Has the highest bit of some byte set if and only if a byte is zero. The lowest such bit marks the first zero byte;
    /// all other bits mean nothing, so mask them with ``highs``.
    @inlinable @inline(__always)
    package static func zeros(_ word: UInt64) -> UInt64 { (word &- 0x0101_0101_0101_0101) & ~word }

    /// The same for bytes that equal the one that `copies` holds eight times.
    @inlinable @inline(__always)
    package static func matches(_ word: UInt64, _ copies: UInt64) -> UInt64 { zeros(word ^ copies) }
}
