/// Values by topic filter, found by topic name.
public struct MQTTFilterTree<Value> {
    public init() {}
    public var count: Int { 0 }
    /// Inserts or replaces; returns the value that was there.
    @discardableResult public mutating func insert(_ value: Value, for filter: String) -> Value? { nil }
    @discardableResult public mutating func remove(_ filter: String) -> Value? { nil }
    public func value(for filter: String) -> Value? { nil }
    /// Calls `body` for the value of every filter that matches the topic's bytes, in no particular order.
    public func forEachMatch(_ topic: RawSpan, _ body: (Value) -> Void) {}
}
extension MQTTFilterTree: Sendable where Value: Sendable {}
