/// Topic filters as a tree: each of its levels is a level of the filters. Filters are known by numbers, their slots.
@usableFromInline
struct FilterTrie: Sendable {
    /// One level of filters that begin alike. Nodes and slots are indices; -1 is none.
    struct Node: Sendable {
        var parent: Int32
        /// The bytes of the level.
        var level: [UInt8]
        /// Whether the level is the wildcard `+`.
        var isPlus: Bool
        /// The child for `+`.
        var plus: Int32 = -1
        /// The other children, ordered by hash.
        var edges: [Edge] = []
        /// The slot of the filter that ends here.
        var slot: Int32 = -1
        /// The slot of the filter that ends with `#` behind this level.
        var slotBelow: Int32 = -1

        var isUnused: Bool { plus < 0 && edges.isEmpty && slot < 0 && slotBelow < 0 }
    }

    struct Edge: Sendable {
        let hash: Int
        let node: Int32
    }

    private(set) var nodes: [Node] = [Node(parent: -1, level: [], isPlus: false)]
    private var unusedNodes: [Int32] = []
    private var slotCount: Int32 = 0
    private var unusedSlots: [Int32] = []

    /// The slot of a filter; a new filter gets the lowest that was never used, or one that was given back.
    mutating func insert(_ filter: [UInt8]) -> Int {
        var node = 0
        var isBelow = false
        for level in filter.split(separator: MQTTTopicFilter.slash, omittingEmptySubsequences: false) {
            if level.elementsEqual([MQTTTopicFilter.hash]) {
                isBelow = true
                break
            }
            node = child(of: node, level: level) ?? addChild(to: node, level: Array(level))
        }
        let known = isBelow ? nodes[node].slotBelow : nodes[node].slot
        if known >= 0 { return Int(known) }
        let slot = unusedSlots.popLast() ?? slotCount
        if slot == slotCount { slotCount += 1 }
        if isBelow { nodes[node].slotBelow = slot } else { nodes[node].slot = slot }
        return Int(slot)
    }

    /// The slot of a filter, or nil if it is not there.
    func find(_ filter: [UInt8]) -> Int? {
        place(of: filter).flatMap { place in
            let slot = place.isBelow ? nodes[place.node].slotBelow : nodes[place.node].slot
            return slot < 0 ? nil : Int(slot)
        }
    }

    /// Removes a filter and returns the slot that it had.
    mutating func remove(_ filter: [UInt8]) -> Int? {
        guard let place = place(of: filter), let slot = find(filter) else { return nil }
        if place.isBelow { nodes[place.node].slotBelow = -1 } else { nodes[place.node].slot = -1 }
        unusedSlots.append(Int32(slot))
        prune(place.node)
        return slot
    }

    /// The node that a filter ends at, and whether it ends below it, with `#`.
    private func place(of filter: [UInt8]) -> (node: Int, isBelow: Bool)? {
        var node = 0
        for level in filter.split(separator: MQTTTopicFilter.slash, omittingEmptySubsequences: false) {
            if level.elementsEqual([MQTTTopicFilter.hash]) { return (node, true) }
            guard let child = child(of: node, level: level) else { return nil }
            node = child
        }
        return (node, false)
    }

    /// Gives back a node that leads nowhere, and those above it.
    private mutating func prune(_ index: Int) {
        var index = index
        while index != 0, nodes[index].isUnused {
            let parent = Int(nodes[index].parent)
            if nodes[index].isPlus {
                nodes[parent].plus = -1
            } else {
                removeEdge(from: parent, to: index)
            }
            nodes[index].level = []
            unusedNodes.append(Int32(index))
            index = parent
        }
    }

    private mutating func removeEdge(from parent: Int, to child: Int) {
        let level = nodes[child].level
        let hash = unsafe Self.hash(level.span.bytes, 0..<level.count)
        var position = Self.firstEdge(nodes[parent].edges, hash)
        // Levels whose hashes are equal stand side by side.
        while Int(nodes[parent].edges[position].node) != child { position += 1 }
        nodes[parent].edges.remove(at: position)
    }

    private mutating func addChild(to parent: Int, level: [UInt8]) -> Int {
        let isPlus = level == [MQTTTopicFilter.plus]
        let node = Node(parent: Int32(parent), level: level, isPlus: isPlus)
        let index: Int
        if let free = unusedNodes.popLast() {
            index = Int(free)
            nodes[index] = node
        } else {
            index = nodes.count
            nodes.append(node)
        }
        if isPlus {
            nodes[parent].plus = Int32(index)
        } else {
            let hash = unsafe Self.hash(level.span.bytes, 0..<level.count)
            let position = Self.firstEdge(nodes[parent].edges, hash)
            nodes[parent].edges.insert(Edge(hash: hash, node: Int32(index)), at: position)
        }
        return index
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
}
