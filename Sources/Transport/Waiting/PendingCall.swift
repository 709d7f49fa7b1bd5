public import MessagingWire
public import Synchronization

/// One caller that waits for one answer, which comes from any thread: for an operation on another thread, a table or a
/// queue to hold.
///
/// This is the usual way to wait. ``Waiters`` serves many callers that wait under one lock, such as those of awaited
/// messages, where an allocation for each would show.
///
/// The first `end` counts, whether it is the answer, the caller's cancellation or a failure that makes an answer
/// impossible, and whether the caller already waits by then or not.
///
/// Inlinable, and its fields are beside the lock instead of in it: otherwise each step would look up at run time what
/// depends on the type of the answer.
@usableFromInline
package final class PendingCall<Answer: Sendable>: @unchecked Sendable {
    // Sendable because the `var`s are touched with `lock` held only.
    @usableFromInline let lock: Lock<Void>
    @safe @exclusivity(unchecked) @usableFromInline var waiter: Waiter<Answer>?
    /// The answer of a call that ended before its caller came to wait.
    @safe @exclusivity(unchecked) @usableFromInline var early: Shared<Answer>?
    @safe @exclusivity(unchecked) @usableFromInline var hasEnded: Bool

    @inlinable
    package init() {
        lock = Lock(())
        waiter = nil
        early = nil
        hasEnded = false
    }

    /// Whether the call has ended: there is nothing more to do for it.
    @inlinable package var isOver: Bool { lock.withLock { _ in hasEnded } }

    /// Ends the call. Returns false, having done nothing, if it has ended before.
    @inlinable
    @discardableResult
    package func end(_ answer: Answer) -> Bool {
        var isFirst = false
        let waiter = lock.withLock { _ -> Waiter<Answer>? in
            guard !hasEnded else { return nil }
            isFirst = true
            hasEnded = true
            if self.waiter == nil { early = Shared(answer) }
            return self.waiter.take()
        }
        if let waiter { waiter.resume(returning: answer) }
        return isFirst
    }

    /// Waits for the end; once.
    ///
    /// - Parameters:
    ///   - begin: called when the caller waits, unless the call has ended already.
    ///   - onCancel: called when the caller's task is cancelled, possibly before `begin`; it has to end the call.
    @inlinable
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
    @inlinable
    package nonisolated(nonsending) func answer(
        ifCancelled cancelled: @autoclosure @Sendable () -> Answer
    ) async -> Answer {
        await answer {
        } onCancel: {
            end(cancelled())
        }
    }

    /// Waits for the end, whether the caller's task is cancelled or not; once.
    @inlinable
    package nonisolated(nonsending) func answer() async -> Answer {
        await waiting { wait($0, {}) }
    }

    @inlinable
    func wait(_ waiter: consuming Waiter<Answer>, _ begin: () -> Void) {
        var waiter: Waiter<Answer>? = waiter
        let early = lock.withLock { _ -> Shared<Answer>? in
            if let early = self.early.take() { return early }
            self.waiter = waiter.take()
            return nil
        }
        if let early {
            waiter.take()?.resume(returning: early.value)
        } else {
            begin()
        }
    }
}

/// Waits for closures of the application until a deadline at most: they may take any time, and may ignore the cancellation
/// of their task.
package enum TimedCall {
    /// Runs `body` in a task of its own, which is cancelled at the deadline and with the caller's task.
    ///
    /// - Parameter late: asked for at the deadline, on the loop's thread.
    /// - Throws: what `body` throws; `late` at the deadline; `CancellationError` when the caller was cancelled.
    package static func run<Value: Sendable>(
        until deadline: Int64, on loop: EventLoop, late: @autoclosure @escaping @Sendable () -> any Error,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let call = PendingCall<(result: Result<Value, any Error>, isLate: Bool)>()
        let alarm = LoopAlarm(loop: loop) { [loop] _ in
            // `body` may have slept on a manual clock, which is no work; from now on there is some.
            if call.end((.failure(late()), true)) { loop.beginWork() }
        }
        loop.execute { alarm.set(deadline) }
        let task = loop.startTask {
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            call.end((result, false))
        }
        let (result, isLate) = await call.answer {
        } onCancel: {
            call.end((.failure(CancellationError()), false))
        }
        task.cancel()
        loop.execute { [loop] in
            alarm.set(.max)
            if isLate { loop.endWork() }
        }
        return try result.get()
    }
}
