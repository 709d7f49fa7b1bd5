/// Plays values on a clock that can be stopped and set going again.
///
/// A deadline is the start plus what is due plus all pauses so far: computed anew each time and never added up from
/// sleeps, so that a late wake-up delays one step and not the rest.
package final class Replay<ReplayClock: Clock>: Sendable where ReplayClock.Duration == Duration {
    package enum Ending: Sendable, Equatable {
        case atEnd
        case stopped
    }

    private struct Pauses: Sendable {
        /// Of those that are over.
        var length: Duration = .zero
        /// When the present one began.
        var since: ReplayClock.Instant?
    }

    private let clock: ReplayClock
    private let start: ReplayClock.Instant
    private let pauses = Watched(Pauses())

    /// The replay starts now.
    package init(clock: ReplayClock) {
        self.clock = clock
        start = clock.now
    }

    // MARK: Time

    /// Nanoseconds of replay so far, without the pauses.
    package var elapsed: Int64 {
        let pauses = pauses.value
        return (start.duration(to: pauses.since ?? clock.now) - pauses.length).wholeNanoseconds
    }

    /// Nothing becomes due from here on; repeated calls are harmless.
    package func pause() {
        pauses.change { $0.since = $0.since ?? clock.now }
    }

    package func resume() {
        pauses.change { pauses in
            guard let since = pauses.since else { return }
            pauses = Pauses(length: pauses.length + since.duration(to: clock.now))
        }
    }

    /// Returns at once unless paused, and when the task is cancelled.
    package func untilResumed() async {
        await pauses.wait { $0.since == nil }
    }

    /// False when the task was cancelled before the time came.
    private func wait(for due: Int64) async -> Bool {
        while !Task.isCancelled {
            await untilResumed()
            let deadline = start.advanced(by: .nanoseconds(due) + pauses.value.length)
            guard clock.now < deadline else {
                // A replay that is late or very fast must still let others run and notice that it is stopped.
                await Task.yield()
                return !Task.isCancelled
            }
            // A pause meanwhile has moved the deadline, so it is computed again.
            try? await clock.sleep(until: deadline, tolerance: nil)
        }
        return false
    }

    private var ending: Ending { Task.isCancelled ? .stopped : .atEnd }

    // MARK: Playing

    /// Plays the source, whichever kind it is.
    ///
    /// - Parameters:
    ///   - interval: Of live values; the steps of a recording have theirs.
    ///   - isWanted: Called for each live value when it is read; false skips it.
    ///   - body: Gets each value when it is due, with its step unless it is live.
    package func play<Value>(
        _ source: ReplaySource<Value>, interval: Duration,
        isWanted: @escaping @Sendable (Value) -> Bool = { _ in true },
        _ body: (Value, ReplaySteps<Value>.Step?) async throws -> Void
    ) async throws -> Ending {
        switch source {
        case .recorded(let steps): try await play(steps) { try await body($0.value, $0) }
        case .live(let values):
            try await play(values, interval: interval, isWanted: isWanted) { try await body($0, nil) }
        }
    }

    /// Calls `body` for each step when it is due; one that is late goes at once. Cancelling the task stops it.
    package func play<Value>(
        _ steps: ReplaySteps<Value>, _ body: (ReplaySteps<Value>.Step) async throws -> Void
    ) async throws -> Ending {
        for step in steps {
            guard await wait(for: step.due) else { return .stopped }
            try await body(step)
        }
        return ending
    }

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
        let next: @Sendable () async throws -> Value? = {
            while let value = try await source.next() {
                if isWanted(value) { return value }
            }
            return nil
        }
        if interval.wholeNanoseconds == 0 {
            while let value = try await next() { try await body(value) }
        } else if let first = try await next() {
            try await body(first)
            try await playNewest(interval: interval.wholeNanoseconds, next, body)
        }
        return ending
    }

    /// The values after the first. They are read while the interval lasts, so that the source is never held up.
    private func playNewest<Value: Sendable>(
        interval: Int64, _ next: @escaping @Sendable () async throws -> Value?, _ body: (Value) async throws -> Void
    ) async throws {
        let newest = Watched(NewestValue<Value>())
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { newest.change { $0.isLast = true } }
                while let value = try await next() { newest.value.value = value }
            }
            var due = elapsed + interval
            while await newest.first({ $0.value != nil ? true : $0.isLast ? false : nil }) == true,
                await wait(for: due), let value = newest.change({ $0.value.take() })
            {
                try await body(value)
                due = elapsed + interval
            }
            // Throws what ended the source.
            try await group.waitForAll()
        }
    }
}

private struct NewestValue<Value: Sendable>: Sendable {
    var value: Value?
    var isLast = false
}
