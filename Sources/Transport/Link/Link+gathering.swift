import Synchronization
import Wire

/// Turning many small writes into few large ones, on the loop's thread.
extension Link where Machine: ~Copyable {
    /// Waits a moment for callers that are still publishing before the loop sends for them.
    ///
    /// The caller that wakes the loop has most likely not finished: a task that publishes in a loop, or the first of a
    /// hundred that were all resumed by one acknowledgement. As long as the outbox grows from one check to the next,
    /// waiting turns many small writes into one; a single message costs one check. Bounded in checks and in bytes.
    ///
    /// - Returns: whether callers are still publishing and no task waits for an answer.
    func gather() -> Bool {
        // No time passes between two checks.
        if loop.isManual { return false }
        var seen = 0
        for _ in 0..<16 {
            if deferredIsDue.load(ordering: .relaxed) { takeDeferred(at: loop.now) }
            let (waiting, maybeFlood) = state.withLock { state in
                (
                    state.sending || state.stream == nil ? 0 : machine.value.outputCount,
                    state.callersMaySend && !machine.value.isAwaited
                )
            }
            // One large message is no flood.
            guard waiting > seen, waiting < Self.selfSendThreshold / 2 else {
                return waiting > seen && seen > 0 && maybeFlood
            }
            seen = waiting
            // Reading the clock is the pause: yielding could lose the processor for long.
            let until = MonotonicClock.now + Flood.lookPause
            while MonotonicClock.now < until {}
        }
        return state.withLock { $0.callersMaySend && !machine.value.isAwaited }
    }

    /// Leaves the outbox to the callers: they fill it faster than the loop could check, and send by themselves whenever
    /// there is enough. The loop sends later what they leave behind.
    func watchFlood() {
        let now = loop.now
        let (level, deadline) = state.withLock { state in
            // No caller has to wake the loop until then.
            state.settleIsDue = true
            return (floodLevel(state), state.armedDeadline)
        }
        loop.setDeadline(self, to: flood.watch(at: now, level: level, deadline: deadline))
    }

    /// Whether callers are still publishing. Bytes then wait for five checks at most, and mostly for less than one.
    func callersStillSend() -> Bool {
        let now = loop.now
        // Callers do not call the loop meanwhile: what else they would call it for is looked for here.
        let (level, loopHasToLook) = state.withLock { state in
            (
                floodLevel(state),
                machine.value.wantsClose || wantsReadingPaused(state) != state.readingIsPaused
                    || machine.value.nextDeadline < state.armedDeadline || state.armedDeadline <= now
            )
        }
        guard flood.goesOn(level), !loopHasToLook else { return false }
        watchFlood()
        return true
    }
}

extension Link where Machine: ~Copyable {
    private func floodLevel(_ state: borrowing LinkState) -> Flood.Level {
        Flood.Level(bytesSent: state.traffic.bytesSent, bytesWaiting: machine.value.outputCount)
    }
}

/// The loop's watch over an outbox that callers fill and send by themselves.
struct Flood {
    struct Level {
        var bytesSent = 0
        var bytesWaiting = 0
    }

    private var lookAt = Int64.max
    private var level = Level()

    /// Nanoseconds between two checks of an outbox that grows.
    static let lookPause: Int64 = 1_500

    /// Nanoseconds after which the loop checks whether callers are still publishing: a few times as long as they need
    /// to fill what they send at once.
    static let watchPause: Int64 = 100_000

    /// The bytes that callers must add from one check to the next to count as publishing: so many that they soon send
    /// by themselves.
    static let growth = 16 * 1024

    /// Starts or continues the watch; returns when to check again, `deadline` at the latest.
    mutating func watch(at now: Int64, level: Level, deadline: Int64) -> Int64 {
        lookAt = min(deadline, now + Self.watchPause)
        self.level = level
        return lookAt
    }

    func isDue(at now: Int64) -> Bool { now >= lookAt }

    /// Whether callers have sent since the last check, or will have after a few more.
    func goesOn(_ level: Level) -> Bool {
        level.bytesSent != self.level.bytesSent || level.bytesWaiting - self.level.bytesWaiting >= Self.growth
    }

    mutating func end() { lookAt = .max }
}
