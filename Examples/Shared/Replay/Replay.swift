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

    /// One value per interval out of rows that come one by one, the last that was recorded by then; an interval of 0
    /// is every row. Rows wait until they are due, and rows that come late (a live source) go when they come.
    package func play<Value>(
        live rows: () async throws -> LiveSource<Value>.Row?, speed: Double, interval: Duration,
        _ body: (Value) async throws -> Void
    ) async throws -> Ending {
        var current = try await rows()
        var following = current == nil ? nil : try await rows()
        let interval = interval.wholeNanoseconds
        var tick: Int64 = 0
        while let row = current {
            let due = interval > 0 ? tick * interval : Int64(min(Double(row.offset) / speed, 4e18))
            let position = interval > 0 ? Int64(min(Double(due) * speed, 4e18)) : row.offset
            // Rows that the tick has passed; with every row wanted, there is none.
            if interval > 0, let next = following, next.offset <= position {
                current = next
                following = try await rows()
                continue
            }
            guard await wait(for: due) else { return .stopped }
            try await body(row.value)
            // A live source may fall silent; the ticks that it missed are not made up for in a burst.
            tick = interval > 0 ? elapsed / interval + 1 : 0
            if interval == 0 || following == nil {
                current = following
                following = current == nil ? nil : try await rows()
            }
        }
        return Task.isCancelled ? .stopped : .atEnd
    }

    /// False when the task was cancelled before the time came.
    private func wait(for due: Int64) async -> Bool {
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
