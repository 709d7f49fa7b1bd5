import Synchronization
import Transport
public import Wire

/// Callers that wait for an acknowledgement or a receipt, by a token that goes through the engine and comes back with the
/// answer. Kept under its link's lock.
///
/// Waiting has two stages, because of what cancellation costs: a cancellation handler takes as long as everything else
/// that an awaited message needs, and most answers come within a millisecond.
/// 1. A caller first waits without a handler for a ``QuickAnswer``. A success that is one byte ends its wait here.
/// 2. Every other answer, and every wait longer than `patience`, becomes a `PendingCall`: the quick answer carries it, and
///    the caller waits for it with a cancellation handler, until ``answer(_:_:into:)`` or its cancellation ends the call.
///
/// So a caller that is cancelled in the first stage returns when `look(at:into:)` moves it to the second, which is after
/// twice the patience at the latest; in the second stage it returns at once. The token stays in use until its answer
/// comes, even if no caller waits any more, so that a late answer never reaches another caller.
///
/// A token is a slot and its generation: finding it costs an index, and a token of an earlier use of the slot is
/// recognized. Its three highest bits are zero; the client uses them.
@usableFromInline
package struct WaiterTable<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline package typealias QuickWaiter = Waiter<QuickAnswer<Answer>>

    @usableFromInline
    struct Slot: ~Copyable, Sendable {
        /// The caller in the first stage.
        @usableFromInline var quick: QuickWaiter?
        /// The caller in the second stage.
        @usableFromInline var call: PendingCall<Answer>?
        @usableFromInline var generation: UInt32 = 0
        @usableFromInline var isFree = false
        /// Whether `look` has found it in the first stage before.
        @usableFromInline var wasSeen = false
        /// The slots of the callers that came to the first stage before and after this one; -1 without one.
        @usableFromInline var before: Int32 = -1
        @usableFromInline var after: Int32 = -1

        @inlinable init() {}
    }

    @usableFromInline var slots = UniqueArray<Slot>()
    @usableFromInline var free: [Int32] = []
    /// The callers in the first stage, in the order in which they came: the ends of a list through their slots.
    @usableFromInline var oldest: Int32 = -1
    @usableFromInline var newest: Int32 = -1
    /// The generation of new slots: above that of all which were given up, so that no token comes twice.
    @usableFromInline var firstGeneration: UInt32 = 0
    /// Slots that became free since the table was last checked for memory to give up.
    @usableFromInline var releases: UInt32 = 0

    /// When to call `look(at:into:)`; `Int64.max` if no caller is in the first stage.
    @usableFromInline package var nextLook = Int64.max

    /// The callers that `look(at:into:)` has visited, for tests of what it costs.
    package private(set) var visits: UInt32 = 0

    /// Nanoseconds between two calls of `look(at:into:)`.
    @inlinable package static var patience: Int64 { 50_000_000 }

    package init() {}

    // MARK: The first stage

    /// Takes a slot for a caller.
    @inlinable
    package mutating func add(_ waiter: consuming QuickWaiter, at now: Int64) -> UInt64 {
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
        } else {
            index = slots.count
            slots.append(Slot())
            slots[index].generation = firstGeneration
        }
        slots[index].quick = consume waiter
        slots[index].isFree = false
        slots[index].wasSeen = false
        slots[index].before = newest
        slots[index].after = -1
        if newest >= 0 { slots[Int(newest)].after = Int32(index) } else { oldest = Int32(index) }
        newest = Int32(index)
        if nextLook == .max { nextLook = now + Self.patience }
        return UInt64(index) | UInt64(slots[index].generation) << 32
    }

    /// Frees the slot of a caller in the first stage and returns its waiter, to be resumed with `QuickAnswer.success`.
    /// Returns nil for a caller in the second stage, which needs an `answer`.
    @inlinable
    package mutating func succeed(_ token: UInt64) -> QuickWaiter? {
        guard let index = index(of: token), let waiter = takeQuick(index) else { return nil }
        giveBack(index)
        return waiter
    }

    /// Takes a caller out of the first stage, if it is there.
    @inlinable
    mutating func takeQuick(_ index: Int) -> QuickWaiter? {
        guard let waiter = slots[index].quick.take() else { return nil }
        let (before, after) = (slots[index].before, slots[index].after)
        if before >= 0 { slots[Int(before)].after = after } else { oldest = after }
        if after >= 0 { slots[Int(after)].before = before } else { newest = before }
        return waiter
    }

    /// Moves a caller that has just been added to the second stage: its answer may take long.
    package mutating func sendOn(_ token: UInt64) -> Resumption<QuickAnswer<Answer>>? {
        guard let index = index(of: token), let waiter = takeQuick(index) else { return nil }
        let call = PendingCall<Answer>()
        slots[index].call = call
        return Resumption(waiter, .later(call))
    }

    /// Moves callers to the second stage that have been in the first for longer than `patience`. It visits a caller twice at
    /// most, and none that is in the second stage.
    package mutating func look(at now: Int64, into resumptions: inout Resumptions<Answer>) {
        guard now >= nextLook else { return }
        nextLook = .max
        // Those that were seen came before those that were not.
        while oldest >= 0, slots[Int(oldest)].wasSeen {
            visits &+= 1
            if let ended = sendOn(token(of: Int(oldest))) { resumptions.quick.append(ended) }
        }
        var index = oldest
        while index >= 0 {
            visits &+= 1
            slots[Int(index)].wasSeen = true
            nextLook = now + Self.patience
            index = slots[Int(index)].after
        }
    }

    // MARK: Both stages

    /// Answers a caller in either stage and frees its slot.
    package mutating func answer(_ token: UInt64, _ answer: Answer, into resumptions: inout Resumptions<Answer>) {
        if let ended = answerAtOnce(token, answer) {
            resumptions.quick.append(ended)
        } else if let index = index(of: token), let call = slots[index].call.take() {
            giveBack(index)
            if let ended = call.take(answer) { resumptions.whole.append(ended) }
        }
    }

    /// Answers a caller in the first stage, one that has just been added for instance, and frees its slot.
    package mutating func answerAtOnce(_ token: UInt64, _ answer: Answer) -> Resumption<QuickAnswer<Answer>>? {
        guard let waiter = succeed(token) else { return nil }
        let call = PendingCall<Answer>()
        call.end(answer)
        return Resumption(waiter, .later(call))
    }

    /// Gives the same answer to all callers.
    package mutating func answerAll(_ answer: Answer, into resumptions: inout Resumptions<Answer>) {
        // From the end, and by number: the table may give slots up meanwhile.
        for index in slots.indices.reversed() where index < slots.count && !slots[index].isFree {
            self.answer(token(of: index), answer, into: &resumptions)
        }
    }

    /// Whether a caller waits for the answer, in either stage: false if it was cancelled.
    package func isAwaited(_ token: UInt64) -> Bool {
        guard let index = index(of: token) else { return false }
        return slots[index].call.map { !$0.isOver } ?? true
    }

    // MARK: Slots

    @inlinable
    func index(of token: UInt64) -> Int? {
        let index = Int(token & 0xFFFF_FFFF)
        guard index < slots.count, !slots[index].isFree, slots[index].generation == UInt32(token >> 32) else {
            return nil
        }
        return index
    }

    private func token(of index: Int) -> UInt64 { UInt64(index) | UInt64(slots[index].generation) << 32 }

    @inlinable
    mutating func giveBack(_ index: Int) {
        slots[index].isFree = true
        slots[index].generation = (slots[index].generation &+ 1) & 0x1FFF_FFFF
        free.append(Int32(index))
        releases &+= 1
        if slots.count > Self.leastSlots, free.count == slots.count || Int(releases) >= slots.count { giveUpSlots() }
    }

    /// The number of slots.
    package var slotCount: Int { slots.count }

    /// Slots that are worth giving up: fewer of them are kept.
    @inlinable static var leastSlots: Int { 1_024 }

    /// Gives up the memory of free slots at the end, if they are most of the table. It takes time in proportion to the
    /// table, and is called after as many releases.
    @usableFromInline
    mutating func giveUpSlots() {
        releases = 0
        var left = slots.count
        while left > 0, slots[left - 1].isFree {
            firstGeneration = max(firstGeneration, slots[left - 1].generation)
            left -= 1
        }
        guard left <= slots.count / 2 else { return }
        var kept = UniqueArray<Slot>()
        var index = 0
        slots.drain { slot in
            if index < left { kept.append(slot) }
            index += 1
        }
        slots = kept
        // The lowest first, so that the end becomes free.
        free = free.filter { $0 < left }.sorted(by: >)
    }
}

