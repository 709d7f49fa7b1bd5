/// A value in memory of its own, for what only one loop's thread touches, many times a turn.
///
/// Each access to a variable property of a class is checked for overlaps with others while the program runs. That costs
/// a hundred instructions, and a round trip made thirty of them: a quarter of its time. Here nothing is checked, as
/// nothing is with any pointer, so that whoever holds a value in this way sees to it that
/// - only the loop's thread touches it, and
/// - no access lasts while something is called that may come back to it.
package struct LoopOwned<Value: ~Copyable>: @unchecked Sendable {
    // Sendable because of the first rule.
    /// Where the value lies.
    @usableFromInline package let memory: UnsafeMutablePointer<Value>

    @inlinable
    package init(_ value: consuming Value) {
        memory = .allocate(capacity: 1)
        memory.initialize(to: value)
    }

    /// Ends the value; from the owner's `deinit`.
    @inlinable
    package func free() {
        memory.deinitialize(count: 1)
        memory.deallocate()
    }

    @inlinable package var value: Value {
        // Addresses, because an accessor that yields would have the value copied where a part of it is read.
        @inline(__always) unsafeAddress { UnsafePointer(memory) }
        @inline(__always) nonmutating unsafeMutableAddress { memory }
    }
}
