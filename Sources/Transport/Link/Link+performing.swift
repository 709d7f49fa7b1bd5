public import Synchronization

/// What callers run on their own threads.
///
/// Inlinable, so that a client's module gets code of its own for its own machine: one `publish` passes here, and
/// generic code would look types up at run time under the lock.
extension Link where Machine: ~Copyable {
    /// Runs `body` on the machine under the lock, then sees to it that what it wrote leaves.
    ///
    /// - Parameter urgent: somebody waits for the answer: unless others do as well, send at once on this thread rather
    ///   than wake the loop, which saves a thread switch.
    @inlinable
    package func perform<Result, Failure: Error>(
        urgent: Bool = false, _ body: (inout Machine) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        var action = LinkAction.nothing
        defer { if action != .nothing { act(action) } }
        return try state.withLock { (state) throws(Failure) -> Result in
            defer { action = Self.decide(&state, urgent: urgent) }
            return try body(&state.machine)
        }
    }

    @inlinable
    package static func decide(_ state: inout State, urgent: Bool) -> LinkAction {
        var loopHasToLook = state.machine.nextDeadline < state.armedDeadline
        var sends = false
        if state.isAttached {
            let waiting = state.machine.output.count
            if waiting > 0 && !state.sending {
                sends =
                    state.callersMaySend && ((urgent && state.machine.isLatencyBound) || waiting >= selfSendThreshold)
                state.sending = sends
                loopHasToLook = loopHasToLook || !sends
            }
            loopHasToLook =
                loopHasToLook || state.machine.wantsClose || state.wantsReadingPaused != state.readingIsPaused
        }
        // One post is enough until the loop has looked.
        let wakes = loopHasToLook && !state.settleIsDue
        if wakes { state.settleIsDue = true }
        return sends ? (wakes ? .sendAndWake : .send) : (wakes ? .wakeLoop : .nothing)
    }

    @usableFromInline
    package func act(_ action: LinkAction) {
        switch action {
        case .nothing: break
        case .wakeLoop: loop.post(self, LinkPost.settle)
        case .send: send(rounds: 4)
        case .sendAndWake:
            send(rounds: 4)
            loop.post(self, LinkPost.settle)
        }
    }
}

extension Link.State where Machine: ~Copyable {
    @inlinable package var outboxIsFull: Bool { machine.output.count >= outboxLimit }

    /// Callers wait at the limit; what grows beyond twice of it are answers to a peer that sends but does not read.
    /// The outbox is taken as a whole, so that there is nothing to flap between.
    @inlinable package var wantsReadingPaused: Bool {
        let (twice, overflow) = outboxLimit.multipliedReportingOverflow(by: 2)
        return machine.wantsReadingPaused || (!overflow && machine.output.count >= twice)
    }
}

/// What is left to do for a caller once the lock is released.
@usableFromInline
package enum LinkAction {
    case nothing, wakeLoop, send, sendAndWake
}
