import Wire

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

    /// Walks filter and topic together, level by level, and tells where each wildcard's match stands.
    @inline(__always)
    private static func matches(_ filter: RawSpan, topic: RawSpan, capture: (Range<Int>) -> Void) -> Bool {
        guard filter.byteCount > 0, topic.byteCount > 0 else { return false }
        var inFilter = 0
        var inTopic = 0
        // Wildcards in front do not reach topics that start with $ [MQTT-4.7.2-1].
        if topic.byte(at: 0) == dollar, filter.byte(at: 0) == plus || filter.byte(at: 0) == hash { return false }
        while true {
            let filterEnd = filter.levelEnd(from: inFilter)
            if filterEnd == inFilter + 1, filter.byte(at: inFilter) == hash {
                capture(min(inTopic, topic.byteCount)..<topic.byteCount)
                return true
            }
            // All levels of the topic are used up: only `#` was left to match.
            if inTopic > topic.byteCount { return false }
            let topicEnd = topic.levelEnd(from: inTopic)
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
            // An index one beyond the slash at the end is an empty last level, two beyond the end is none.
            if inFilter > filter.byteCount { return inTopic > topic.byteCount }
        }
    }
}

extension RawSpan {
    /// The end of the level that starts at `start`: the next slash, or the end.
    @inline(__always)
    func levelEnd(from start: Int) -> Int {
        var offset = start
        while offset < byteCount, byte(at: offset) != MQTTTopicFilter.slash { offset += 1 }
        return offset
    }
}
