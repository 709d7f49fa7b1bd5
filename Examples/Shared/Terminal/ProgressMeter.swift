import Synchronization

/// Counts what all devices of the program send and keeps the bar up to date.
package final class ProgressMeter: Sendable {
    private struct State {
        var sent = 0
        var confirmed = 0
        /// How far each device's replay is, nanoseconds.
        var positions: [Int64]
        var start: ContinuousClock.Instant?
    }

    private let unit: String
    private let duration: Int64?
    private let isConfirmed: Bool
    private let console: Console
    private let clock = ContinuousClock()
    private let state: Mutex<State>

    /// - Parameters:
    ///   - duration: Of one device's replay, nil if it is unknown.
    ///   - isConfirmed: Whether the broker confirms what is sent, and `confirmed()` counts that.
    package init(unit: String, duration: Int64?, devices: Int, isConfirmed: Bool = false, console: Console) {
        self.unit = unit
        self.duration = duration
        self.isConfirmed = isConfirmed
        self.console = console
        state = Mutex(State(positions: Array(repeating: 0, count: devices)))
    }

    /// The replay of a device starts; the first one starts the time.
    package func begin() {
        let now = clock.now
        state.withLock { state in
            if state.start == nil { state.start = now }
        }
    }

    /// - Parameter due: Where in its replay the device is, nil when it is live.
    package func sent(device: Int, due: Int64?) {
        state.withLock { state in
            state.sent += 1
            if let due { state.positions[device] = due }
        }
    }

    /// The broker has confirmed one more of those sent.
    package func confirmed() {
        state.withLock { $0.confirmed += 1 }
    }

    /// Until cancelled: redraws the bar five times a second, or writes a line every ten seconds when piped.
    package func run() async {
        let pause: Duration = console.isTerminal ? .milliseconds(200) : .seconds(10)
        while (try? await clock.sleep(for: pause)) != nil {
            guard let progress = current() else { continue }
            if console.isTerminal {
                console.bar(progress.bar(width: console.width))
            } else {
                console.line(progress.line)
            }
        }
    }

    /// The last word: the bar goes and its figures stay, as a line.
    package func finish() {
        console.bar("")
        if let progress = current() { console.line(progress.line) }
    }

    func current() -> ReplayProgress? {
        let now = clock.now
        return state.withLock { state -> ReplayProgress? in
            guard let start = state.start else { return nil }
            var progress = ReplayProgress(unit: unit, sent: state.sent)
            if isConfirmed { progress.unconfirmed = max(0, state.sent - state.confirmed) }
            progress.elapsed = start.duration(to: now).wholeNanoseconds
            if let duration {
                let slowest = state.positions.min() ?? 0
                progress.remaining = max(0, duration - slowest)
                let mean = state.positions.map(Double.init).reduce(0, +) / Double(max(1, state.positions.count))
                progress.fraction = duration == 0 ? 1 : min(1, mean / Double(duration))
            }
            return progress
        }
    }
}
