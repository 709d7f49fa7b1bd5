public import MessagingWire
import Synchronization

/// A task that waits for one answer: the only owner of its continuation, which it consumes by resuming it.
///
/// It cannot be copied, and `resume` consumes it: the compiler refuses a program that resumes a task twice. The only
/// way to get a waiter is to move it out of the place where it is stored: if an answer, a cancellation and an end come
/// at the same time, the first one to do that resumes the task. Do that with the lock held, and resume after it is released.
// Safe to use: consuming the waiter is the only way to resume the continuation, so that it is resumed once.
@safe
@frozen
@usableFromInline
package struct Waiter<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline let continuation: UnsafeContinuation<Answer, Never>

    @inlinable
    package init(_ continuation: UnsafeContinuation<Answer, Never>) {
        unsafe self.continuation = continuation
    }

    /// Lets the task continue with its answer.
    @inlinable
    package consuming func resume(returning answer: consuming sending Answer) {
        let continuation = unsafe continuation
        discard self
        unsafe continuation.resume(returning: answer)
    }

    /// Dropped without an answer: the task waits for ever, which is always a mistake of ours.
    @inlinable
    deinit {
        DroppedWaiters.add()
    }
}

/// Suspends the caller until `body`, or the owner that it passes the waiter to, resumes it, whether its task is
/// cancelled or not.
@inlinable
package nonisolated(nonsending) func waiting<Answer: Sendable>(
    _ body: (consuming Waiter<Answer>) -> Void
) async -> Answer {
    unsafe await withUnsafeContinuation { unsafe body(Waiter($0)) }
}

/// Suspends the caller until `body`, or the owner that it passes the waiter to, resumes it.
///
/// - Parameters:
///   - isolation: the caller's actor, which the call does not leave: a cancellation handler without it would cost
///     20 microseconds on the main actor.
///   - onCancel: called at once if the task is already cancelled, even before `body`; otherwise when it is, on the
///     thread that cancels it.
@inlinable
package func waiting<Answer: Sendable>(
    isolation: isolated (any Actor)? = #isolation, _ body: (consuming Waiter<Answer>) -> Void,
    onCancel: @Sendable () -> Void
) async -> Answer {
    await withTaskCancellationHandler {
        // The closure belongs to the actor only if it mentions it.
        _ = isolation
        return unsafe await withUnsafeContinuation { unsafe body(Waiter($0)) }
    } onCancel: {
        #if SIMULATION
            holdingThread(onCancel)
        #else
            onCancel()
        #endif
    }
}

#if SIMULATION
    /// Calls a cancellation handler: the runtime holds a lock of the task meanwhile, which a thread that resumes the task
    /// waits for.
    @usableFromInline
    func holdingThread(_ body: () -> Void) {
        let world = WorldThreads.current
        world?.threadIsHeld(true)
        defer { world?.threadIsHeld(false) }
        body()
    }
#endif

/// A waiter that was taken out under a lock, with the answer that it is resumed with after the lock is released.
@usableFromInline
package struct Resumption<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline let waiter: Waiter<Answer>
    @usableFromInline let answer: Answer

    @inlinable
    package init(_ waiter: consuming Waiter<Answer>, _ answer: Answer) {
        self.waiter = waiter
        self.answer = answer
    }

    @inlinable
    package consuming func resume() {
        waiter.resume(returning: answer)
    }
}

/// Counts waiters that were dropped without an answer. A debug build stops at the first one.
@usableFromInline
package enum DroppedWaiters {
    private static let number = Atomic(0)

    package static var count: Int { number.load(ordering: .relaxed) }

    @usableFromInline
    static func add() {
        number.add(1, ordering: .relaxed)
        assertionFailure("A waiting task was dropped without an answer. Resume each waiter before it is released.")
    }
}

