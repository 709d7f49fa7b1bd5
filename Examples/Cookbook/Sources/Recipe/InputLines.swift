import Dispatch
import Synchronization

/// The lines of standard input, each read when it is asked for, without holding up other tasks.
public func inputLines() -> AsyncStream<String> {
    AsyncStream { await reading { readLine() } }
}

/// Calls a function that may block on a thread of its own. Nil if the task is cancelled before it returns.
public func reading<Result: Sendable>(_ body: @escaping @Sendable () -> Result?) async -> Result? {
    let waiting = Mutex<CheckedContinuation<Result?, Never>?>(nil)
    @Sendable func resume(returning result: Result?) { waiting.withLock { $0.take() }?.resume(returning: result) }
    return await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
            waiting.withLock { $0 = continuation }
            if Task.isCancelled { return resume(returning: nil) }
            DispatchQueue(label: "reading").async { resume(returning: body()) }
        }
    } onCancel: {
        resume(returning: nil)
    }
}
