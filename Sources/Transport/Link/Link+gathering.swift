import Synchronization

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
                    state.sending || state.stream == nil ? 0 : state.machine.output.count,
                    state.callersMaySend && !state.machine.isAwaited
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
        return state.withLock { $0.callersMaySend && !$0.machine.isAwaited }
    }

    /// Leaves the outbox to the callers: they fill it faster than the loop could look, and send by themselves whenever
    /// there is enough. The loop comes back for what they leave behind.
    func watchFlood() {
        let now = MonotonicClock.now
        let (bytesSent, deadline) = state.withLock { state in
            // Nobody has to call the loop until then.
            state.settleIsDue = true
            return (state.traffic.bytesSent, state.armedDeadline)
        }
        loop.setDeadline(self, to: flood.watch(at: now, bytesSent: bytesSent, deadline: deadline))
    }

    /// Whether callers have sent since the last look; then the oldest byte that waits is younger than that look.
    func callersStillSend() -> Bool {
        let now = MonotonicClock.now
        // Callers do not call the loop meanwhile: what else they would call it for is looked for here.
        let (bytesSent, loopHasToLook) = state.withLock { state in
            (
                state.traffic.bytesSent,
                state.machine.wantsClose || state.wantsReadingPaused != state.readingIsPaused
                    || state.machine.nextDeadline < state.armedDeadline || state.armedDeadline <= now
            )
        }
        guard flood.hasMoved(bytesSent), !loopHasToLook else { return false }
        watchFlood()
        return true
    }
}

/// The loop's watch over an outbox that callers fill and send by themselves.
struct Flood {
    private var lookAt = Int64.max
    private var bytesSent = 0

    /// Nanoseconds between two looks of the loop at an outbox that grows.
    static let lookPause: Int64 = 1_500

    /// Nanoseconds after which the loop looks whether callers are still at it: a few times as long as they need to
    /// fill what they send at once.
    static let watchPause: Int64 = 100_000

    /// Starts or goes on; returns when to look again, `deadline` at the latest.
    mutating func watch(at now: Int64, bytesSent: Int, deadline: Int64) -> Int64 {
        lookAt = min(deadline, now + Self.watchPause)
        self.bytesSent = bytesSent
        return lookAt
    }

    func isDue(at now: Int64) -> Bool { now >= lookAt }
    func hasMoved(_ bytesSent: Int) -> Bool { bytesSent != self.bytesSent }
    mutating func end() { lookAt = .max }
}
