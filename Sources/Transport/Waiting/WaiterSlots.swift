package import Wire

/// Waiters by token, under their owner's lock: a token is a slot and its generation, so that looking a waiter up costs
/// an index, and a token of an earlier use of the slot finds nothing.
///
/// A caller reserves its token before it suspends, because its cancellation handler has to know it: the answer and the
/// cancellation both `take` by token, and the first of them gets the waiter.
package struct WaiterSlots<Answer: Sendable>: EmptyAtFirst, ~Copyable, Sendable {
    package struct Token: Hashable, Sendable {
        fileprivate let index: UInt32
        fileprivate let generation: UInt32
    }

    private struct Slot: ~Copyable, Sendable {
        var waiter: Waiter<Answer>?
        var generation: UInt32 = 0
        var isReserved = true
        /// When the waiter came, counted in waiters.
        var order: UInt64 = 0
    }

    private var slots = UniqueArray<Slot>()
    private var free: [UInt32] = []
    private var added: UInt64 = 0
    /// Waiters that wait at the moment.
    package private(set) var count = 0

    package init() {}

    /// A token for a caller that is about to wait; it has to be used with `add` or given back with `release`.
    package mutating func reserve() -> Token {
        if let index = free.popLast() {
            slots[Int(index)].isReserved = true
            return Token(index: index, generation: slots[Int(index)].generation)
        }
        slots.append(Slot())
        return Token(index: UInt32(slots.count - 1), generation: 0)
    }

    /// The caller waits.
    package mutating func add(_ waiter: consuming Waiter<Answer>, at token: Token) {
        precondition(isCurrent(token) && slots[Int(token.index)].waiter == nil, "A token serves one waiter.")
        added += 1
        count += 1
        slots[Int(token.index)].order = added
        slots[Int(token.index)].waiter = consume waiter
    }

    /// The caller does not wait after all.
    package mutating func release(_ token: Token) {
        if isCurrent(token), slots[Int(token.index)].waiter == nil { giveBack(Int(token.index)) }
    }

    /// Moves a waiter out. Nil if it has been taken already, or has not come yet.
    package mutating func take(_ token: Token) -> Waiter<Answer>? {
        guard isCurrent(token), let waiter = slots[Int(token.index)].waiter.take() else { return nil }
        count -= 1
        giveBack(Int(token.index))
        return waiter
    }

    /// Moves all waiters out, those that have waited longest first.
    package mutating func takeAll() -> UniqueArray<Waiter<Answer>> {
        var taken = UniqueArray<Waiter<Answer>>()
        guard count > 0 else { return taken }
        let waiting = slots.indices.filter { slots[$0].waiter != nil }
        for index in waiting.sorted(by: { slots[$0].order < slots[$1].order }) {
            if let waiter = slots[index].waiter.take() { taken.append(waiter) }
            giveBack(index)
        }
        count = 0
        return taken
    }

    private func isCurrent(_ token: Token) -> Bool {
        let index = Int(token.index)
        return index < slots.count && slots[index].isReserved && slots[index].generation == token.generation
    }

    private mutating func giveBack(_ index: Int) {
        slots[index].isReserved = false
        slots[index].generation &+= 1
        free.append(UInt32(index))
    }
}
