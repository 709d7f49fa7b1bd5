import Foundation

/// What a scenario cost, and which of its bounds did not hold.
struct Row {
    let line: String
    let failures: [String]

    static let header = row("scenario", "memory", "ended", "conns", "sent", "error")

    init(_ scenario: Scenario, limit: Double) async {
        let start = ContinuousClock.now
        Memory.forgetPeak()
        let before = Memory.resident
        let outcome = await scenario.run(start + .seconds(limit))
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        let memory = max(0, Memory.peak - before) / (1 << 20)
        let bounds = scenario.bounds
        var failures: [String] = []
        if memory > bounds.memory { failures.append("memory, at most \(bounds.memory) MiB") }
        if outcome.connections > bounds.connections { failures.append("connections, at most \(bounds.connections)") }
        if outcome.sent > bounds.sent { failures.append("bytes sent, at most \(bounds.sent)") }
        if let most = bounds.seconds, !outcome.hasEnded || seconds > most {
            failures.append("an error within \(most) s")
        }
        self.failures = failures
        let mark = failures.isEmpty ? "" : "! \(failures.joined(separator: "; ")): "
        line = Self.row(
            scenario.name, "\(memory) MiB", outcome.hasEnded ? String(format: "%.1f s", seconds) : "-",
            "\(outcome.connections)", "\(outcome.sent)", mark + String(outcome.end.prefix(300)))
    }

    private static func row(_ columns: String...) -> String {
        let widths = [40, 9, 8, 6, 10]
        let padded = zip(columns, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }
        return padded.joined(separator: " ") + " " + columns[5]
    }
}
