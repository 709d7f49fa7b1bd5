/// Which value of a recording goes out when: pure arithmetic, no clock.
///
/// Everything is counted from the start of the replay in integers, so that neither loops nor speeds add up errors.
package struct ReplaySteps<Value: Sendable>: Sequence, IteratorProtocol, Sendable {
    package struct Step: Sendable {
        package let value: Value
        /// Place in the recording.
        package let index: Int
        /// Nanoseconds after the start of the replay.
        package let due: Int64
    }

    /// What an interval means.
    package enum Selection: Sendable {
        /// Every value at its own time, but none sooner than the interval after the one before: locations.
        case thinned(Duration)
        /// One value per interval, the last that was recorded by then: motions. An interval of 0 is every value.
        case sampled(Duration)
    }

    private let recording: Recording<Value>
    private let speed: Double
    private let interval: Int64
    private let isSampled: Bool
    private let loops: Bool
    /// Next value to look at.
    private var index = 0
    /// Recorded time at which the current pass began.
    private var origin: Int64 = 0
    private var tick: Int64 = 0
    private var lastDue: Int64?

    package init(_ recording: Recording<Value>, speed: Double, selection: Selection, loops: Bool) {
        self.recording = recording
        self.speed = speed
        self.loops = loops
        switch selection {
        case .thinned(let interval):
            self.interval = interval.wholeNanoseconds
            isSampled = false
        case .sampled(let interval):
            self.interval = interval.wholeNanoseconds
            isSampled = interval > .zero
        }
    }

    /// How long the replay takes, nanoseconds; nil when it loops.
    package var duration: Int64? {
        loops ? nil : due(at: recording.length)
    }

    package mutating func next() -> Step? {
        guard !recording.isEmpty else { return nil }
        return isSampled ? nextSample() : nextValue()
    }

    private mutating func nextValue() -> Step? {
        while true {
            if index == recording.count {
                guard loops else { return nil }
                index = 0
                guard startPass() else { return nil }
            }
            let due = due(at: saturating(origin, recording.offsets[index]))
            index += 1
            if let lastDue, due < saturating(lastDue, interval) { continue }
            lastDue = due
            return Step(value: recording.values[index - 1], index: index - 1, due: due)
        }
    }

    /// False when time has run out, in 146 years.
    private mutating func startPass() -> Bool {
        origin = saturating(origin, recording.period)
        if let lastDue {
            // Passes that end before the interval does are skipped as one: there may be millions of them.
            let wanted = Double(saturating(lastDue, interval)) * speed - Double(origin)
            let passes = Swift.max(0, (wanted / Double(recording.period)).rounded(.down) - 1)
            guard passes * Double(recording.period) < 4e18 else { return false }
            origin = saturating(origin, Int64(passes) * recording.period)
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
        var place = Int64(position)
        if loops {
            let pass = place / recording.period * recording.period
            if pass != origin {
                origin = pass
                index = 0
            }
            place -= origin
        } else if place > recording.length {
            return nil
        }
        while index + 1 < recording.count, recording.offsets[index + 1] <= place {
            index += 1
        }
        return Step(value: recording.values[index], index: index, due: due)
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
