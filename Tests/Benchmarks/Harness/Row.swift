import Foundation

/// One line of the table: our figure, the limit's of the same minute, and their ratio, over several rounds.
struct Row {
    let name: String
    let unit: String
    /// Whether a larger figure is better.
    let isRate: Bool
    /// The ratio to reach, as the table prints it.
    let goal: String
    /// Whether the limit's rounds have to agree. Those of a 99th percentile never do.
    let settles: Bool
    private(set) var ours: [Double] = []
    private(set) var limits: [Double] = []
    private var limitProcessorTimes: [Double] = []
    private var processorTimes: [Double] = []
    private var allocations: [Double] = []
    private var calls: [Double] = []
    private var systemCalls: [Double] = []
    private var peaks: [Double] = []

    init(_ name: String, unit: String, isRate: Bool = true, goal: String, settles: Bool = true) {
        self.settles = settles
        self.name = name
        self.unit = unit
        self.isRate = isRate
        self.goal = goal
    }

    mutating func add(ours: Double, limit: Double = .nan) {
        self.ours.append(ours)
        limits.append(limit)
    }

    /// Adds a round of `count` messages whose limit is a rate.
    ///
    /// - Parameter limitProcessor: nanoseconds of the processor that the limit took for each.
    mutating func add(_ costs: Costs, _ count: Int, limit: Double = .nan, limitProcessor: Double = .nan) {
        add(ours: Double(count) / costs.seconds, limit: limit)
        if !limitProcessor.isNaN { limitProcessorTimes.append(limitProcessor) }
        addCosts(costs, count)
    }

    /// Adds a round of `count` messages of which something else than the rate counts.
    mutating func add(ours: Double, limit: Double, _ costs: Costs, _ count: Int, limitProcessor: Double) {
        add(ours: ours, limit: limit)
        limitProcessorTimes.append(limitProcessor)
        addCosts(costs, count)
    }

    /// Adds what a round of `count` messages cost beside time on the wall.
    mutating func addCosts(_ costs: Costs, _ count: Int) {
        processorTimes.append(costs.processorSeconds * 1e9 / Double(count))
        if Counters.areCounting {
            allocations.append(Double(costs.allocations) / Double(count))
            systemCalls.append(Double(costs.systemCalls) / Double(count))
        }
        calls.append(Double(costs.calls) / Double(count))
        if costs.peakMemory > 0 { peaks.append(Double(costs.peakMemory) / 1_048_576) }
    }

    /// The median of the ratios of each round, so that a drift of the machine cancels out.
    var ratio: Double { median(zip(ours, limits).map { $0 / $1 }) }

    /// Whether the limit was the same in all rounds, within a factor of 1.5: otherwise the machine did something else too.
    var isSettled: Bool {
        let limits = limits.filter { !$0.isNaN }
        guard settles, let least = limits.min(), let most = limits.max() else { return true }
        return most <= 1.5 * least
    }

    static let header = """
        | row | ours | range | CPU ns each | allocations each | reads and writes each | system calls each | peak MiB | limit | its CPU ns | ratio | goal |
        |---|---|---|---|---|---|---|---|---|---|---|---|
        """

    var line: String {
        let range = "\(format(ours.min() ?? 0))–\(format(ours.max() ?? 0))"
        let hasLimit = limits.contains { !$0.isNaN }
        let cells = [
            name, "\(format(median(ours))) \(unit)", range,
            processorTimes.isEmpty ? "–" : format(median(processorTimes)),
            small(allocations), small(calls), small(systemCalls),
            peaks.isEmpty ? "–" : String(format: "%.0f", median(peaks)),
            hasLimit ? format(median(limits)) : "–",
            limitProcessorTimes.isEmpty ? "–" : format(median(limitProcessorTimes)),
            hasLimit ? String(format: "%.3f", ratio) + (isSettled ? "" : ", not settled") : "–", goal,
        ]
        return "| " + cells.joined(separator: " | ") + " |"
    }

    private func small(_ values: [Double]) -> String {
        values.isEmpty ? "–" : String(format: "%.3f", median(values))
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
