extension MQTTFilterTree {
    /// Calls `body` with the value of every filter that matches the bytes of a topic name, in no order to rely on.
    ///
    /// It walks down for an exact level, then for `+`, and back up by the parents; no recursion and no list of open
    /// branches, so a filter of 30,000 levels costs neither stack nor memory.
    public func forEachMatch(_ topic: RawSpan, _ body: (Value) -> Void) {
        if count == 0 || topic.byteCount == 0 { return }
        // Wildcards in front do not reach topics that start with $ [MQTT-4.7.2-1].
        let isReserved = topic.byte(at: 0) == MQTTTopicFilter.dollar
        if !isReserved, let value = nodes[0].below { body(value) }
        var node = 0
        var levelStart = 0
        var triesPlusOnly = false
        while true {
            // Down: from `node` by the level that starts at `levelStart`.
            var child = -1
            if levelStart <= topic.byteCount {
                let level = levelStart..<topic.levelEnd(from: levelStart)
                if !triesPlusOnly { child = exactChild(of: node, topic, level) ?? -1 }
                if child < 0, !(isReserved && node == 0) { child = Int(nodes[node].plus) }
                if child >= 0 {
                    node = child
                    levelStart = level.upperBound + 1
                    triesPlusOnly = false
                    if levelStart > topic.byteCount, let value = nodes[node].value { body(value) }
                    if let value = nodes[node].below { body(value) }
                    continue
                }
            }
            // Up: behind an exact level its sibling `+` is still to be tried, behind `+` nothing.
            repeat {
                if node == 0 { return }
                triesPlusOnly = !nodes[node].isPlus
                node = Int(nodes[node].parent)
                levelStart = topic.levelStart(before: levelStart)
            } while !triesPlusOnly
        }
    }

    /// The values of every filter that matches a topic name, in no order to rely on.
    public func matches(_ topic: String) -> [Value] {
        topic.withUTF8Span { bytes in
            var values: [Value] = []
            forEachMatch(bytes) { values.append($0) }
            return values
        }
    }
}

extension RawSpan {
    /// The start of the level in front of the one that starts at `start`, or would start there.
    fileprivate func levelStart(before start: Int) -> Int {
        var offset = start - 1
        while offset > 0, byte(at: offset - 1) != MQTTTopicFilter.slash { offset -= 1 }
        return offset
    }
}
