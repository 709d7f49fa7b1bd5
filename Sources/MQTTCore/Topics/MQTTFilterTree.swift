/// Values by topic filter, found by topic name: a tree with one level of the filters on each of its levels.
///
/// A filter holds one value; values that are collections hold more. Filters are compared as bytes and taken as they
/// are: insert the inner filter of a shared one. Matching allocates nothing and visits only branches that can match.
public struct MQTTFilterTree<Value> {
    /// One level of filters that begin alike. Nodes refer to each other by index; -1 is none.
    struct Node {
        var parent: Int32
        /// The bytes of the level.
        var level: [UInt8]
        var hash: Int
        /// Whether the level is the wildcard `+`.
        var isPlus: Bool
        /// The child for `+`.
        var plus: Int32 = -1
        /// The other children, ordered by hash.
        var edges: [Edge] = []
        /// The value of the filter that ends here.
        var value: Value?
        /// The value of the filter that ends with `#` behind this level.
        var below: Value?

        var isUnused: Bool { plus < 0 && edges.isEmpty && value == nil && below == nil }
    }

    struct Edge {
        let hash: Int
        let node: Int32
    }

    var nodes: [Node] = [Node(parent: -1, level: [], hash: 0, isPlus: false)]
    var unused: [Int32] = []

    /// The number of filters.
    public private(set) var count = 0

    public init() {}

    public var isEmpty: Bool { count == 0 }

    /// Inserts a value, or replaces the one that is there and returns it. The filter has to be valid.
    @discardableResult
    public mutating func insert(_ value: Value, for filter: String) -> Value? {
        let place = makeNode(for: Array(filter.utf8))
        let old = exchange(value, at: place)
        if old == nil { count += 1 }
        return old
    }

    /// Removes the value of a filter and returns it.
    @discardableResult
    public mutating func remove(_ filter: String) -> Value? {
        guard let place = findNode(for: Array(filter.utf8)), let old = exchange(nil, at: place) else { return nil }
        count -= 1
        prune(place.node)
        return old
    }

    /// The value of exactly this filter.
    public func value(for filter: String) -> Value? {
        guard let place = findNode(for: Array(filter.utf8)) else { return nil }
        return place.isBelow ? nodes[place.node].below : nodes[place.node].value
    }

    /// The value of exactly this filter, to be changed in place; nil removes it.
    public subscript(_ filter: String) -> Value? {
        get { value(for: filter) }
        set {
            if let newValue { insert(newValue, for: filter) } else { remove(filter) }
        }
    }

    private mutating func exchange(_ value: Value?, at place: Place) -> Value? {
        var value = value
        if place.isBelow {
            swap(&nodes[place.node].below, &value)
        } else {
            swap(&nodes[place.node].value, &value)
        }
        return value
    }
}

extension MQTTFilterTree: Sendable where Value: Sendable {}
extension MQTTFilterTree.Node: Sendable where Value: Sendable {}
extension MQTTFilterTree.Edge: Sendable {}
