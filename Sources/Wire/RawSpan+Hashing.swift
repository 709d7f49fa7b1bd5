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
