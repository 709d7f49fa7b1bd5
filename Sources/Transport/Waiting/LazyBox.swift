/// What a ``LazyBox`` can hold: a value that begins empty.
package protocol EmptyAtFirst: ~Copyable {
    init()
}

/// A value on the heap that is made when it is first used, for what most clients never need: until then it takes the eight
/// bytes of a pointer.
package struct LazyBox<Value: EmptyAtFirst & ~Copyable>: ~Copyable {
    private var memory: UnsafeMutablePointer<Value>?

    package init() {}

    deinit {
        guard let memory else { return }
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    /// Whether the value has been used.
    package var isMade: Bool { memory != nil }

    /// The value, made by the first use.
    package var value: Value {
        mutating unsafeAddress { UnsafePointer(made()) }
        unsafeMutableAddress { made() }
    }

    private mutating func made() -> UnsafeMutablePointer<Value> {
        if let memory { return memory }
        let made = UnsafeMutablePointer<Value>.allocate(capacity: 1)
        made.initialize(to: Value())
        memory = made
        return made
    }
}

// Sendable because the box owns its value alone.
extension LazyBox: @unchecked Sendable where Value: Sendable & ~Copyable {}
