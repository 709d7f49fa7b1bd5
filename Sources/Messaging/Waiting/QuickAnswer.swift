/// What a caller hears first.
@usableFromInline
package struct QuickAnswer: Sendable {
    /// What there is more to hear about; nil if it is a success, and that is all.
    package let token: UInt64?
    /// The code of a success.
    package let code: UInt8

    package static func success(_ code: UInt8 = 0) -> QuickAnswer { QuickAnswer(token: nil, code: code) }
    package static func goOn(_ token: UInt64) -> QuickAnswer { QuickAnswer(token: token, code: 0) }
}

/// Who is resumed with what, after the lock is released.
@usableFromInline
package struct Resumptions<Answer: Sendable>: Sendable {
    @usableFromInline package var quick: [(UnsafeContinuation<QuickAnswer, Never>, QuickAnswer)] = []
    @usableFromInline package var whole: [(UnsafeContinuation<Answer, Never>, Answer)] = []

    @inlinable package init() {}

    @inlinable
    package func resume() {
        for (waiter, answer) in quick { waiter.resume(returning: answer) }
        for (waiter, answer) in whole { waiter.resume(returning: answer) }
    }

    /// Forgets everybody and keeps the capacity.
    @inlinable
    package mutating func removeAll() {
        if !quick.isEmpty { quick.removeAll(keepingCapacity: true) }
        if !whole.isEmpty { whole.removeAll(keepingCapacity: true) }
    }
}

/// Where a table of waiters is kept.
package protocol AnswerDesk: Sendable {
    associatedtype Answer: Sendable
    /// What a caller is told whose task is cancelled.
    var cancelledAnswer: Answer { get }
    /// Runs `body` on the table under its lock.
    func withWaiters<Result>(_ body: (inout WaiterTable<Answer>) -> Result) -> Result
}

extension AnswerDesk {
    /// Waits for the whole answer, or for the end of the caller's task.
    package nonisolated(nonsending) func answer(to token: UInt64) async -> Answer {
        await withTaskCancellationHandler {
            await withUnsafeContinuation { (waiter: UnsafeContinuation<Answer, Never>) in
                switch withWaiters({ $0.wait(for: token, waiter) }) {
                case .waits: break
                case .answered(let answer): waiter.resume(returning: answer)
                case .abandoned: waiter.resume(returning: cancelledAnswer)
                }
            }
        } onCancel: {
            withWaiters { $0.cancel(token) }?.resume(returning: cancelledAnswer)
        }
    }
}
