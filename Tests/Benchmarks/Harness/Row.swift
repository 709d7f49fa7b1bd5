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
    private var processorTimes: [Double] = []

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

    /// Adds a round of `count` messages whose limit is a rate.
    mutating func add(_ time: Times, _ count: Int, limit: Double) {
        add(ours: Double(count) / time.seconds, limit: limit)
        processorTimes.append(time.processorSeconds * 1e9 / Double(count))
    }

    /// The median of the ratios of each round, so that a drift of the machine cancels out.
    var ratio: Double { median(zip(ours, limits).map { $0 / $1 }) }

    static let header =
        "| row | ours | range | CPU ns each | plain C | ratio | goal |\n|---|---|---|---|---|---|---|"

    var line: String {
        let range = "\(format(ours.min() ?? 0))–\(format(ours.max() ?? 0))"
        let processor = processorTimes.isEmpty ? "–" : format(median(processorTimes))
        return "| \(name) | \(format(median(ours))) \(unit) | \(range) | \(processor) | \(format(median(limits))) "
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

/// What something took: on the wall, and of all threads of this process together.
struct Times {
    var seconds = 0.0
    var processorSeconds = 0.0
}

/// How long `body` takes.
func measured(_ body: () async throws -> Void) async rethrows -> Times {
    let start = ContinuousClock.now
    let used = processorSeconds()
    try await body()
    return Times(
        seconds: (ContinuousClock.now - start) / .seconds(1), processorSeconds: processorSeconds() - used)
}

private func processorSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}
