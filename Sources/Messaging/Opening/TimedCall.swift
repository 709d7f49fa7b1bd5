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
        let call = PendingCall<Result<Value, any Error>>()
        let alarm = LoopAlarm(loop: loop) { _ in call.end(.failure(late)) }
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
        loop.execute { alarm.set(.max) }
        return try result.get()
    }
}
