/// An array of values that cannot be copied, such as waiters, which `Array` cannot hold.
@usableFromInline
package struct UniqueArray<Element: ~Copyable>: ~Copyable {
    @usableFromInline var memory: UnsafeMutablePointer<Element>?
    // Halves of a word, since every idle connection has some of these arrays.
    @usableFromInline var storedCount: UInt32 = 0
    @usableFromInline var storedCapacity: UInt32 = 0

    @inlinable
    package init() {}

    @inlinable
    deinit {
        guard let memory else { return }
        memory.deinitialize(count: count)
        memory.deallocate()
    }

    @usableFromInline package internal(set) var count: Int {
        get { Int(storedCount) }
        set { storedCount = UInt32(newValue) }
    }

    @inlinable var capacity: Int {
        get { Int(storedCapacity) }
        set { storedCapacity = UInt32(newValue) }
    }

    @inlinable package var isEmpty: Bool { count == 0 }
    @inlinable package var indices: Range<Int> { 0..<count }

    @inlinable
    package subscript(_ index: Int) -> Element {
        unsafeAddress {
            precondition(index >= 0 && index < count)
            return UnsafePointer(memory.unsafelyUnwrapped + index)
        }
        unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return memory.unsafelyUnwrapped + index
        }
    }

    @inlinable
    package mutating func append(_ element: consuming Element) {
        if count == capacity { grow() }
        (memory.unsafelyUnwrapped + count).initialize(to: element)
        count += 1
    }

    @inlinable
    package mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        return (memory.unsafelyUnwrapped + count).move()
    }

    /// Moves an element out; those behind it move up.
    @inlinable
    package mutating func remove(at index: Int) -> Element {
        precondition(index >= 0 && index < count)
        let place = memory.unsafelyUnwrapped + index
        let element = place.move()
        count -= 1
        place.moveInitialize(from: place + 1, count: count - index)
        return element
    }

    /// Moves all elements out, the first one first, and keeps the capacity.
    @inlinable
    package mutating func drain(_ body: (consuming Element) -> Void) {
        guard count > 0 else { return }
        // Out of reach, in case `body` comes back to this array.
        var taken = UniqueArray()
        swap(&self, &taken)
        let number = taken.count
        taken.count = 0
        for index in 0..<number { body((taken.memory.unsafelyUnwrapped + index).move()) }
        if capacity == 0 { swap(&self, &taken) }
    }

    @inlinable
    mutating func grow() {
        let wider = max(4, capacity * 2)
        let moved = UnsafeMutablePointer<Element>.allocate(capacity: wider)
        if let memory {
            moved.moveInitialize(from: memory, count: count)
            memory.deallocate()
        }
        memory = moved
        capacity = wider
    }
}

// It owns its elements alone.
extension UniqueArray: @unchecked Sendable where Element: Sendable & ~Copyable {}
