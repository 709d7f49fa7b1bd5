package import Transport

/// Waits for closures of the application until a deadline at most: they may take any time, and may ignore the cancellation
/// of their task.
package enum TimedCall {
    /// Runs `body` in a task of its own, which is cancelled at the deadline and with the caller's task.
    ///
    /// - Throws: what `body` throws; `late` at the deadline; `CancellationError` when the caller was cancelled.
    package static func run<Value: Sendable>(
        until deadline: Int64, on loop: EventLoop, late: any Error,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        // Nil at the deadline.
        let call = PendingCall<Result<Value, any Error>?>()
        let alarm = LoopAlarm(loop: loop) { [loop] _ in
            // `body` may have slept on a manual clock, which is no work; from now on there is some.
            if call.end(nil) { loop.beginWork() }
        }
        loop.execute { alarm.set(deadline) }
        let task = Task {
            let result: Result<Value, any Error>
            do { result = .success(try await body()) } catch { result = .failure(error) }
            call.end(result)
        }
        let result = await call.answer {
        } onCancel: {
            call.end(.failure(CancellationError()))
        }
        task.cancel()
        let isLate = result == nil
        loop.execute { [loop] in
            alarm.set(.max)
            if isLate { loop.endWork() }
        }
        guard let result else { throw late }
        return try result.get()
    }
}
