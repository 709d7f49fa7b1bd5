extension MQTTFilterTree {
    /// Where the value of a filter stands: at a node, or below it if the filter ends with `#`.
    struct Place {
        var node: Int
        var isBelow: Bool
    }

    /// The place of a filter, or nil if there is none.
    func findNode(for filter: [UInt8]) -> Place? {
        var node = 0
        for level in filter.split(separator: MQTTTopicFilter.slash, omittingEmptySubsequences: false) {
            if level.elementsEqual([MQTTTopicFilter.hash]) { return Place(node: node, isBelow: true) }
            guard let child = child(of: node, level: level) else { return nil }
            node = child
        }
        return Place(node: node, isBelow: false)
    }

    /// The place of a filter, made if need be.
    mutating func makeNode(for filter: [UInt8]) -> Place {
        var node = 0
        for level in filter.split(separator: MQTTTopicFilter.slash, omittingEmptySubsequences: false) {
            if level.elementsEqual([MQTTTopicFilter.hash]) { return Place(node: node, isBelow: true) }
            node = child(of: node, level: level) ?? addChild(to: node, level: Array(level))
        }
        return Place(node: node, isBelow: false)
    }

    /// Gives back a node that leads nowhere, and those above it.
    mutating func prune(_ index: Int) {
        var index = index
        while index != 0, nodes[index].isUnused {
            let parent = Int(nodes[index].parent)
            if nodes[index].isPlus {
                nodes[parent].plus = -1
            } else {
                nodes[parent].edges.removeAll { Int($0.node) == index }
            }
            nodes[index].level = []
            unused.append(Int32(index))
            index = parent
        }
    }

    private func child(of node: Int, level: ArraySlice<UInt8>) -> Int? {
        if level.elementsEqual([MQTTTopicFilter.plus]) {
            return nodes[node].plus < 0 ? nil : Int(nodes[node].plus)
        }
        // Safe: the span does not outlive the call that lends the buffer.
        return unsafe level.withUnsafeBytes { buffer in
            let bytes = unsafe RawSpan(_unsafeBytes: buffer)
            return exactChild(of: node, bytes, 0..<bytes.byteCount)
        }
    }

    private mutating func addChild(to parent: Int, level: [UInt8]) -> Int {
        let isPlus = level == [MQTTTopicFilter.plus]
        let hash = Self.hash(unsafe level.span.bytes, 0..<level.count)
        let node = Node(parent: Int32(parent), level: level, hash: hash, isPlus: isPlus)
        let index: Int
        if let free = unused.popLast() {
            index = Int(free)
            nodes[index] = node
        } else {
            index = nodes.count
            nodes.append(node)
        }
        if isPlus {
            nodes[parent].plus = Int32(index)
        } else {
            let position = Self.firstEdge(nodes[parent].edges, hash)
            nodes[parent].edges.insert(Edge(hash: hash, node: Int32(index)), at: position)
        }
        return index
    }

    /// The child for these bytes, `+` not being special here.
    func exactChild(of node: Int, _ bytes: RawSpan, _ level: Range<Int>) -> Int? {
        if nodes[node].edges.isEmpty { return nil }
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
    private static func firstEdge(_ edges: [Edge], _ hash: Int) -> Int {
        var low = 0
        var high = edges.count
        while low < high {
            let middle = low + (high - low) / 2
            if edges[middle].hash < hash { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// Seeded anew for every process, so that nobody can choose filters that collide.
    private static func hash(_ bytes: RawSpan, _ level: Range<Int>) -> Int {
        var hasher = Hasher()
        // Safe: the buffer is read inside the call that lends it.
        unsafe bytes.extracting(level).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
