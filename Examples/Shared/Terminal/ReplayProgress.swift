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

    /// For pipes: `progress: 42%, 12 fixes, 0:12 elapsed, 0:17 left, 1.0/s`.
    var line: String {
        let percent = fraction.map { "\(Int($0 * 100))%, " } ?? ""
        let waiting = (unconfirmed ?? 0) > 0 ? ", \(unconfirmed ?? 0) unconfirmed" : ""
        let left = remaining.map { ", \(Self.time($0)) left" } ?? ""
        let mean = elapsed > 0 ? Double(sent) * 1e9 / Double(elapsed) : 0
        return
            "progress: \(percent)\(Self.count(sent, unit))\(waiting), \(Self.time(elapsed)) elapsed\(left), \(Self.rate(mean))"
    }

    /// `1 fix`, `2 fixes`, `1 motion`.
    static func count(_ number: Int, _ unit: String) -> String {
        "\(number) \(number == 1 ? unit.dropLast(unit.hasSuffix("xes") ? 2 : 1) : unit[...])"
    }

    /// `1.0/s`, and no decimals from 100 per second.
    static func rate(_ rate: Double) -> String {
        DecimalText.fixed(rate, places: rate < 100 ? 1 : 0) + "/s"
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
