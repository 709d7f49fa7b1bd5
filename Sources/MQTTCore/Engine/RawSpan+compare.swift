extension RawSpan {
    /// Whether the bytes from `start` on equal `other`. Eight at a time, from the end.
    @inline(__always)
    func isEqual(at start: Int, to other: RawSpan) -> Bool {
        var remaining = other.byteCount
        guard start >= 0, byteCount - start >= remaining else { return false }
        // Safe: `remaining` bytes are there in both, as was just checked.
        while remaining >= 8 {
            remaining &-= 8
            if unsafe uncheckedWord(at: start &+ remaining) != other.uncheckedWord(at: remaining) { return false }
        }
        while remaining > 0 {
            remaining -= 1
            if byte(at: start + remaining) != other.byte(at: remaining) { return false }
        }
        return true
    }

    /// Whether two stretches of the bytes are equal; not if they do not lie in them. Eight bytes at a time, from the end.
    @inline(__always)
    func isEqual(_ first: Int, _ second: Int, count: Int) -> Bool {
        var remaining = count
        guard first >= 0, second >= 0, count >= 0, byteCount - first >= count, byteCount - second >= count else {
            return false
        }
        // Safe: `remaining` bytes are there in both, as was just checked.
        while remaining >= 8 {
            remaining &-= 8
            if unsafe uncheckedWord(at: first &+ remaining) != uncheckedWord(at: second &+ remaining) { return false }
        }
        while remaining > 0 {
            remaining -= 1
            if byte(at: first + remaining) != byte(at: second + remaining) { return false }
        }
        return true
    }

    /// A hash of the bytes: good enough to spread topics, not meant to withstand an enemy, who could only cause misses.
    var hashed: UInt64 {
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
