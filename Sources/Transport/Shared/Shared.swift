/// A value that never changes, held once for many.
package final class Shared<Value: Sendable>: Sendable {
    package let value: Value

    package init(_ value: Value) {
        self.value = value
    }
}

extension Shared: Equatable where Value: Equatable {
    package static func == (one: Shared, other: Shared) -> Bool { one === other || one.value == other.value }
}

extension Shared: Hashable where Value: Hashable {
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}
