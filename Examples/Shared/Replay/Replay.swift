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
        let interval = interval.wholeNanoseconds
        if interval == 0 {
            // None is held back until the next one comes, which may take a source hours.
            while let row = try await rows() {
                guard await wait(for: Int64(min(Double(row.offset) / speed, 4e18))) else { return .stopped }
                try await body(row.value)
            }
            return Task.isCancelled ? .stopped : .atEnd
        }
        var current = try await rows()
        var following = current == nil ? nil : try await rows()
        var tick: Int64 = 0
        while let row = current {
            let due = tick * interval
            let position = Int64(min(Double(due) * speed, 4e18))
            // Rows that the tick has passed.
            if let next = following, next.offset <= position {
                current = next
                following = try await rows()
                continue
            }
            guard await wait(for: due) else { return .stopped }
            try await body(row.value)
            // A live source may fall silent; the ticks that it missed are not made up for in a burst.
            tick = elapsed / interval + 1
            if following == nil { current = nil }
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
