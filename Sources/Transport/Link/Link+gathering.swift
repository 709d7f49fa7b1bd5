import Synchronization
import Wire

/// Turning many small writes into few large ones, on the loop's thread.
extension Link where Machine: ~Copyable {
    /// Lets callers that are at it go on for a moment before the loop sends for them.
    ///
    /// Whoever wakes the loop has most likely not finished: a task that publishes in a loop, or the first of a hundred
    /// that were all resumed by one acknowledgement. As long as the outbox grows from one look to the next, waiting
    /// turns many small writes into one; a single message costs one look. Bounded in looks and in bytes.
    ///
    /// - Returns: whether callers are still at it and nobody waits for an answer.
    func gather() -> Bool {
        var seen = 0
        for _ in 0..<16 {
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
            // Reading the clock is the pause: yielding would hand the processor to whoever wants it for long.
            let until = MonotonicClock.now + Flood.lookPause
            while MonotonicClock.now < until {}
        }
        return state.withLock { $0.callersMaySend && !machine.value.isAwaited }
    }

    /// Leaves the outbox to the callers: they fill it faster than the loop could look, and send by themselves whenever
    /// there is enough. The loop comes back for what they leave behind.
    func watchFlood() {
        let now = MonotonicClock.now
        let (level, deadline) = state.withLock { state in
            // Nobody has to call the loop until then.
            state.settleIsDue = true
            return (floodLevel(state), state.armedDeadline)
        }
        loop.setDeadline(self, to: flood.watch(at: now, level: level, deadline: deadline))
    }

    /// Whether callers are still at it. What waits has then waited for five looks at most, and mostly not for one.
    func callersStillSend() -> Bool {
        let now = MonotonicClock.now
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

    /// Nanoseconds between two looks of the loop at an outbox that grows.
    static let lookPause: Int64 = 1_500

    /// Nanoseconds after which the loop looks whether callers are still at it: a few times as long as they need to
    /// fill what they send at once.
    static let watchPause: Int64 = 100_000

    /// What callers add from one look to the next, at least, to be at it: so much that they soon send by themselves.
    static let growth = 16 * 1024

    /// Starts or goes on; returns when to look again, `deadline` at the latest.
    mutating func watch(at now: Int64, level: Level, deadline: Int64) -> Int64 {
        lookAt = min(deadline, now + Self.watchPause)
        self.level = level
        return lookAt
    }

    func isDue(at now: Int64) -> Bool { now >= lookAt }

    /// Whether callers have sent since the last look, or will have after a few more.
    func goesOn(_ level: Level) -> Bool {
        level.bytesSent != self.level.bytesSent || level.bytesWaiting - self.level.bytesWaiting >= Self.growth
    }

    mutating func end() { lookAt = .max }
}
