/// How far a replay is, as text.
struct ReplayProgress: Sendable, Equatable {
    /// What the things sent are called: "fixes", "motions".
    var unit: String
    var sent = 0
    /// Of those, how many the broker has not confirmed; nil if it is not asked to.
    var unconfirmed: Int?
    /// Nanoseconds.
    var elapsed: Int64 = 0
    /// Nanoseconds; nil when the end is unknown (a loop, a live source).
    var remaining: Int64?
    /// 0...1; nil with `remaining`.
    var fraction: Double?

    /// One line of `width` columns at most: `[=====>    ]  42%  0:12 elapsed  0:17 left  1.0/s`.
    func bar(width: Int) -> String {
        // The last column stays free: writing there makes some terminals go to the next line.
        let room = max(0, width - 1)
        guard let fraction else { return String("\(sent) \(unit)  \(figures)".prefix(room)) }
        let percent = String(Int(fraction * 100))
        let right = " " + String(repeating: " ", count: 3 - percent.count) + percent + "%  " + figures
        let cells = min(40, room - right.count - 2)
        guard cells >= 5 else { return String(right.drop { $0 == " " }.prefix(room)) }
        let filled = Int(Double(cells) * fraction)
        let head = filled < cells ? ">" : ""
        let empty = String(repeating: " ", count: cells - filled - head.count)
        return "[" + String(repeating: "=", count: filled) + head + empty + "]" + right
    }

    /// For pipes: `progress: 42%, 12 fixes, 0:12 elapsed, 0:17 left, 1.0/s`.
    var line: String {
        let percent = fraction.map { "\(Int($0 * 100))%, " } ?? ""
        let waiting = (unconfirmed ?? 0) > 0 ? ", \(unconfirmed ?? 0) unconfirmed" : ""
        return "progress: \(percent)\(sent) \(unit)\(waiting), "
            + figures.split(separator: "  ").joined(separator: ", ")
    }

    private var figures: String {
        let left = remaining.map { "  \(Self.time($0)) left" } ?? ""
        return "\(Self.time(elapsed)) elapsed\(left)  \(rate)/s"
    }

    private var rate: String {
        guard elapsed > 0 else { return "0.0" }
        let rate = Double(sent) * 1e9 / Double(elapsed)
        return DecimalText.fixed(rate, places: rate < 100 ? 1 : 0)
    }

    /// `0:07`, `12:34`, `1:02:03`.
    static func time(_ nanoseconds: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let seconds = max(0, nanoseconds) / 1_000_000_000
        let minutes = seconds / 60
        return minutes < 60
            ? "\(minutes):\(two(seconds % 60))" : "\(minutes / 60):\(two(minutes % 60)):\(two(seconds % 60))"
    }
}
