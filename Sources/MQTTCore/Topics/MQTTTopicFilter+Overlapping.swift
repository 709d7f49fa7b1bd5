import Wire

extension MQTTTopicFilter {
    /// Whether a topic name exists that both filters match. Both are valid, and neither is shared.
    public static func overlap(_ one: String, _ other: String) -> Bool {
        one.withUTF8Span { one in
            other.withUTF8Span { overlap(one, $0) }
        }
    }

    private static func overlap(_ one: RawSpan, _ other: RawSpan) -> Bool {
        guard one.byteCount > 0, other.byteCount > 0 else { return false }
        // Wildcards in front do not reach topics that start with $ [MQTT-4.7.2-1].
        if one.byte(at: 0) == dollar, startsWithWildcard(other) { return false }
        if other.byte(at: 0) == dollar, startsWithWildcard(one) { return false }
        var (start, otherStart) = (0, 0)
        while true {
            // One beyond the end is the level behind a slash at the end, two beyond the end is none.
            let (isOver, otherIsOver) = (start > one.byteCount, otherStart > other.byteCount)
            if isOver && otherIsOver { return true }
            let end = isOver ? start : one.levelEnd(from: start)
            let otherEnd = otherIsOver ? otherStart : other.levelEnd(from: otherStart)
            // `#` matches all levels that are left, and none: but one empty level alone is not a topic name.
            if isLevel(hash, one, start, end) { return !otherIsOver || start > 1 }
            if isLevel(hash, other, otherStart, otherEnd) { return !isOver || otherStart > 1 }
            if isOver || otherIsOver { return false }
            if !isLevel(plus, one, start, end), !isLevel(plus, other, otherStart, otherEnd) {
                guard end - start == otherEnd - otherStart,
                    one.isEqual(start, end - start, to: other, at: otherStart)
                else { return false }
            }
            start = end + 1
            otherStart = otherEnd + 1
        }
    }

    private static func startsWithWildcard(_ filter: RawSpan) -> Bool {
        filter.byte(at: 0) == plus || filter.byte(at: 0) == hash
    }

    private static func isLevel(_ wildcard: UInt8, _ filter: RawSpan, _ start: Int, _ end: Int) -> Bool {
        end == start + 1 && filter.byte(at: start) == wildcard
    }
}