/// What ends the first stage of a wait.
@frozen
@usableFromInline
package struct QuickAnswer<Answer: Sendable>: Sendable {
    /// The second stage, in which the answer comes; nil if the wait is over with a success.
    package let call: PendingCall<Answer>?
    /// The code of a success.
    package let code: UInt8

    package static func success(_ code: UInt8 = 0) -> QuickAnswer { QuickAnswer(call: nil, code: code) }
    package static func later(_ call: PendingCall<Answer>) -> QuickAnswer { QuickAnswer(call: call, code: 0) }
}

/// Callers that were taken out of a table under the lock, to be resumed after it is released.
@usableFromInline
package struct Resumptions<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline package var quick = UniqueArray<Resumption<QuickAnswer<Answer>>>()
    @usableFromInline package var whole = UniqueArray<Resumption<Answer>>()

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { quick.isEmpty && whole.isEmpty }

    /// Resumes all callers; the capacity stays for the next use.
    @inlinable
    package mutating func resume() {
        quick.drain { $0.resume() }
        whole.drain { $0.resume() }
    }
}

/// Requests of callers that found the lock of their link taken, until the loop hands them to the machine: see
/// `Link.performIfFree`. Any thread may use it.
///
/// The lock in here is held for the time of an append, and never while a request is handled.
package struct DeferredRequests<Request: ~Copyable & Sendable>: ~Copyable, Sendable {
    private let requests = Lock(UniqueArray<Request>())

    package init() {}

    /// Leaves a request; the loop has to be asked to take it.
    package func add(_ request: consuming Request) {
        var request: Request? = request
        requests.withLock { requests in
            if let request = request.take() { requests.append(request) }
        }
    }

    /// Passes all requests on, in the order in which they came.
    package func drain(_ body: (consuming Request) -> Void) {
        var taken = requests.withLock { requests in
            var taken = UniqueArray<Request>()
            swap(&taken, &requests)
            return taken
        }
        taken.drain(body)
    }
}
