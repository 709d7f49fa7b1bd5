import Synchronization
import Wire

/// A task that waits for one answer: the only owner of its continuation, which it consumes by resuming it.
///
/// It cannot be copied, and `resume` consumes it: the compiler refuses a program that resumes a task twice. Moving the
/// waiter out of the place where it is stored is the only way to get it, so that of an answer, a cancellation and an
/// end the one that moves it out is the one that resumes. Do that with the lock held, and resume after it is released.
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
///     thread
///     that cancels it.
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
            keepingBaton(onCancel)
        #else
            onCancel()
        #endif
    }
}

#if SIMULATION
    /// Calls a cancellation handler: the runtime holds a lock of the task meanwhile, which a thread that resumes the task
    /// waits for.
    @usableFromInline
    func keepingBaton(_ body: () -> Void) {
        Baton.keep()
        defer { Baton.keepNoLonger() }
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
