/// An array of values that cannot be copied, such as waiters, which `Array` cannot hold.
// Safe to use: the memory is owned by this value alone, is freed with it, and is accessed at checked indexes only.
@safe
@usableFromInline
package struct UniqueArray<Element: ~Copyable>: ~Copyable {
    @usableFromInline var memory: UnsafeMutablePointer<Element>?
    // 32 bits each, because every idle connection has several of these arrays.
    @usableFromInline var storedCount: UInt32 = 0
    @usableFromInline var storedCapacity: UInt32 = 0

    @inlinable
    package init() {}

    @inlinable
    deinit {
        // The first `count` elements are initialized.
        guard let memory = unsafe memory else { return }
        unsafe memory.deinitialize(count: count)
        unsafe memory.deallocate()
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
            return unsafe UnsafePointer(memory.unsafelyUnwrapped + index)
        }
        unsafeMutableAddress {
            precondition(index >= 0 && index < count)
            return unsafe memory.unsafelyUnwrapped + index
        }
    }

    @inlinable
    package mutating func append(_ element: consuming Element) {
        if count == capacity { grow() }
        // There is room behind the last element.
        unsafe (memory.unsafelyUnwrapped + count).initialize(to: element)
        count += 1
    }

    @inlinable
    package mutating func popLast() -> Element? {
        guard count > 0 else { return nil }
        count -= 1
        // It was initialized and is no longer counted.
        return unsafe (memory.unsafelyUnwrapped + count).move()
    }

    /// Moves an element out; those behind it move up.
    @inlinable
    package mutating func remove(at index: Int) -> Element {
        precondition(index >= 0 && index < count)
        // The gap that the element leaves is closed by those behind it.
        let place = unsafe memory.unsafelyUnwrapped + index
        let element = unsafe place.move()
        count -= 1
        unsafe place.moveInitialize(from: place + 1, count: count - index)
        return element
    }

    /// Moves all elements out, the first one first, and keeps the capacity.
    @inlinable
    package mutating func drain(_ body: (consuming Element) -> Void) {
        guard count > 0 else { return }
        // Out of reach, in case `body` uses this array.
        var taken = UniqueArray()
        swap(&self, &taken)
        let number = taken.count
        taken.count = 0
        // Each of the elements was initialized, is moved once and is no longer counted.
        for index in 0..<number { body(unsafe (taken.memory.unsafelyUnwrapped + index).move()) }
        if capacity == 0 { swap(&self, &taken) }
    }

    @inlinable
    mutating func grow() {
        let wider = max(4, capacity * 2)
        let moved = UnsafeMutablePointer<Element>.allocate(capacity: wider)
        if let memory = unsafe memory {
            // The initialized elements move to memory that is large enough for them.
            unsafe moved.moveInitialize(from: memory, count: count)
            unsafe memory.deallocate()
        }
        unsafe memory = moved
        capacity = wider
    }
}

// Sendable because the array alone owns its elements.
extension UniqueArray: @unchecked Sendable where Element: Sendable & ~Copyable {}

/// A value in memory of its own, for a value whose place or size must not be part of its owner's layout.
// Safe to use: the memory is owned by this value alone, is initialized as long as it lives, and is freed with it.
@frozen
@safe
@usableFromInline
package struct Box<Value: ~Copyable>: ~Copyable {
    @usableFromInline let memory: UnsafeMutablePointer<Value>

    @inlinable
    package init(_ value: consuming Value) {
        unsafe memory = .allocate(capacity: 1)
        unsafe memory.initialize(to: value)
    }

    @inlinable
    deinit {
        unsafe memory.deinitialize(count: 1)
        unsafe memory.deallocate()
    }

    @inlinable package var value: Value {
        // Addresses, because an accessor that yields would copy the value where a part of it is read.
        @inline(__always) unsafeAddress { unsafe UnsafePointer(memory) }
        @inline(__always) mutating unsafeMutableAddress { unsafe memory }
    }
}

// Sendable because the box alone owns its value.
extension Box: @unchecked Sendable where Value: Sendable & ~Copyable {}

/// A value that never changes, held once for many.
@usableFromInline
package final class Shared<Value: Sendable>: Sendable {
    @usableFromInline package let value: Value

    @inlinable
    package init(_ value: Value) {
        self.value = value
    }
}

extension Shared: Equatable where Value: Equatable {
    /// Returns `known` if its value is equal, otherwise a new object with this value.
    package static func of(_ value: Value, orKnown known: Shared?) -> Shared {
        if let known, known.value == value { return known }
        return Shared(value)
    }

    @usableFromInline
    package static func == (one: Shared, other: Shared) -> Bool { one === other || one.value == other.value }
}

extension Shared: Hashable where Value: Hashable {
    @usableFromInline
    package func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

/// A value that mostly is not there, and takes the room of a reference then.
///
/// A change allocates: for values that are seldom changed and seldom read.
@frozen
@usableFromInline
package struct Boxed<Value: Sendable>: Sendable {
    @frozen
    @usableFromInline
    indirect enum Box: Sendable {
        case value(Value)
    }

    @usableFromInline var box: Box?

    @inlinable
    package init() { box = nil }

    @inlinable package var value: Value? {
        get { if case .value(let value)? = box { value } else { nil } }
        set { box = newValue.map { .value($0) } }
    }
}

extension [UInt8] {
    /// A copy of some of the elements. `Array(bytes[range])` would count a reference to all of them, because a slice
    /// owns them; `init(unsafeUninitializedCapacity:)` would look up the metadata of its storage.
    @inlinable
    package init(copying range: Range<Int>, of bytes: Span<UInt8>) {
        let source = bytes.extracting(range)
        // Safe: the buffer is used inside the closure only.
        self = unsafe source.withUnsafeBufferPointer { unsafe Array($0) }
    }
}
