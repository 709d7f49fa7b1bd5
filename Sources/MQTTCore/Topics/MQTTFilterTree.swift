import Wire

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
