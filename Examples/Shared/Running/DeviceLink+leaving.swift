extension DeviceLink {
    /// Runs the good-bye of a device, but for two seconds at most: a broker that does not answer must not delay the end.
    package func leave(_ goodBye: @escaping @Sendable () async -> Void) async {
        let (done, continuation) = AsyncStream.makeStream(of: Void.self)
        // Not children of the task, which is cancelled already when the program was told to stop.
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
