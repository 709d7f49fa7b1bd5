/// Values and when each is due, counted from the first. 8 bytes per row beside the value itself.
package struct Recording<Value: Sendable>: Sendable {
    /// What to call it in messages.
    package let name: String
    package internal(set) var values: [Value] = []
    /// Nanoseconds since the first value; never decreasing.
    package private(set) var offsets: [Int64] = []
    /// Nanoseconds between values that have no time.
    package let step: Int64
    /// A line for the user about what was left out of the file.
    var leftOut: String?
    /// Where it was recorded, as the recording itself says; nil if it does not.
    package var place: String?
    private var timeline: Timeline

    package init(name: String, step: Duration) {
        self.init(name: name, step: step.wholeNanoseconds)
    }

    init(name: String, step: Int64) {
        self.name = name
        self.step = step
        timeline = Timeline(step: step)
    }

    /// - Parameter time: When it was recorded, in nanoseconds from any zero; nil if that is unknown.
    package mutating func append(_ value: Value, recordedAt time: Int64?) {
        values.append(value)
        offsets.append(timeline.offset(of: time))
    }

    /// A line for the user about what was left out, and about pauses that are not waited for; nil if there is none.
    package var note: String? {
        var notes = leftOut.map { [$0] } ?? []
        if timeline.hasLongGap {
            let pause = step % 1_000_000_000 == 0 ? "\(step / 1_000_000_000) s" : "\(step / 1_000_000) ms"
            notes.append("A gap of more than a year between two recorded times is replayed as \(pause).")
        }
        return notes.isEmpty ? nil : notes.joined(separator: " ")
    }

    package var count: Int { values.count }
    package var isEmpty: Bool { values.isEmpty }

    /// From the first value to the last, nanoseconds.
    package var length: Int64 { offsets.last ?? 0 }

    /// From one start to the next in a loop: the length and one gap of the usual size. Never 0.
    package var period: Int64 {
        guard count > 1, length > 0 else { return timeline.step }
        return length + max(1, length / Int64(count - 1))
    }
}

/// Turns recorded times into offsets from the start.
struct Timeline: Sendable {
    /// Between rows of which one has no time.
    let step: Int64
    /// The recorded time that offset 0 stands for.
    private var zero: Int64?
    private var lastTime: Int64 = 0
    private var lastOffset: Int64 = 0
    private var isFirst = true
    /// Whether there was a gap of more than a year: two tracks in one file, or a clock that was set.
    private(set) var hasLongGap = false
    /// A year, in nanoseconds.
    static let longestGap: Int64 = 366 * 86_400 * 1_000_000_000

    init(step: Int64) {
        self.step = step
    }

    mutating func offset(of time: Int64?) -> Int64 {
        // The first row is at 0. A clock that runs backwards (a corrected clock, tracks out of order in one file)
        // starts a new count one step later, instead of a burst of rows that are all late.
        let next = isFirst ? 0 : min(lastOffset + step, Self.limit)
        isFirst = false
        var offset = next
        if let time {
            let (gap, isHuge) = time.subtractingReportingOverflow(lastTime)
            let isLong = zero != nil && time > lastTime && (isHuge || gap > Self.longestGap)
            if isLong { hasLongGap = true }
            if zero == nil || time < lastTime || isLong { zero = time - next }
            lastTime = time
            let (difference, overflow) = time.subtractingReportingOverflow(zero ?? 0)
            offset = overflow ? Self.limit : min(difference, Self.limit)
        }
        lastOffset = max(lastOffset, offset)
        return lastOffset
    }

    /// 73 years: a sum of two still fits.
    private static let limit: Int64 = 1 << 61
}

extension Duration {
    /// Nanoseconds, at most 2⁶² of them (146 years) either way.
    package var wholeNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        guard abs(seconds) < 1 << 32 else { return seconds < 0 ? -(1 << 62) : 1 << 62 }
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}

extension Recording where Value == Fix {
    /// The same recording with a time for each fix, if any has one: the time of the last fix before it that has one, and
    /// the recorded offset from there.
    package func withTimes() -> Recording {
        guard var known = values.firstIndex(where: { $0.time != nil }) else { return self }
        var result = self
        for index in values.indices {
            guard var time = values[known].time, values[index].time == nil else {
                known = index
                continue
            }
            time.nanoseconds += offsets[index] - offsets[known]
            result.values[index].time = time
        }
        // Recorded times may be closer together than a step: none in between is later than the next recorded one.
        var next: Timestamp?
        for index in values.indices.reversed() {
            if let time = values[index].time {
                next = time
            } else if let next, let time = result.values[index].time, time.nanoseconds > next.nanoseconds {
                result.values[index].time = next
            }
        }
        return result
    }
}
