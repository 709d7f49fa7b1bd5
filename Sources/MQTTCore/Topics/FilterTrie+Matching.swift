import Wire

extension FilterTrie {
    /// Calls `body` with the slot of every filter that matches the bytes of a topic name.
    ///
    /// It walks down for an exact level, then for `+`, and back up by the parents; no recursion and no list of open
    /// branches, so a filter of 30,000 levels costs neither stack nor memory.
    @usableFromInline
    func forEachMatch(_ topic: RawSpan, _ body: (Int) -> Void) {
        if topic.byteCount == 0 { return }
        // Wildcards in front do not reach topics that start with $ [MQTT-4.7.2-1].
        let isReserved = topic.byte(at: 0) == MQTTTopicFilter.dollar
        if !isReserved, nodes[0].slotBelow >= 0 { body(Int(nodes[0].slotBelow)) }
        var node = 0
        var levelStart = 0
        var triesPlusOnly = false
        while true {
            // Down: from `node` by the level that starts at `levelStart`.
            if levelStart <= topic.byteCount {
                let level = levelStart..<topic.levelEnd(from: levelStart)
                var child = -1
                if !triesPlusOnly { child = exactChild(of: node, topic, level) ?? -1 }
                if child < 0, !(isReserved && node == 0) { child = Int(nodes[node].plus) }
                if child >= 0 {
                    node = child
                    levelStart = level.upperBound + 1
                    triesPlusOnly = false
                    if levelStart > topic.byteCount, nodes[node].slot >= 0 { body(Int(nodes[node].slot)) }
                    if nodes[node].slotBelow >= 0 { body(Int(nodes[node].slotBelow)) }
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

    /// The child for these bytes, `+` not being special here.
    func exactChild(of node: Int, _ bytes: RawSpan, _ level: Range<Int>) -> Int? {
        if nodes[node].edges.count <= 4 {
            // Looking at a few is cheaper than hashing.
            for edge in nodes[node].edges where isLevel(of: Int(edge.node), equalTo: bytes, level) {
                return Int(edge.node)
            }
            return nil
        }
        let hash = Self.hash(bytes, level)
        var position = Self.firstEdge(nodes[node].edges, hash)
        while position < nodes[node].edges.count, nodes[node].edges[position].hash == hash {
            let child = Int(nodes[node].edges[position].node)
            if isLevel(of: child, equalTo: bytes, level) { return child }
            position += 1
        }
        return nil
    }

    private func isLevel(of node: Int, equalTo bytes: RawSpan, _ level: Range<Int>) -> Bool {
        guard nodes[node].level.count == level.count else { return false }
        for index in 0..<level.count where nodes[node].level[index] != bytes.byte(at: level.lowerBound + index) {
            return false
        }
        return true
    }

    /// The position of the first edge whose hash is not below `hash`.
    static func firstEdge(_ edges: [Edge], _ hash: Int) -> Int {
        var low = 0
        var high = edges.count
        while low < high {
            let middle = low + (high - low) / 2
            if edges[middle].hash < hash { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Seeded anew for every process, so that nobody can choose filters that collide.
    static func hash(_ bytes: RawSpan, _ level: Range<Int>) -> Int {
        var hasher = Hasher()
        // Safe: the buffer is read inside the call that lends it.
        unsafe bytes.extracting(level).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
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
