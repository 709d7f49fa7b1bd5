import Synchronization

/// Counts what all devices of the program send and keeps the status lines up to date.
package final class ProgressMeter: Sendable {
    private struct Device {
        /// Of the replay, or of one pass of a loop, in nanoseconds; nil if it is unknown.
        var duration: Int64?
        var loops = false
        /// How far its replay is, nanoseconds.
        var position: Int64 = 0
        var isConnected = false

        var fraction: Double? {
            duration.map { $0 == 0 ? 1 : min(1, Double(place) / Double($0)) }
        }
        var place: Int64 { loops ? position % max(1, duration ?? 1) : position }
        var remaining: Int64? { duration.map { max(0, $0 - place) } }
    }

    private struct State {
        var counts: DeviceSummary
        var rate = SendRate()
        var devices: [Device]
        var start: ContinuousClock.Instant?
        var received: StyledText?
        var notice: StyledText?
    }

    /// What is sent: "fixes".
    let unit: String
    private let pinned: [[String]]
    private let console: Console
    private let clock = ContinuousClock()
    private let origin = ContinuousClock().now
    private let state: Mutex<State>

    /// - Parameters:
    ///   - isConfirmed: Whether the broker confirms what is sent, and `answered()` counts that.
    ///   - pinned: The addresses and names that stay in sight, for each line.
    package init(
        unit: String, devices: Int, isConfirmed: Bool = false, pinned: [[String]] = [], console: Console
    ) {
        self.unit = unit
        self.pinned = pinned
        self.console = console
        let counts = DeviceSummary(unconfirmed: isConfirmed ? 0 : nil)
        state = Mutex(State(counts: counts, devices: Array(repeating: Device(), count: devices)))
    }

    /// What all devices did so far.
    package var summary: DeviceSummary { state.withLock { $0.counts } }

    /// Counts something that neither `sent` nor `answered` does.
    package func count(_ change: (inout DeviceSummary) -> Void) {
        state.withLock { change(&$0.counts) }
    }

    /// The replay of a device starts; the first one starts the time.
    ///
    /// - Parameters:
    ///   - duration: Of the replay in nanoseconds, or of one pass if it `loops`; nil if it is unknown.
    package func begin(device: Int, duration: Int64?, loops: Bool = false) {
        let now = clock.now
        state.withLock { state in
            if state.start == nil { state.start = now }
            state.devices[device].duration = duration
            state.devices[device].loops = loops
        }
    }

    /// - Parameter due: Where in its replay the device is, nil when it is live.
    package func sent(device: Int, due: Int64?) {
        let now = origin.duration(to: clock.now).wholeNanoseconds
        state.withLock { state in
            state.counts.sent += 1
            if let unconfirmed = state.counts.unconfirmed { state.counts.unconfirmed = unconfirmed + 1 }
            state.rate.sent(at: now)
            if let due { state.devices[device].position = due }
        }
    }

    /// The broker has confirmed or refused one more of those sent.
    package func answered() {
        count { counts in
            if let unconfirmed = counts.unconfirmed { counts.unconfirmed = unconfirmed - 1 }
        }
    }

    /// The replay of a device has come to its end, which may be later than its last value.
    package func ended(device: Int) {
        state.withLock { state in
            if let duration = state.devices[device].duration { state.devices[device].position = duration }
        }
    }

    package func connection(of device: Int, isThere: Bool) {
        state.withLock { $0.devices[device].isConnected = isThere }
    }

    /// Keeps a text or an alert in sight while other lines push it away.
    package func received(_ text: StyledText) {
        state.withLock { $0.received = text }
    }

    /// The newest event of a connection, which takes the place of the one before and is shown while not all devices are
    /// connected.
    package func notice(_ text: StyledText) {
        state.withLock { $0.notice = text }
    }

    /// Until cancelled: redraws the status lines five times a second, or writes a line every ten seconds when piped.
    package func run() async {
        let pause: Duration = console.isTerminal ? .milliseconds(200) : .seconds(10)
        while true {
            if console.isTerminal {
                let (columns, rows) = console.size
                console.bar(block().lines(columns: columns, rows: rows))
            }
            guard (try? await clock.sleep(for: pause)) != nil else { return }
            if !console.isTerminal, let progress = current() { console.line(progress.line) }
        }
    }

    /// Takes the status lines away.
    ///
    /// - Parameter leavesLine: Whether to leave their figures as a line: where no summary says the same.
    package func finish(leavesLine: Bool) {
        console.bar([])
        if leavesLine, let progress = current() { console.line(progress.line) }
    }

    func block() -> StatusBlock {
        let status = status()
        return state.withLock {
            StatusBlock(
                pinned: pinned, figures: status, received: $0.received,
                notice: status.connected < status.devices ? $0.notice : nil)
        }
    }

    /// Nil before the first replay has started.
    func current() -> ReplayProgress? {
        let now = clock.now
        return state.withLock { progress(of: $0, at: now) }
    }

    private func progress(of state: State, at now: ContinuousClock.Instant) -> ReplayProgress? {
        guard let start = state.start else { return nil }
        var progress = ReplayProgress(unit: unit, sent: state.counts.sent, unconfirmed: state.counts.unconfirmed)
        // An answer may be counted before what it answers.
        progress.unconfirmed = progress.unconfirmed.map { max(0, $0) }
        progress.elapsed = start.duration(to: now).wholeNanoseconds
        let (fractions, remaining) = (state.devices.compactMap(\.fraction), state.devices.compactMap(\.remaining))
        if fractions.count == state.devices.count, !state.devices.contains(where: \.loops) {
            progress.fraction = fractions.reduce(0, +) / Double(max(1, fractions.count))
            progress.remaining = remaining.max()
        }
        return progress
    }

    func status() -> StatusLine {
        let now = clock.now
        let nanoseconds = origin.duration(to: now).wholeNanoseconds
        return state.withLock { state in
            var line = StatusLine(
                devices: state.devices.count, connected: state.devices.count { $0.isConnected },
                progress: progress(of: state, at: now) ?? ReplayProgress(unit: unit), rate: nil)
            line.rate = state.rate.perSecond(at: nanoseconds)
            if let first = state.devices.first, first.loops, let duration = first.duration {
                // The devices of a fleet are in different places: the run of the first one is shown.
                line.run = Int(first.position / max(1, duration)) + 1
                line.progress.fraction = first.fraction
                line.progress.remaining = first.remaining
            }
            return line
        }
    }
}

