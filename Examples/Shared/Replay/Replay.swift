/// Plays steps on a clock.
package struct Replay<ReplayClock: Clock>: Sendable where ReplayClock.Duration == Duration {
    package enum Ending: Sendable, Equatable {
        case atEnd
        case stopped
    }

    private let clock: ReplayClock
    package let time: ReplayTime<ReplayClock.Instant>

    /// The replay starts now.
    package init(clock: ReplayClock) {
        self.clock = clock
        time = ReplayTime(start: clock.now)
    }

    package func pause() { time.pause(at: clock.now) }
    package func resume() { time.resume(at: clock.now) }
    package var elapsed: Int64 { time.elapsed(at: clock.now) }

    /// Calls `body` for each step when it is due; one that is late goes at once. Cancelling the task stops it.
    package func play<Value>(
        _ steps: ReplaySteps<Value>, _ body: (ReplaySteps<Value>.Step) async throws -> Void
    ) async throws -> Ending {
        for step in steps {
            guard await wait(for: step.due) else { return .stopped }
            try await body(step)
        }
        return Task.isCancelled ? .stopped : .atEnd
    }

    /// False when the task was cancelled before the time came.
    func wait(for due: Int64) async -> Bool {
        while !Task.isCancelled {
            await time.untilResumed()
            let deadline = time.deadline(due)
            guard clock.now < deadline else {
                // A replay that is late or very fast must still let others run and notice that it is stopped.
                await Task.yield()
                return !Task.isCancelled
            }
            // A pause meanwhile has moved the deadline, so it is looked at again.
            try? await clock.sleep(until: deadline, tolerance: nil)
        }
        return false
    }
}
