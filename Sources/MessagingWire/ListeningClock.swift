/// A clock that runs while an answer of the peer would be noticed: it stands still while the caller does not read, and while the
/// system sleeps.
///
/// Answers are awaited by the times of this clock, so that neither a pause nor a sleep uses up anybody's patience. Its times
/// are moments of the caller's clock less what did not count.
package struct ListeningClock: Sendable {
    /// How much time of the caller's clock did not count, in nanoseconds.
    private var lag: Int64 = 0
    /// Since which moment of the caller's clock this one stands still; `Int64.max` while it runs.
    private var stoppedAt = Int64.max
    /// The time of this clock from which on all answers are awaited anew.
    private var start = Int64.min
    /// When the peer last gave a sign of life, or all answers were awaited anew: a time of this clock.
    package private(set) var lastSign: Int64 = 0

    package init() {}

    package var isRunning: Bool { stoppedAt == .max }

    /// The time of this clock at a moment of the caller's.
    @inline(__always)
    package func time(at now: Int64) -> Int64 { min(now, stoppedAt) &- lag }

    /// When this clock will show a time; `Int64.max` for never, as while it stands still.
    @inline(__always)
    package func moment(of time: Int64) -> Int64 {
        isRunning && time != .max ? time.advanced(byNanoseconds: lag) : .max
    }

    /// The moment at which an answer is late that is awaited until a time of this clock, and for so long at least if it is awaited
    /// anew.
    package func moment(of time: Int64, patience: Int64) -> Int64 {
        time == .max ? .max : moment(of: max(time, start.advanced(byNanoseconds: patience)))
    }

    /// The time at which an answer is late that was asked for at `time`.
    package func end(of patience: Int64, since time: Int64) -> Int64 {
        max(time, start).advanced(byNanoseconds: patience)
    }

    package mutating func setRunning(_ runs: Bool, at now: Int64) {
        guard runs != isRunning else { return }
        if runs { lag += max(0, now - stoppedAt) }
        stoppedAt = runs ? .max : now
    }

    /// The system slept from `start` until now. What was done between the wake and this call has times in the future of this
    /// clock then; returns the present one, which they should not exceed.
    package mutating func slept(since start: Int64, at now: Int64) -> Int64 {
        lag += max(0, min(now, stoppedAt) - start)
        limitSign(to: time(at: now))
        return time(at: now)
    }

    // MARK: Signs of life

    package mutating func noteSign(at now: Int64) { lastSign = max(lastSign, time(at: now)) }

    /// What was noticed after `time` proves nothing, or lies in the future.
    package mutating func limitSign(to time: Int64) { lastSign = min(lastSign, time) }

    /// Whether the peer has given a sign of life since all answers were last awaited anew.
    package var hasSign: Bool { lastSign > start }

    /// For how long the peer has given no sign of life.
    package func silence(at now: Int64) -> Int64 { time(at: now) - lastSign }

    /// All answers are awaited anew, each for its whole time, as after a sign of life.
    package mutating func beginAnew(at now: Int64) {
        start = time(at: now)
        lastSign = start
    }
}
