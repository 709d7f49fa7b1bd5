import Transport
public import Wire

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
package struct Resumptions<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline package var quick = UniqueArray<Resumption<QuickAnswer>>()
    @usableFromInline package var whole = UniqueArray<Resumption<Answer>>()

    @inlinable package init() {}

    @inlinable package var isEmpty: Bool { quick.isEmpty && whole.isEmpty }

    /// Resumes everybody and keeps the capacity.
    @inlinable
    package mutating func resume() {
        quick.drain { $0.resume() }
        whole.drain { $0.resume() }
    }
}

/// Where a table of waiters is kept.
package protocol AnswerDesk: Sendable {
    associatedtype Answer: Sendable
    /// What a caller is told whose task is cancelled.
    var cancelledAnswer: Answer { get }
    /// Runs `body` on the table under its lock.
    func withWaiters<Result: ~Copyable>(_ body: (inout WaiterTable<Answer>) -> Result) -> Result
}

extension AnswerDesk {
    /// Waits for the whole answer, or for the end of the caller's task.
    package nonisolated(nonsending) func answer(to token: UInt64) async -> Answer {
        await waiting { waiter in
            var waiter: Waiter<Answer>? = waiter
            let ended = withWaiters { table -> Resumption<Answer>? in
                guard let waiter = waiter.take() else { return nil }
                return table.wait(for: token, waiter, cancelled: cancelledAnswer)
            }
            ended?.resume()
        } onCancel: {
            withWaiters { $0.cancel(token) }?.resume(returning: cancelledAnswer)
        }
    }
}
