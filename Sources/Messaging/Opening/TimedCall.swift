import Synchronization
package import Transport

/// Runs a closure of the application's and waits for it no longer than until a deadline: the closure may take any time,
/// and nothing makes it heed the cancellation of its task.
package final class TimedCall<Value: Sendable>: Sendable {
    private enum State {
        case idle
        case waiting(UnsafeContinuation<Result<Value, any Error>, Never>, Task<Void, Never>)
        case ended(Result<Value, any Error>)
    }

    private let state = Mutex(State.idle)

    private init() {}

    /// Runs `body` in a task of its own, which is cancelled at the deadline and with the caller's task.
    ///
    /// - Throws: what `body` throws; `late` at the deadline; `CancellationError` when the caller was cancelled.
    package static func run(
        until deadline: Int64, on loop: EventLoop, late: any Error,
        _ body: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        let call = TimedCall()
        let alarm = LoopAlarm(loop: loop) { _ in call.end(.failure(late)) }
        loop.execute { alarm.set(deadline) }
        defer { loop.execute { alarm.set(.max) } }
        let result = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let task = Task {
                    let result: Result<Value, any Error>
                    do { result = .success(try await body()) } catch { result = .failure(error) }
                    call.end(result)
                }
                call.begin(continuation, task)
            }
        } onCancel: {
            call.end(.failure(CancellationError()))
        }
        return try result.get()
    }

    private func begin(_ continuation: UnsafeContinuation<Result<Value, any Error>, Never>, _ task: Task<Void, Never>) {
        let early = state.withLock { state -> Result<Value, any Error>? in
            if case .ended(let result) = state { return result }
            state = .waiting(continuation, task)
            return nil
        }
        guard let early else { return }
        task.cancel()
        continuation.resume(returning: early)
    }

    /// The first end counts.
    private func end(_ result: Result<Value, any Error>) {
        let waiting = state.withLock {
            state -> (UnsafeContinuation<Result<Value, any Error>, Never>, Task<Void, Never>)? in
            defer { if case .ended = state {} else { state = .ended(result) } }
            if case .waiting(let continuation, let task) = state { return (continuation, task) }
            return nil
        }
        guard let (continuation, task) = waiting else { return }
        task.cancel()
        continuation.resume(returning: result)
    }
}
