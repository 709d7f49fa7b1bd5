/// What was left out of a file that is read all the same.
struct LeftOut: Sendable {
    enum Kind: Sendable, CaseIterable {
        case point
        case time
        case markup
        case rest
    }

    /// What the file consists of.
    private let unit: String
    private var entries: [Kind: (count: Int, line: Int, problem: String)] = [:]

    init(unit: String) {
        self.unit = unit
    }

    mutating func add(_ kind: Kind, _ problem: String, line: Int) {
        if entries[kind] == nil { entries[kind] = (0, line, problem) }
        entries[kind]?.count += 1
    }

    /// The first mistake: `line 4: the latitude 'x' is not a number`.
    var first: String? {
        entries.values.min { $0.line < $1.line }.map { "line \($0.line): \($0.problem)" }
    }

    func problem(_ kind: Kind) -> String? { entries[kind].map { "line \($0.line): \($0.problem)" } }

    /// How much it is.
    var count: Int { entries.values.reduce(0) { $0 + $1.count } }

    func count(_ kind: Kind) -> Int { entries[kind]?.count ?? 0 }

    mutating func merge(_ other: LeftOut) {
        entries.merge(other.entries) { one, other in
            let first = one.line <= other.line ? one : other
            return (one.count + other.count, first.line, first.problem)
        }
    }

    /// A line for the user; nil if nothing was left out.
    var note: String? {
        let texts = Kind.allCases.compactMap { kind in
            entries[kind].map { entry in
                let (one, many) =
                    switch kind {
                    case .point: (unit, unit + "s")
                    case .time: ("time", "times")
                    case .markup: ("mistake in the XML", "mistakes in the XML")
                    case .rest: ("end", "ends")
                    }
                let what = kind == .rest ? "" : "\(entry.count) \(entry.count == 1 ? one : many), "
                return "\(what)\(entry.count > 1 ? "first " : "")line \(entry.line): \(entry.problem)"
            }
        }
        return texts.isEmpty ? nil : "Left out: \(texts.joined(separator: "; "))."
    }
}

/// The rows or points of a file while it is read.
struct Rows<Value: RecordedValue>: Sendable {
    private struct Row: Sendable {
        var value: Value
        /// Nanoseconds.
        var time: Int64?
        let line: Int

        mutating func forgetTime() {
            time = nil
            value.time = nil
        }
    }

    private var rows: [Row] = []
    private let unit: String
    var leftOut: LeftOut
    /// Nanoseconds between rows without times.
    private let step: Int64

    /// - Parameter unit: What they are called in messages: "point".
    init(step: Int64, unit: String) {
        self.step = step
        self.unit = unit
        leftOut = LeftOut(unit: unit)
    }

    /// Whether there is no good row.
    var isEmpty: Bool { rows.isEmpty }
    /// Whether there is no row at all.
    var isVoid: Bool { rows.isEmpty && badCount == 0 }
    private var badCount: Int { leftOut.count(.point) }
    var count: Int { rows.count }

    /// Whether there are two or more, each with a time that is not before the one above it.
    var haveRisingTimes: Bool {
        rows.count >= 2 && rows.allSatisfy { $0.time != nil }
            && zip(rows, rows.dropFirst()).allSatisfy { ($0.time ?? 0) <= ($1.time ?? 0) }
    }

    /// Whether two or more are good, and no more are bad.
    var isGood: Bool { rows.count >= 2 && badCount <= rows.count }

    /// What was left out, with the good rows, where others of the file are used in the place of these.
    var leftOutAsAWhole: LeftOut {
        var leftOut = leftOut
        for row in rows {
            leftOut.add(.point, "it is of a track with too few good \(unit)s", line: row.line)
        }
        return leftOut
    }

    mutating func add(_ value: Value, at time: Timestamp?, line: Int) {
        var row = Row(value: value, time: time?.nanoseconds, line: line)
        if let time, !time.isPlausible {
            leftOut.add(.time, "\(time) is no date of a recording", line: line)
            row.forgetTime()
        }
        rows.append(row)
    }

    /// - Throws: `.dataError` with the line of the first bad row if fewer than two are good, or more are bad than good.
    func recording(named name: String, place: String? = nil, _ more: LeftOut? = nil) throws(DeviceFailure)
        -> Recording<Value>
    {
        var leftOut = leftOut
        if let more { leftOut.merge(more) }
        guard isGood else {
            let problem = leftOut.problem(.point) ?? leftOut.first
            guard let problem else {
                throw DeviceFailure(
                    .dataError, "\(name) has \(rows.isEmpty ? "no \(unit)s" : "only one \(unit)"): a replay needs two")
            }
            let counts =
                badCount > rows.count && rows.count >= 2 ? "; \(badCount) of \(badCount + rows.count) are bad" : ""
            throw DeviceFailure(.dataError, "\(name), \(problem)\(counts)")
        }
        var recording = Recording<Value>(name: name, step: step)
        recording.place = place
        for index in rows.indices {
            var row = rows[index]
            if isAbsurd(index) {
                leftOut.add(.time, "a time that is years away from those beside it", line: row.line)
                row.forgetTime()
            }
            recording.append(row.value, recordedAt: row.time)
        }
        recording.leftOut = leftOut.note
        return recording
    }

    /// Whether the time of a row is more than a year away from each of the four beside it.
    private func isAbsurd(_ index: Int) -> Bool {
        guard let time = rows[index].time else { return false }
        let beside = max(0, index - 2)...min(rows.count - 1, index + 2)
        let times = beside.compactMap { $0 == index ? nil : rows[$0].time }
        return times.count > 1 && times.allSatisfy { abs(Double($0) - Double(time)) > Double(Timeline.longestGap) }
    }
}

/// A value of a recording, with its time if it keeps that.
package protocol RecordedValue: Sendable {
    var time: Timestamp? { get set }
}

extension Fix: RecordedValue {}

extension Attitude: RecordedValue {
    package var time: Timestamp? {
        get { nil }
        set {}
    }
}
