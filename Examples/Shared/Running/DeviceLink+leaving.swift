extension DeviceLink {
    /// Runs `goodBye` for two seconds at most, so that a broker that does not answer cannot delay the end.
    package func leave(_ goodBye: @escaping @Sendable () async -> Void) async {
        let (done, continuation) = AsyncStream.makeStream(of: Void.self)
        // Unstructured, because this task is already cancelled when the program is to stop.
        let leaving = Task {
            await goodBye()
            continuation.finish()
        }
        let limit = Task {
            try? await Task.sleep(for: .seconds(2))
            continuation.finish()
        }
        await Task { for await _ in done {} }.value
        leaving.cancel()
        limit.cancel()
    }
}
