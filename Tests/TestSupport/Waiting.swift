/// A wait that ran out of time; says what was waited for.
public struct TimeoutError: Error, CustomStringConvertible, Sendable {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}

extension Duration {
    /// The bound on every wait of a test that is not about time: long enough for any loaded machine, so that only a test
    /// that hangs reaches it. `.ci/watched` ends such a test earlier, when no other test begins or ends meanwhile. A test that
    /// is about speed measures the time itself, or better counts something else.
    public static var patience: Duration { .seconds(1_200) }
}

/// Polls `condition` every few milliseconds until it holds.
///
/// - Returns: whether it held within `timeout`; use it as `#expect(await eventually { … })`.
public func eventually(
    timeout: Duration = .patience, every interval: Duration = .milliseconds(5), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let deadline = ContinuousClock.now + timeout
    while true {
        if try await condition() { return true }
        if ContinuousClock.now >= deadline { return false }
        // A cancelled sleep returns at once: stop rather than spin until the deadline.
        do { try await Task.sleep(for: interval) } catch { return try await condition() }
    }
}

/// Runs `operation`, cancels it when `timeout` has passed and throws `TimeoutError`.
///
/// An operation that ignores cancellation still holds the caller until it returns; to wait for a task, use its
/// `value(within:)`.
public func withTimeout<Success: Sendable>(
    _ timeout: Duration, _ what: String = "the operation", _ operation: @escaping @Sendable () async throws -> Success
) async throws -> Success {
    try await withThrowingTaskGroup(of: Success?.self) { group in
        group.addTask { try await operation() }
        group.addTask {
            try await Task.sleep(for: timeout)
            return nil
        }
        defer { group.cancelAll() }
        guard let first = try await group.next(), let result = first else {
            throw TimeoutError("\(what) did not finish within \(timeout)")
        }
        return result
    }
}

extension Task where Failure == any Error {
    /// Waits for the task; cancels it when `timeout` has passed, or the caller is cancelled.
    public func value(within timeout: Duration, _ what: String) async throws -> Success {
        try await withTimeout(timeout, what) {
            try await withTaskCancellationHandler {
                try await value
            } onCancel: {
                cancel()
            }
        }
    }
}
