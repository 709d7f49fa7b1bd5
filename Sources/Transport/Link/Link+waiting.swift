public import Synchronization

/// What became of a caller that came to wait.
@usableFromInline
package enum BegunWait<Answer: Sendable>: ~Copyable {
    /// It waits in a table, with this token.
    case waits(_ token: UInt64)
    /// It need not wait, or cannot.
    case ended(Resumption<Answer>)
}

/// Callers that wait for what the machine reports.
extension Link where Machine: ~Copyable {
    /// Suspends the caller until the machine's owner resumes it, or its task is cancelled.
    ///
    /// - Parameters:
    ///   - urgent: as in ``perform(urgent:_:)``.
    ///   - cancelled: the answer for a caller whose task is cancelled while it waits.
    ///   - begin: adds the waiter to a table of the machine, under the lock. The task may be cancelled by then: what must not begin
    ///     after that asks, and ends the wait.
    ///   - take: takes the waiter of a token out of the table, under the lock, if it is still there.
    ///   - afterLock: called when `begin` has returned, without the lock.
    @inlinable
    package nonisolated(nonsending) func wait<Answer: Sendable>(
        urgent: Bool = false, cancelled: @autoclosure @Sendable () -> Answer,
        _ begin: (inout Machine, consuming Waiter<Answer>) -> BegunWait<Answer>,
        take: @Sendable (inout Machine, _ token: UInt64) -> Waiter<Answer>?,
        afterLock: () -> Void = {}
    ) async -> Answer {
        let token = Atomic(Waiters<Answer>.noToken)
        return await waiting { waiter in
            var waiter: Waiter<Answer>? = waiter
            var ended: Resumption<Answer>?
            perform(urgent: urgent) { machine in
                guard let waiter = waiter.take() else { return }
                let begun = begin(&machine, waiter)
                switch consume begun {
                case .waits(let added): token.store(added, ordering: .relaxed)
                case .ended(let resumption): ended = consume resumption
                }
            }
            afterLock()
            ended.take()?.resume()
        } onCancel: {
            perform { take(&$0, token.load(ordering: .relaxed)) }?.resume(returning: cancelled())
        }
    }
}
