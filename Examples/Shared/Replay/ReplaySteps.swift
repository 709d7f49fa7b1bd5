/// Which value of a recording goes out when: pure arithmetic, no clock.
///
/// Everything is counted from the start of the replay in integers, so that neither loops nor speeds add up errors.
package struct ReplaySteps<Value: Sendable>: Sequence, IteratorProtocol, Sendable {
    package struct Step: Sendable {
        package let value: Value
        /// Place in the recording.
        package let index: Int
        /// How often the end of the recording has been passed.
        package let pass: Int
        /// Nanoseconds after the start of the replay.
        package let due: Int64
    }

    /// What an interval means.
    package enum Selection: Sendable {
        /// Every value at its own time, but none sooner than the interval after the one before: locations.
        case thinned(Duration)
        /// One value per interval, the last that was recorded by then: motions. An interval below a nanosecond is
        /// every value.
        case sampled(Duration)
    }

    let recording: Recording<Value>
    private let speed: Double
    private let selection: Selection
    private let interval: Int64
    private var isSampled: Bool { if case .sampled = selection { interval > 0 } else { false } }
    private let loops: Bool
    /// Index of the value to start with.
    private let start: Int
    private let adjust: Adjustment?
    /// Next value to look at.
    private var index: Int
    /// Recorded time at which the current pass began; the first pass may have begun before the replay.
    private var origin: Int64
    private var pass = 0
    private var tick: Int64 = 0
    private var lastDue: Int64?

    private struct Adjustment: Sendable {
        let call: @Sendable (Recording<Value>, _ index: Int) -> Value
    }

    /// - Parameters:
    ///   - start: The part of the recording that lies before the first value, 0..<1. The replay then continues at the
    ///     beginning of the recording until all of it was played once.
    ///   - adjust: Makes the value to be sent from the recording and an index; nil sends the recorded value.
    package init(
        _ recording: Recording<Value>, speed: Double, selection: Selection, loops: Bool, start: Double = 0,
        adjust: (@Sendable (Recording<Value>, _ index: Int) -> Value)? = nil
    ) {
        self.recording = recording
        self.speed = speed
        self.loops = loops
        self.start = Swift.max(0, Swift.min(recording.count - 1, Int(Double(recording.count) * start)))
        self.adjust = adjust.map(Adjustment.init)
        index = self.start
        origin = recording.isEmpty ? 0 : -recording.offsets[self.start]
        self.selection = selection
        interval =
            switch selection {
            case .thinned(let interval), .sampled(let interval): interval.wholeNanoseconds
            }
    }

    /// The same replay from another place in the recording, at a multiple of its speed.
    func moved(
        to start: Double, pace: Double, adjust: (@Sendable (Recording<Value>, _ index: Int) -> Value)?
    ) -> ReplaySteps {
        ReplaySteps(
            recording, speed: speed * pace, selection: selection, loops: loops, start: start, adjust: adjust)
    }

    /// How long the replay takes, nanoseconds; nil when it loops.
    package var duration: Int64? {
        loops ? nil : due(at: start > 0 ? recording.period : recording.length)
    }

    /// How long one pass of a loop takes, nanoseconds; nil when there is only one.
    package var lap: Int64? {
        loops ? Swift.max(1, due(at: recording.period)) : nil
    }

    package mutating func next() -> Step? {
        guard !recording.isEmpty else { return nil }
        return isSampled ? nextSample() : nextValue()
    }

    private func step(_ index: Int, due: Int64) -> Step {
        Step(
            value: adjust?.call(recording, index) ?? recording.values[index], index: index, pass: pass, due: due)
    }

    private mutating func nextValue() -> Step? {
        while true {
            if index == recording.count {
                guard startPass() else { return nil }
                index = 0
            }
            if !loops, pass > 0, index >= start { return nil }
            let due = due(at: saturating(origin, recording.offsets[index]))
            index += 1
            if let lastDue, due < saturating(lastDue, interval) { continue }
            lastDue = due
            return step(index - 1, due: due)
        }
    }

    /// False at the end: after the only pass, or when time has run out in 146 years.
    private mutating func startPass() -> Bool {
        guard loops || (start > 0 && pass == 0) else { return false }
        pass += 1
        origin = saturating(origin, recording.period)
        if loops, let lastDue {
            // Passes that end before the interval does are skipped as one: there may be millions of them.
            let wanted = Double(saturating(lastDue, interval)) * speed - Double(origin)
            let passes = Swift.max(0, (wanted / Double(recording.period)).rounded(.down) - 1)
            guard passes * Double(recording.period) < 4e18 else { return false }
            origin = saturating(origin, Int64(passes) * recording.period)
            pass += Int(passes)
        }
        return origin < Int64.max / 2
    }

    private mutating func nextSample() -> Step? {
        let (due, overflow) = tick.multipliedReportingOverflow(by: interval)
        guard !overflow else { return nil }
        // Rounded, because a product a hair below the time of a row would pick the row before it.
        let position = (Double(due) * speed).rounded()
        guard position < 4e18 else { return nil }
        tick += 1
        var place = saturating(recording.offsets[start], Int64(position))
        if loops || start > 0 {
            if !loops, Int64(position) >= recording.period { return nil }
            let current = Int(place / recording.period)
            if current != pass {
                pass = current
                index = 0
            }
            place %= recording.period
        } else if place > recording.length {
            return nil
        }
        while index + 1 < recording.count, recording.offsets[index + 1] <= place {
            index += 1
        }
        return step(index, due: due)
    }

    private func due(at recorded: Int64) -> Int64 {
        let due = (Double(recorded) / speed).rounded()
        // At the speed of recording there is nothing to round.
        return speed == 1 ? recorded : due < 4e18 ? Int64(due) : Int64.max / 2
    }

    private func saturating(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflow) = left.addingReportingOverflow(right)
        return overflow || sum > Int64.max / 2 ? Int64.max / 2 : sum
    }
}
