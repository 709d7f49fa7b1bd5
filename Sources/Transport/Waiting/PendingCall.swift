import Synchronization

/// One caller that waits for one answer, which comes from any thread: for an operation on another thread, a table or a
/// queue to hold.
///
/// This is the usual way to wait. `WaiterSlots` serves many callers that wait for one event under one lock, and
/// `WaiterTable` in Messaging serves awaited messages, where an allocation or a cancellation handler for each would show.
///
/// The first `end` counts, whether it is the answer, the caller's cancellation or a failure that makes an answer
/// impossible, and whether the caller already waits by then or not.
@usableFromInline
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
        take(answer, &isFirst)?.resume()
        return isFirst
    }

    /// Ends the call under the lock of its owner: returns the caller, if it waits, to be resumed after the lock is released.
    package func take(_ answer: Answer) -> Resumption<Answer>? {
        var isFirst = false
        return take(answer, &isFirst)
    }

    private func take(_ answer: Answer, _ isFirst: inout Bool) -> Resumption<Answer>? {
        var isFirstNow = false
        let waiter = state.withLock { state -> Waiter<Answer>? in
            guard !state.isOver else { return nil }
            isFirstNow = true
            state.isOver = true
            if state.waiter == nil { state.early = answer }
            return state.waiter.take()
        }
        isFirst = isFirstNow
        guard let waiter else { return nil }
        return Resumption(waiter, answer)
    }

    /// Waits for the end; once.
    ///
    /// - Parameters:
    ///   - begin: called when the caller waits, unless the call has ended already.
    ///   - onCancel: called when the caller's task is cancelled, possibly before `begin`; it has to end the call.
    package nonisolated(nonsending) func answer(
        _ begin: () -> Void = {}, onCancel: @Sendable () -> Void
    ) async -> Answer {
        await waiting { waiter in
            wait(waiter, begin)
        } onCancel: {
            onCancel()
        }
    }

    /// Waits for the end or for the cancellation of the caller's task, which ends the call with `cancelled`; once.
    package nonisolated(nonsending) func answer(ifCancelled cancelled: Answer) async -> Answer {
        await answer {
        } onCancel: {
            end(cancelled)
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
