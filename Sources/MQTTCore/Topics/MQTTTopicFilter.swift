import MessagingWire

/// Topic filters: what is subscribed to. Everything is compared as UTF-8 bytes [MQTT-4.7.3-4].
public enum MQTTTopicFilter {
    static let slash = UInt8(ascii: "/")
    static let plus = UInt8(ascii: "+")
    static let hash = UInt8(ascii: "#")
    static let dollar = UInt8(ascii: "$")

    /// Checks 1 to 65,535 bytes of well-formed UTF-8 with every wildcard in its place.
    /// - Parameter version: `$share/` means something in 5.0 only, and has rules there [MQTT-4.8.2-1, MQTT-4.8.2-2].
    public static func validate(_ bytes: RawSpan, version: MQTTVersion = .v5_0) throws(MQTTProtocolError) {
        try validate(bytes, 0..<bytes.byteCount, version: version)
    }

    /// Whether a string is a topic filter.
    public static func isValid(_ filter: String, version: MQTTVersion = .v5_0) -> Bool {
        filter.withUTF8Span { bytes in
            (try? validate(bytes, version: version)) != nil
        }
    }

    /// The rule that a string breaks as a topic filter, for people; nil if it is one.
    package static func flaw(in filter: String, version: MQTTVersion = .v5_0) -> String? {
        filter.withUTF8Span { bytes in
            do throws(MQTTProtocolError) {
                try validate(bytes, version: version)
                return nil
            } catch {
                return "'\(OneLine.text(filter, limit: 100))' is not a topic filter. \(error.message)"
            }
        }
    }

    static func validate(_ bytes: RawSpan, _ range: Range<Int>, version: MQTTVersion) throws(MQTTProtocolError) {
        let scan = TextScan.scan(bytes, range)
        if scan.contains(.illFormed) { throw .malformed("The topic filter is not well-formed UTF-8.", "MQTT-1.5.4-1") }
        if scan.contains(.null) { throw .malformed("The topic filter contains U+0000.", "MQTT-1.5.4-2") }
        guard (1...65_535).contains(range.count) else {
            throw invalid("The topic filter has \(range.count) bytes; the format allows 1 to 65,535.", "MQTT-4.7.3-1")
        }
        if scan.contains(.wildcard) { try validateWildcards(bytes, range) }
        if version.hasProperties, startsWithShare(bytes, range) { try validateShare(bytes, range) }
    }

    private static func validateWildcards(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        for offset in range {
            let byte = bytes.byte(at: offset)
            guard byte == plus || byte == hash else { continue }
            let startsLevel = offset == range.lowerBound || bytes.byte(at: offset - 1) == slash
            let endsFilter = offset + 1 == range.upperBound
            if byte == hash, !startsLevel || !endsFilter {
                throw invalid("The wildcard # must be the whole last level of the filter.", "MQTT-4.7.1-1")
            }
            if !startsLevel || !(endsFilter || bytes.byte(at: offset + 1) == slash) {
                throw invalid("The wildcard + must be a whole level of the filter.", "MQTT-4.7.1-2")
            }
        }
    }

    private static func validateShare(_ bytes: RawSpan, _ range: Range<Int>) throws(MQTTProtocolError) {
        let name = (range.lowerBound + 7)..<range.upperBound
        guard let end = name.first(where: { bytes.byte(at: $0) == slash }), end > name.lowerBound else {
            throw invalid("$share/ must be followed by a share name and a filter.", "MQTT-4.8.2-1")
        }
        if TextScan.scan(bytes, name.lowerBound..<end).contains(.wildcard) {
            throw invalid("The share name contains a wildcard.", "MQTT-4.8.2-2")
        }
        if end + 1 == range.upperBound { throw invalid("The share name must be followed by a filter.", "MQTT-4.8.2-2") }
    }

    /// The end of the level that starts at `start`: the next slash, or the end.
    @inline(__always)
    static func levelEnd(in bytes: RawSpan, from start: Int) -> Int {
        var offset = start
        while offset < bytes.byteCount, bytes.byte(at: offset) != slash { offset += 1 }
        return offset
    }

    /// The start of the level before the one that starts at `start`, or would start there.
    static func levelStart(in bytes: RawSpan, before start: Int) -> Int {
        var offset = start - 1
        while offset > 0, bytes.byte(at: offset - 1) != slash { offset -= 1 }
        return offset
    }

