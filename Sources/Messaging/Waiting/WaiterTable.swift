/// Callers that wait for an answer, by a token that goes through the engine and comes back with the answer.
///
/// Kept under its link's lock. Tokens are a slot and its generation: looking one up costs an index, and a token of
/// an earlier use of the slot is recognised. The three highest bits of a token are zero: they are the client's to use.
@usableFromInline
package struct WaiterTable<Answer: Sendable>: Sendable {
    @usableFromInline package typealias Waiter = UnsafeContinuation<Answer, Never>

    @usableFromInline
    struct Slot: Sendable {
        @usableFromInline var waiter: Waiter?
        @usableFromInline var callerID: UInt64 = 0
        @usableFromInline var generation: UInt32 = 0
        @usableFromInline var isTaken = false

        @inlinable init() {}
    }

    @usableFromInline var slots: [Slot] = []
    @usableFromInline var free: [Int32] = []
    @usableFromInline var cancelledEarly: Set<UInt64> = []

    package init() {}

    /// Takes a slot for a caller.
    ///
    /// - Parameter callerID: names the caller to `cancel`; 0 for one that cannot be cancelled.
    @inlinable
    package mutating func add(_ waiter: Waiter?, callerID: UInt64) -> UInt64 {
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
        } else {
            index = slots.count
            slots.append(Slot())
        }
        slots[index].waiter = waiter
        slots[index].callerID = callerID
        slots[index].isTaken = true
        return UInt64(index) | UInt64(slots[index].generation) << 32
    }

    /// Gives the slot back and returns who waits there, if somebody still does.
    @inlinable
    package mutating func take(_ token: UInt64) -> Waiter? {
        let index = Int(token & 0xFFFF_FFFF)
        guard index < slots.count, slots[index].isTaken, slots[index].generation == UInt32(token >> 32) else {
            return nil
        }
        let waiter = slots[index].waiter
        slots[index].waiter = nil
        slots[index].isTaken = false
        slots[index].generation = (slots[index].generation &+ 1) & 0x1FFF_FFFF
        free.append(Int32(index))
        return waiter
    }

    /// Whether the caller's task was cancelled before the caller came to wait.
    @inlinable
    package mutating func wasCancelledEarly(_ callerID: UInt64) -> Bool {
        !cancelledEarly.isEmpty && cancelledEarly.remove(callerID) != nil
    }

    /// The caller's task is cancelled: returns its waiter, whose token stays taken until its answer comes.
    package mutating func cancel(_ callerID: UInt64) -> Waiter? {
        for index in slots.indices where slots[index].callerID == callerID && slots[index].isTaken {
            defer { slots[index].waiter = nil }
            return slots[index].waiter
        }
        cancelledEarly.insert(callerID)
        return nil
    }

    /// The caller is done: a cancellation that came too late leaves nothing behind.
    @inlinable
    package mutating func forget(_ callerID: UInt64) {
        cancelledEarly.remove(callerID)
    }

    /// Empties the table and returns everybody who waited.
    package mutating func takeAll() -> [Waiter] {
        var waiters: [Waiter] = []
        for index in slots.indices where slots[index].isTaken {
            if let waiter = slots[index].waiter { waiters.append(waiter) }
            slots[index].waiter = nil
            slots[index].isTaken = false
            slots[index].generation = (slots[index].generation &+ 1) & 0x1FFF_FFFF
            free.append(Int32(index))
        }
        return waiters
    }
}
