import MessagingWire

/// Values by topic filter, found by topic name.
///
/// A filter holds one value; values that are collections hold more. Filters are compared as bytes and taken as they
/// are: insert the inner filter of a shared one. Matching allocates nothing and visits only branches that can match.
public struct MQTTFilterTree<Value> {
    /// The filters; it knows no values, so that its code is not generic.
    @usableFromInline var trie = FilterTrie()
    /// The values, by the slots that the filters have.
    @usableFromInline var values: [Value?] = []
    /// The number of filters.
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    /// Inserts a value, or replaces the one that is there and returns it. The filter has to be valid.
    @discardableResult
    public mutating func insert(_ value: Value, for filter: String) -> Value? {
        let slot = trie.insert(Array(filter.utf8))
        if slot >= values.count { values.append(nil) }
        let old = values[slot]
        values[slot] = value
        if old == nil { count += 1 }
        return old
    }

    /// Removes the value of a filter and returns it.
    @discardableResult
    public mutating func remove(_ filter: String) -> Value? {
        guard let slot = trie.remove(Array(filter.utf8)) else { return nil }
        let old = values[slot]
        values[slot] = nil
        count -= 1
        return old
    }

    /// The value of exactly this filter.
    public func value(for filter: String) -> Value? {
        trie.find(Array(filter.utf8)).flatMap { values[$0] }
    }

    /// The value of exactly this filter; nil removes it.
    public subscript(_ filter: String) -> Value? {
        get { value(for: filter) }
        set {
            if let newValue { insert(newValue, for: filter) } else { remove(filter) }
        }
    }

    /// Calls `body` with the value of every filter that matches the bytes of a topic name, in no order to rely on.
    @inlinable
    public func forEachMatch(_ topic: RawSpan, _ body: (Value) -> Void) {
        trie.forEachMatch(topic) { slot in
            if let value = values[slot] { body(value) }
        }
    }

    /// Calls `body` with the value of every filter that may match a topic which `filter` matches as well, in no order to rely
    /// on. All of those that do are among them (``MQTTTopicFilter/overlap(_:_:)``).
    package func forEachNear(_ filter: String, _ body: (Value) -> Void) {
        trie.forEachNear(Array(filter.utf8)) { slot in
            if let value = values[slot] { body(value) }
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

extension MQTTFilterTree: Sendable where Value: Sendable {}

/// Topic filters as a tree: each of its levels is a level of the filters. Filters are known by numbers, their slots.
@usableFromInline
struct FilterTrie: Sendable {
    /// One level of filters that begin alike. Nodes and slots are indices; -1 means that there is no node or slot.
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

    /// The slot of a filter; a new filter gets the lowest unused one, or one that was released.
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
        // Safe: the span does not outlive the closure that borrows the buffer.
        return unsafe level.withUnsafeBytes { buffer in
            let bytes = unsafe RawSpan(_unsafeBytes: buffer)
            return exactChild(of: node, bytes, 0..<bytes.byteCount)
        }
    }
}

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
                let level = levelStart..<MQTTTopicFilter.levelEnd(in: topic, from: levelStart)
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
                levelStart = MQTTTopicFilter.levelStart(in: topic, before: levelStart)
            } while !triesPlusOnly
        }
    }

    /// Calls `body` with the slot of every filter whose levels are compatible with those of a filter.
    func forEachNear(_ filter: [UInt8], _ body: (Int) -> Void) {
        let levels = filter.split(separator: MQTTTopicFilter.slash, omittingEmptySubsequences: false)
        // A list, and no recursion: filters may have 30,000 levels.
        var branches: [(node: Int, depth: Int)] = [(0, 0)]
        while let (node, depth) = branches.popLast() {
            if nodes[node].slotBelow >= 0 { body(Int(nodes[node].slotBelow)) }
            let level = depth < levels.count ? levels[depth] : []
            let isRest = level.elementsEqual([MQTTTopicFilter.hash])
            if isRest || depth == levels.count, nodes[node].slot >= 0 { body(Int(nodes[node].slot)) }
            if depth == levels.count { continue }
            let next = isRest ? depth : depth + 1
            if nodes[node].plus >= 0 { branches.append((Int(nodes[node].plus), next)) }
            if isRest || level.elementsEqual([MQTTTopicFilter.plus]) {
                for edge in nodes[node].edges { branches.append((Int(edge.node), next)) }
            } else if let child = child(of: node, level: level) {
                branches.append((child, next))
            }
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

    /// Seeded anew for every process, so that filters cannot be chosen to collide.
    static func hash(_ bytes: RawSpan, _ level: Range<Int>) -> Int {
        var hasher = Hasher()
        // Safe: the buffer is read inside the closure that borrows it.
        unsafe bytes.extracting(level).withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        return hasher.finalize()
    }
}
