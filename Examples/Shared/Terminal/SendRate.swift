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
