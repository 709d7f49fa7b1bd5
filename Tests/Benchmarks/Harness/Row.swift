import Foundation

/// One line of the table: our figure, the limit's of the same minute, and their ratio, over several rounds.
struct Row {
    let name: String
    let unit: String
    /// Whether a larger figure is better.
    let isRate: Bool
    /// The ratio to reach, as the table prints it.
    let goal: String
    private(set) var ours: [Double] = []
    private(set) var limits: [Double] = []

    init(_ name: String, unit: String, isRate: Bool = true, goal: String) {
        self.name = name
        self.unit = unit
        self.isRate = isRate
        self.goal = goal
    }

    mutating func add(ours: Double, limit: Double) {
        self.ours.append(ours)
        limits.append(limit)
    }

    /// The median of the ratios of each round, so that a drift of the machine cancels out.
    var ratio: Double { median(zip(ours, limits).map { $0 / $1 }) }

    static let header = "| row | ours | range | plain C | ratio | goal |\n|---|---|---|---|---|---|"

    var line: String {
        let range = "\(format(ours.min() ?? 0))–\(format(ours.max() ?? 0))"
        return "| \(name) | \(format(median(ours))) \(unit) | \(range) | \(format(median(limits))) "
            + "| \(String(format: "%.3f", ratio)) | \(goal) |"
    }

    private func format(_ value: Double) -> String {
        if value >= 1e6 { return String(format: "%.2f M", value / 1e6) }
        if value >= 1e4 { return String(format: "%.0f k", value / 1e3) }
        return String(format: "%.1f", value)
    }
}

func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    return sorted.isEmpty ? 0 : sorted[sorted.count / 2]
}

/// Seconds that `body` takes.
func seconds(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return (ContinuousClock.now - start) / .seconds(1)
}
