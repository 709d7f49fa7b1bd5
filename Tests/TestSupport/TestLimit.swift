import Foundation
import Testing

/// Runs the body of a test, records an issue when it takes longer than this, and cancels its task.
///
/// The issue names a test that hangs, which otherwise nobody would see in what remains of a test run that was killed.
func limited(
    to limit: Duration, _ what: String, _ test: Test, _ body: @concurrent @Sendable () async throws -> Void
) async throws {
    let running = RunningTask(withUnsafeCurrentTask { $0 })
    AtWork.note("begin", "\(test.id)")
    let watch = Task {
        guard (try? await Task.sleep(for: limit)) != nil else { return }
        Issue.record("The test took longer than \(limit) \(what).")
        running.cancel()
    }
    // Without waiting for the watch: on the thread of heavy tests that would let all others go first.
    defer {
        AtWork.note("end", "\(test.id)")
        running.end()
        watch.cancel()
    }
    try await body()
}

/// The task of a test while it runs.
private final class RunningTask: @unchecked Sendable {
    // Sendable because the task is used with `lock` held only. It exists until `end` is called, within its own body.
    private let lock = NSLock()
    private var task: UnsafeCurrentTask?

    init(_ task: UnsafeCurrentTask?) { self.task = task }

    func cancel() { lock.withLock { task?.cancel() } }
    func end() { lock.withLock { task = nil } }
}
