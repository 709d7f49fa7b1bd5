public import MessagingWire
public import Synchronization

/// How callers reach the machine. `perform` runs on any thread, `performNow` on the loop's; the functions that are given
/// the state are called with the lock held, and `act` after it is released.
///
/// Inlinable, so that a client's module gets code of its own for its own machine: one `publish` passes here, and
/// generic code would look types up at run time under the lock.
extension Link where Machine: ~Copyable {
    /// Runs `body` on the machine under the lock, then sees to it that what it wrote leaves.
    ///
    /// - Parameter urgent: the caller waits for the answer: unless others do as well, send at once on this thread
    ///   rather than wake the loop, which saves a thread switch.
    @inlinable
    package func perform<Result: ~Copyable, Failure: Error>(
        urgent: Bool = false, _ body: (inout Machine) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var action = LinkAction()
        defer { if action.isNeeded { act(action) } }
        return try state.withLock { (state) throws(Failure) -> Result in
            defer { action = decide(&state, urgent: urgent) }
            return try body(&machine.value)
        }
    }

    /// Runs `body` on the machine, performs its effects and sends what it wrote, all before this returns. Call it on
    /// the loop's thread, but not while other effects are performed.
    package func performNow(_ body: (inout Machine, Machine.AfterLock, _ now: Int64) -> Void) {
        let now = loop.now
        let afterLock = self.afterLock
        state.withLock { _ in body(&machine.value, afterLock, now) }
        afterLock.perform(RawSpan())
        settle(at: now)
    }

    @inlinable
    package func decide(_ state: inout LinkState, urgent: Bool) -> LinkAction {
        assert(state.checkInvariants())
        let waiting = state.isAttached && !state.sending ? machine.value.outputCount : 0
        let sends =
            waiting > 0 && state.callersMaySend
            && ((urgent && machine.value.isLatencyBound) || waiting >= Self.selfSendThreshold)
            && !state.receivedIsUnshown
        if sends { state.sending = true }
        return LinkAction(sends: sends, wakes: claimSettle(&state, toSend: waiting > 0 && !sends))
    }

    /// Whether the caller has to wake the loop, so that it settles: not if that was asked for before.
    @inlinable
    package func claimSettle(_ state: inout LinkState, toSend: Bool = false) -> Bool {
        let isNeeded =
            toSend || state.standsStill || machine.value.nextDeadline < state.armedDeadline
            || (state.isAttached && (machine.value.wantsClose || wantsReadingPaused(state) != state.readingIsPaused))
        guard isNeeded, !state.settleIsDue else { return false }
        state.settleIsDue = true
        return true
    }

    @usableFromInline
    package func act(_ action: LinkAction) {
        if action.sends { send(rounds: 4) }
        if action.wakes { loop.post(self, LinkPost.settle) }
    }

    @inlinable
    package func outboxIsFull(_ state: borrowing LinkState) -> Bool {
        machine.value.outputCount >= state.maximumOutboxBytes
    }

    /// Whether to stop reading: a receiver is full, or the outbox holds twice its limit, not counting our own messages.
    /// Only answers of the machine or of layers to a peer that sends but does not read grow beyond that. Our messages
    /// may need minutes on a slow link, and what the peer sends meanwhile must be read: that it is alive, for example.
    /// Reading resumes as soon as the outbox was taken, which always takes all of it.
    @inlinable
    package func wantsReadingPaused(_ state: borrowing LinkState) -> Bool {
        if machine.value.wantsReadingPaused { return true }
        let (twice, overflow) = state.maximumOutboxBytes.multipliedReportingOverflow(by: 2)
        let waiting = machine.value.outputCount &+ state.answerBytes
        return !overflow && waiting >= twice && waiting &- machine.value.ownBytes >= twice
    }
}

extension Link where Machine: ~Copyable {
    /// Whether a caller waits for room, or nothing is read, until the peer takes more bytes.
    func waitsForPeer(_ state: borrowing LinkState) -> Bool {
        state.outboxWaiters.count > 0 || (!machine.value.wantsReadingPaused && wantsReadingPaused(state))
    }
}

/// What is left to do for a caller once the lock is released.
@usableFromInline
package struct LinkAction {
    /// The caller holds the `sending` token.
    @usableFromInline var sends = false
    @usableFromInline var wakes = false

    @inlinable
    package init(sends: Bool = false, wakes: Bool = false) {
        self.sends = sends
        self.wakes = wakes
    }

    @inlinable package var isNeeded: Bool { sends || wakes }
}

/// Callers that wait for room in the outbox.
extension Link where Machine: ~Copyable {
    /// Waits until the outbox has room, the connection ends, or the task is cancelled; check again afterwards. Returns why there
    /// will be no room, as ``endOutboxWaits(because:)`` says.
    package nonisolated(nonsending) func outboxRoom() async -> String? {
        let token = Atomic(Waiters<String?>.noToken)
        return await waiting { waiter in
            var waiter: Waiter<String?>? = waiter
            var wakes = false
            // A waiter is added only while there is something to wait for, under the lock that ends it.
            state.withLock { state in
                guard outboxIsFull(state), state.stream != nil, !Task.isCancelled, let waiter = waiter.take() else {
                    return
                }
                let isFirst = state.outboxWaiters.count == 0
                token.store(state.outboxWaiters.add(waiter), ordering: .relaxed)
                // The loop watches for how long the first one waits.
                wakes = isFirst && claimSettle(&state, toSend: true)
            }
            if wakes { loop.post(self, LinkPost.settle) }
            waiter.take()?.resume(returning: nil)
        } onCancel: {
            state.withLock { $0.outboxWaiters.take(token.load(ordering: .relaxed)) }?.resume(returning: nil)
        }
    }

    /// Ends the waits for room if the peer has taken nothing for long: it may take nothing until something is read, and nothing
    /// is.
    package func endOutboxWaits(because reason: String) {
        var waiters = state.withLock { $0.standsStill ? $0.outboxWaiters.takeAll() : UniqueArray() }
        waiters.resume(returning: reason)
    }
}
