import Testing

/// Runs the body of a test, records an issue when it takes longer than this, and cancels its task.
///
/// The issue names a test that hangs, which otherwise nobody would see in what remains of a test run that was killed.
func limited(
    to limit: Duration, _ what: String, _ body: @concurrent @Sendable () async throws -> Void
) async throws {
    // The watch ends before this function does, so that the task which it cancels exists.
    nonisolated(unsafe) let current = withUnsafeCurrentTask { $0 }
    let watch = Task {
        guard (try? await Task.sleep(for: limit)) != nil else { return }
        Issue.record("The test took longer than \(limit) \(what).")
        current?.cancel()
    }
    let result: Result<Void, any Error>
    do { result = .success(try await body()) } catch { result = .failure(error) }
    watch.cancel()
    await watch.value
    try result.get()
}