/// How many are sent per second, over the last ten seconds and steady enough to be read.
///
/// Only whole seconds count, and an even number of them, so that one per second or one every two seconds is always the
/// same; a difference of one is shown only when it lasts.
struct SendRate: Sendable {
    private static let longest: Int64 = 10
    private var start: Int64?
    /// How many were sent in each of the last seconds, by the second since the start.
    private var counts: [(second: Int64, count: Int)] = []
    private var shown: (count: Int, seconds: Int64)?
    /// A count that differs a little from the one that is shown, and the second since which it has been the same.
    private var other: (count: Int, since: Int64)?
    private static let patience: Int64 = 5

    /// - Parameter now: Nanoseconds from any zero, never less than before.
    mutating func sent(at now: Int64) {
        let start = start ?? now
        self.start = start
        let second = (now - start) / 1_000_000_000
        if counts.last?.second == second {
            counts[counts.count - 1].count += 1
        } else {
            counts.append((second, 1))
        }
        counts.removeAll { $0.second < second - Self.longest }
    }

    /// Nil in the first two seconds.
    mutating func perSecond(at now: Int64) -> Double? {
        guard let start else { return nil }
        let second = (now - start) / 1_000_000_000
        let length = min(Self.longest, second / 2 * 2)
        guard length > 0 else { return nil }
        let count = counts.reduce(0) { $0 + ((second - length..<second).contains($1.second) ? $1.count : 0) }
        if let shown, shown.seconds == length, count > 0, abs(count - shown.count) <= max(1, shown.count / 20) {
            if other?.count != count { other = (count, second) }
            guard let other, second - other.since >= Self.patience else { return Double(shown.count) / Double(length) }
        }
        shown = (count, length)
        return Double(count) / Double(length)
    }
}
