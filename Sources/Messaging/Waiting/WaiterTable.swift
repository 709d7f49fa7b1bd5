import Transport
public import Wire

/// Callers that wait for an answer, by a token that goes through the engine and comes back with the answer.
///
/// Waiting has two parts, because most answers come soon, and being cancellable costs as much as everything else that
/// a caller does. First it waits for a *quick answer*: a success that is one byte, or word that there is more to hear.
/// Whoever has waited for `patience` gets that word too, and goes on to wait for the *whole* answer, with a cancellation
/// handler. So a cancelled caller returns after twice the patience at the latest.
///
/// Kept under its link's lock; a waiter leaves its slot by being moved out, so that it is resumed once. Tokens are a slot
/// and its generation: looking one up costs an index, and a token of an earlier use of the slot is recognised. The three
/// highest bits of a token are zero: they are the client's to use.
@usableFromInline
package struct WaiterTable<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline package typealias QuickWaiter = Waiter<QuickAnswer>

    @usableFromInline
    enum Stage: UInt8, Sendable {
        case free
        /// Waits for the quick answer.
        case quick
        /// Was told to go on, and has not come yet.
        case between
        /// Waits for the whole answer.
        case whole
        /// Was told to go on; the answer is in `answers`.
        case answered
        /// Nobody waits any more.
        case abandoned
    }

    @usableFromInline
    struct Slot: ~Copyable, Sendable {
        @usableFromInline var quick: QuickWaiter?
        @usableFromInline var whole: Waiter<Answer>?
        @usableFromInline var generation: UInt32 = 0
        @usableFromInline var stage = Stage.free
        /// It has waited through one look already.
        @usableFromInline var wasSeen = false

        @inlinable init() {}
    }

    @usableFromInline var slots = UniqueArray<Slot>()
    @usableFromInline var free: [Int32] = []
    @usableFromInline var answers: [UInt64: Answer] = [:]

    /// When to look for callers that have waited long; `Int64.max` for never.
    @usableFromInline package var nextLook = Int64.max

    /// Nanoseconds between two looks.
    @inlinable package static var patience: Int64 { 50_000_000 }

    package init() {}

    // MARK: The first part

    /// Takes a slot for a caller.
    @inlinable
    package mutating func add(_ waiter: consuming QuickWaiter, at now: Int64) -> UInt64 {
        let index: Int
        if let reused = free.popLast() {
            index = Int(reused)
        } else {
            index = slots.count
            slots.append(Slot())
        }
        slots[index].quick = consume waiter
        slots[index].stage = .quick
        slots[index].wasSeen = false
        if nextLook == .max { nextLook = now + Self.patience }
        return UInt64(index) | UInt64(slots[index].generation) << 32
    }

    /// Gives the caller that waits for its quick answer a success, and its slot back. Nil, and nothing done, for others:
    /// they want a whole `answer`.
    @inlinable
    package mutating func succeed(_ token: UInt64) -> QuickWaiter? {
        guard let index = index(of: token), slots[index].stage == .quick else { return nil }
        let waiter = slots[index].quick.take()
        giveBack(index)
        return waiter
    }

    /// Has the caller go on to wait for the whole answer.
    package mutating func goOn(_ token: UInt64) -> QuickWaiter? {
        guard let index = index(of: token), slots[index].stage == .quick else { return nil }
        slots[index].stage = .between
        return slots[index].quick.take()
    }

    /// Has everybody go on who has waited since before the last look.
    package mutating func look(at now: Int64, into resumptions: inout Resumptions<Answer>) {
        guard now >= nextLook else { return }
        nextLook = .max
        for index in slots.indices where slots[index].stage == .quick {
            guard slots[index].wasSeen else {
                slots[index].wasSeen = true
                nextLook = now + Self.patience
                continue
            }
            let token = UInt64(index) | UInt64(slots[index].generation) << 32
            if let waiter = goOn(token) { resumptions.quick.append(Resumption(waiter, .goOn(token))) }
        }
    }

    // MARK: Both parts

    /// The answer to a token has come. Nothing happens if nobody waits any more.
    package mutating func answer(_ token: UInt64, _ answer: Answer, into resumptions: inout Resumptions<Answer>) {
        guard let index = index(of: token) else { return }
        switch slots[index].stage {
        case .free, .answered:
            return
        case .quick, .between:
            answers[token] = answer
            if let waiter = goOn(token) { resumptions.quick.append(Resumption(waiter, .goOn(token))) }
            slots[index].stage = .answered
        case .whole:
            if let waiter = slots[index].whole.take() { resumptions.whole.append(Resumption(waiter, answer)) }
            giveBack(index)
        case .abandoned:
            giveBack(index)
        }
    }

    /// The answer to a caller that has just been added: it is sent on to wait for the whole answer, which is there.
    package mutating func answerAtOnce(_ token: UInt64, _ answer: Answer) -> Resumption<QuickAnswer>? {
        let ended = sendOn(token)
        guard let index = index(of: token) else { return ended }
        answers[token] = answer
        slots[index].stage = .answered
        return ended
    }

    /// Sends a caller that has just been added on to wait for the whole answer.
    package mutating func sendOn(_ token: UInt64) -> Resumption<QuickAnswer>? {
        guard let waiter = goOn(token) else { return nil }
        return Resumption(waiter, .goOn(token))
    }

    /// Gives the same answer to everybody.
    package mutating func answerAll(_ answer: Answer, into resumptions: inout Resumptions<Answer>) {
        for index in slots.indices {
            self.answer(UInt64(index) | UInt64(slots[index].generation) << 32, answer, into: &resumptions)
        }
    }

    /// Whether a caller waits for the answer to a token, in either part: it was not cancelled.
    package func isAwaited(_ token: UInt64) -> Bool {
        guard let index = index(of: token) else { return false }
        return slots[index].stage != .abandoned
    }

    // MARK: The second part

    /// The caller that was told to go on comes to wait. Returns it with its answer if it need not wait.
    ///
    /// - Parameter cancelled: the answer of a caller that was cancelled before it came.
    package mutating func wait(
        for token: UInt64, _ waiter: consuming Waiter<Answer>, cancelled: Answer
    ) -> Resumption<Answer>? {
        guard let index = index(of: token) else { return Resumption(waiter, cancelled) }
        switch slots[index].stage {
        case .between:
            slots[index].stage = .whole
            slots[index].whole = consume waiter
            return nil
        case .answered:
            giveBack(index)
            return Resumption(waiter, answers.removeValue(forKey: token) ?? cancelled)
        case .free, .quick, .whole, .abandoned:
            return Resumption(waiter, cancelled)
        }
    }

    /// The caller's task is cancelled: returns its waiter. The token stays taken until its answer comes.
    package mutating func cancel(_ token: UInt64) -> Waiter<Answer>? {
        guard let index = index(of: token) else { return nil }
        switch slots[index].stage {
        case .free, .quick, .answered, .abandoned:
            // An answer that is there already is what the caller gets.
            return nil
        case .between, .whole:
            slots[index].stage = .abandoned
            return slots[index].whole.take()
        }
    }

    // MARK: Slots

    @inlinable
    func index(of token: UInt64) -> Int? {
        let index = Int(token & 0xFFFF_FFFF)
        guard index < slots.count, slots[index].stage != .free, slots[index].generation == UInt32(token >> 32) else {
            return nil
        }
        return index
    }

    @inlinable
    mutating func giveBack(_ index: Int) {
        slots[index].stage = .free
        slots[index].generation = (slots[index].generation &+ 1) & 0x1FFF_FFFF
        free.append(Int32(index))
    }
}