    /// Whether the bytes start with `$share/`.
    static func startsWithShare(_ bytes: RawSpan, _ range: Range<Int>) -> Bool {
        guard range.count >= 7, bytes.byte(at: range.lowerBound) == dollar else { return false }
        let share: StaticString = "$share/"
        for index in 0..<7 {
            // Safe: the literal is seven bytes long.
            let expected = unsafe share.utf8Start[index]
            if bytes.byte(at: range.lowerBound + index) != expected { return false }
        }
        return true
    }

    private static func invalid(_ message: String, _ clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.topicFilterInvalid, message, clause: clause)
    }
}

extension MQTTTopicFilter {
    /// The share name and the inner filter of `$share/name/filter`, or nil for any other filter.
    public static func shared(_ filter: String) -> (name: String, filter: String)? {
        let bytes = filter.utf8
        guard bytes.starts(with: "$share/".utf8) else { return nil }
        let tail = bytes.dropFirst(7)
        guard let end = tail.firstIndex(of: slash), end > tail.startIndex else { return nil }
        let inner = tail[tail.index(after: end)...]
        return inner.isEmpty ? nil : (String(Substring(tail[..<end])), String(Substring(inner)))
    }

    /// Whether a topic name matches a filter; a shared filter matches as its inner filter does [MQTT-4.8.2-1].
    public static func matches(_ filter: String, topic: String) -> Bool {
        (shared(filter)?.filter ?? filter).withUTF8Span { filter in
            topic.withUTF8Span { matches(filter, topic: $0) }
        }
    }

    /// Whether the bytes of a topic name match those of a valid filter, which is taken as it is, shared or not.
    public static func matches(_ filter: RawSpan, topic: RawSpan) -> Bool {
        matches(filter, topic: topic) { _ in }
    }

    /// What `+` and `#` stand for, in their order, or nil if the topic does not match.
    ///
    /// `#` stands for all levels that are left, and for an empty string if it matches its parent level.
    public static func captures(of filter: String, in topic: String) -> [String]? {
        (shared(filter)?.filter ?? filter).withUTF8Span { filter in
            topic.withUTF8Span { topic in
                var captures: [String] = []
                let matched = matches(filter, topic: topic) { captures.append(String(checked: topic, $0)) }
                return matched ? captures : nil
            }
        }
    }

    /// Walks filter and topic together, level by level, and reports the range that each wildcard matches.
    @inline(__always)
    private static func matches(_ filter: RawSpan, topic: RawSpan, capture: (Range<Int>) -> Void) -> Bool {
        guard filter.byteCount > 0, topic.byteCount > 0 else { return false }
        var inFilter = 0
        var inTopic = 0
        // Wildcards in front do not reach topics that start with $ [MQTT-4.7.2-1].
        if topic.byte(at: 0) == dollar, filter.byte(at: 0) == plus || filter.byte(at: 0) == hash { return false }
        while true {
            let filterEnd = levelEnd(in: filter, from: inFilter)
            if filterEnd == inFilter + 1, filter.byte(at: inFilter) == hash {
                capture(min(inTopic, topic.byteCount)..<topic.byteCount)
                return true
            }
            // All levels of the topic are used up: only `#` was left to match.
            if inTopic > topic.byteCount { return false }
            let topicEnd = levelEnd(in: topic, from: inTopic)
            if filterEnd == inFilter + 1, filter.byte(at: inFilter) == plus {
                capture(inTopic..<topicEnd)
            } else {
                guard filterEnd - inFilter == topicEnd - inTopic else { return false }
                for index in 0..<(filterEnd - inFilter)
                where filter.byte(at: inFilter + index) != topic.byte(at: inTopic + index) {
                    return false
                }
            }
            inFilter = filterEnd + 1
            inTopic = topicEnd + 1
            // An index one beyond the slash at the end is an empty last level, two beyond the end is no level.
            if inFilter > filter.byteCount { return inTopic > topic.byteCount }
        }
    }
}

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
            // One beyond the end is the level behind a slash at the end, two beyond the end is no level.
            let (isOver, otherIsOver) = (start > one.byteCount, otherStart > other.byteCount)
            if isOver && otherIsOver { return true }
            let end = isOver ? start : levelEnd(in: one, from: start)
            let otherEnd = otherIsOver ? otherStart : levelEnd(in: other, from: otherStart)
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
