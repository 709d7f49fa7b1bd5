import Synchronization

/// One caller that waits for what a job on another thread brings: held by the job, by tables and by queues in place of the
/// caller's waiter, which they could not hold.
///
/// The first `end` counts, whether it comes from the answer, from the caller's cancellation or from whatever makes an
/// answer impossible, and whether the caller has come to wait by then or not.
package final class PendingCall<Answer: Sendable>: Sendable {
    private struct State: ~Copyable {
        var waiter: Waiter<Answer>?
        /// The answer of a call that ended before its caller came to wait.
        var early: Answer?
        var isOver = false
    }

    private let state = Lock(State())

    package init() {}

    /// Whether the call has ended: there is nothing more to do for it.
    package var isOver: Bool { state.withLock { $0.isOver } }

    /// Ends the call. Returns false, having done nothing, if it has ended before.
    @discardableResult
    package func end(_ answer: Answer) -> Bool {
        var isFirst = false
        let waiter = state.withLock { state -> Waiter<Answer>? in
            guard !state.isOver else { return nil }
            isFirst = true
            state.isOver = true
            if state.waiter == nil { state.early = answer }
            return state.waiter.take()
        }
        waiter?.resume(returning: answer)
        return isFirst
    }

    /// Waits for the end; once.
    ///
    /// - Parameters:
    ///   - begin: called when the caller waits, unless the call has ended already.
    ///   - onCancel: the caller's task was cancelled, maybe before `begin`; it has to see to an end.
    package nonisolated(nonsending) func answer(
        _ begin: () -> Void = {}, onCancel: @Sendable () -> Void
    ) async -> Answer {
        await waiting { waiter in
            wait(waiter, begin)
        } onCancel: {
            onCancel()
        }
    }

    /// Waits for the end, whether the caller's task is cancelled or not; once.
    package nonisolated(nonsending) func answer() async -> Answer {
        await waiting { wait($0, {}) }
    }

    private func wait(_ waiter: consuming Waiter<Answer>, _ begin: () -> Void) {
        var waiter: Waiter<Answer>? = waiter
        let early = state.withLock { state -> Answer? in
            if let early = state.early.take() { return early }
            state.waiter = waiter.take()
            return nil
        }
        if let early {
            waiter.take()?.resume(returning: early)
        } else {
            begin()
        }
    }
}