/// Many callers that wait, under their owner's lock: each has a token, by which its answer or its cancellation finds it.
///
/// A caller adds its waiter under the lock and keeps the token where its cancellation handler finds it under the same
/// lock; a caller whose task is cancelled by then must not be added. The answer and the cancellation both `take` by token:
/// the first of them gets the waiter, and resumes it after the lock is released. Nothing else has to be known of a caller
/// that was cancelled: a later answer finds nothing.
///
/// A token is a slot and the number of the wait: finding a waiter costs an index, and the token of another use of the slot
/// is recognized. Its three highest bits are zero; the owner may use them.
@usableFromInline
package struct Waiters<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline
    struct Slot: ~Copyable, Sendable {
        @usableFromInline var waiter: Waiter<Answer>?
        @usableFromInline var number: UInt32 = 0
        /// The next free slot if this one is free, or -1.
        @usableFromInline var nextFree: Int32 = -1

        @inlinable init() {}
    }

    @usableFromInline var slots = UniqueArray<Slot>()
    // 32 bits each, because every idle client has several tables.
    @usableFromInline var firstFree: Int32 = -1
    @usableFromInline var storedCount: UInt32 = 0
    /// The number of the newest wait.
    @usableFromInline var lastNumber: UInt32 = 0
    /// Waiters that were taken since the table was last checked for memory to give up.
    @usableFromInline var releases: UInt32 = 0

    /// The token of no waiter.
    @inlinable package static var noToken: UInt64 { .max }
    /// The bits of a token that hold the slot; the number is above them.
    @inlinable static var slotBits: UInt64 { 29 }
    /// Slots that are worth giving up: fewer of them are kept.
    @inlinable static var leastSlots: Int { 1_024 }

    @inlinable package init() {}

    /// The callers that wait.
    @inlinable package var count: Int { Int(storedCount) }
    /// The number of slots.
    package var slotCount: Int { slots.count }

    /// Adds a caller; returns its token.
    @inlinable
    package mutating func add(_ waiter: consuming Waiter<Answer>) -> UInt64 {
        let index: Int
        if firstFree >= 0 {
            index = Int(firstFree)
            firstFree = slots[index].nextFree
        } else {
            index = slots.count
            precondition(index < 1 << Self.slotBits, "A client has at most half a billion waiting callers.")
            slots.append(Slot())
        }
        lastNumber &+= 1
        storedCount += 1
        slots[index].waiter = consume waiter
        slots[index].number = lastNumber
        return UInt64(index) | UInt64(lastNumber) << Self.slotBits
    }

    /// Moves a caller out. Nil if that has happened before.
    @inlinable
    package mutating func take(_ token: UInt64) -> Waiter<Answer>? {
        guard let index = index(of: token), let waiter = slots[index].waiter.take() else { return nil }
        slots[index].nextFree = firstFree
        firstFree = Int32(index)
        storedCount -= 1
        releases &+= 1
        if slots.count > Self.leastSlots, storedCount == 0 || Int(releases) >= slots.count { giveUpSlots() }
        return waiter
    }

    /// Whether a caller waits.
    @inlinable
    package func contains(_ token: UInt64) -> Bool { index(of: token) != nil }

    /// Moves all callers out, those first that have waited longest.
    package mutating func takeAll() -> UniqueArray<Waiter<Answer>> {
        var taken = UniqueArray<Waiter<Answer>>()
        guard count > 0 else { return taken }
        let waiting = slots.indices.filter { slots[$0].waiter != nil }
        // By their age, because numbers begin again after four billion.
        for index in waiting.sorted(by: { lastNumber &- slots[$0].number > lastNumber &- slots[$1].number }) {
            if let waiter = slots[index].waiter.take() { taken.append(waiter) }
        }
        if slots.count > Self.leastSlots { slots = UniqueArray() } else { slots.drain { _ in } }
        firstFree = -1
        storedCount = 0
        releases = 0
        return taken
    }

    @inlinable
    func index(of token: UInt64) -> Int? {
        let index = Int(token & (1 << Self.slotBits - 1))
        guard index < slots.count, slots[index].waiter != nil,
            UInt64(slots[index].number) == token >> Self.slotBits
        else { return nil }
        return index
    }

    /// Gives up the memory of free slots at the end, if they are most of the table. It takes time in proportion to the
    /// table, and is called after as many releases, or when no slot is in use.
    @usableFromInline
    mutating func giveUpSlots() {
        releases = 0
        var left = storedCount == 0 ? 0 : slots.count
        while left > 0, slots[left - 1].waiter == nil { left -= 1 }
        guard left <= slots.count / 2 else { return }
        var kept = UniqueArray<Slot>()
        var index = 0
        slots.drain { slot in
            if index < left { kept.append(slot) }
            index += 1
        }
        slots = kept
        // The lowest first, so that the end becomes free.
        firstFree = -1
        for index in slots.indices.reversed() where slots[index].waiter == nil {
            slots[index].nextFree = firstFree
            firstFree = Int32(index)
        }
    }
}

extension UniqueArray where Element: ~Copyable {
    /// Resumes waiters that were taken out under a lock.
    package mutating func resume<Answer: Sendable>(returning answer: Answer) where Element == Waiter<Answer> {
        drain { $0.resume(returning: answer) }
    }
}
