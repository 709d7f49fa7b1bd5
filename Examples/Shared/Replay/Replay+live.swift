extension Replay {
    /// Passes on the values of a live source as they are read: recorded times do not pace them.
    ///
    /// - Parameters:
    ///   - interval: At most one value goes out per interval, the newest; one below a nanosecond passes on every
    ///     value. The last value before the end of the source always goes out.
    ///   - isWanted: Called for each value when it is read; false skips it.
    package func play<Value>(
        _ source: LiveSource<Value>, interval: Duration, isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ body: (Value) async throws -> Void
    ) async throws -> Ending {
        let first: () async throws -> Value? = {
            while let value = try await source.next() {
                if isWanted(value) { return value }
            }
            return nil
        }
        if interval.wholeNanoseconds == 0 {
            while let value = try await first() { try await body(value) }
            return Task.isCancelled ? .stopped : .atEnd
        }
        guard let value = try await first() else { return Task.isCancelled ? .stopped : .atEnd }
        try await body(value)
        // The others are read while the interval lasts, so that the source is never held up.
        let newest = NewestValue<Value>()
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                do throws(DeviceFailure) {
                    while let value = try await source.next() {
                        if isWanted(value) { newest.put(value) }
                    }
                    newest.finish()
                } catch {
                    newest.finish(error)
                }
            }
            defer { group.cancelAll() }
            var due = elapsed + interval.wholeNanoseconds
            while try await newest.arrives() {
                guard await wait(for: due), let value = newest.take() else { break }
                try await body(value)
                due = elapsed + interval.wholeNanoseconds
            }
            return Task.isCancelled ? .stopped : .atEnd
        }
    }
}
