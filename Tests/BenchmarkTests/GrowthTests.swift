import Foundation
import TestSupport
import Testing

@testable import benchmarks

@Suite(.turns)
struct GrowthTests {
    private func table(_ cost: (Double) -> Double) -> GrowthTable {
        var table = GrowthTable("Costs", sizes: "things", note: "A note.", .whole("all of it"))
        for size in [1, 10, 100, 1000] { table.add(size, cost(Double(size))) }
        return table
    }

    @Test func theExponentIsThatOfTheCostOfAll() {
        for (exponent, cost) in [(0.0, { _ in 3e-6 }), (1, { $0 * 2e-9 }), (2, { $0 * $0 * 1e-9 })]
            as [(Double, (Double) -> Double)]
        {
            let table = table(cost)
            #expect(table.growth(line: 0, column: 0).isNaN)
            for line in 1...3 { #expect(abs(table.growth(line: line, column: 0) - exponent) < 1e-9) }
        }
        // What one costs says the same, multiplied.
        var each = GrowthTable("Costs", sizes: "things", note: "", .each("one"))
        for size in [1, 10, 100] { each.add(size, 1e-6 * Double(size)) }
        #expect(abs(each.growth(line: 2, column: 0) - 2) < 1e-9)
    }

    @Test func onlyWhatIsWorseThanNLogNIsBold() {
        #expect(!table { $0 * 1e-9 }.markdown.contains("**"))
        #expect(!table { $0 * log($0 + 1) * 1e-9 }.markdown.contains("**"))
        #expect(table { $0 * $0 * 1e-9 }.markdown.contains("| 10.0 µs | 100 ns | **2.00** |"))
        #expect(table { pow($0, 1.6) * 1e-9 }.markdown.contains("**1.60**"))
    }

    @Test func whatDoesNotFitIsSaid() {
        var table = table { $0 }
        table.leaveOut(10_000, why: "there is no room")
        #expect(table.markdown.contains("| 10,000 | there is no room |"))
    }

    @Test func oneCommandPrintsAllTables() async throws {
        let output = try await BenchmarkTable.output(["--growth", "--rounds", "1", "--scale", "0.001"])
        for title in [
            "Messages by size", "Connections", "Subscriptions with wildcards on one client", "Messages in flight",
            "Sessions in a file", "Exchanges of QoS 2 in a session",
        ] {
            #expect(output.contains("## \(title)"))
        }
        // A head, the line below it, and at least one line of figures each.
        #expect(output.count { $0.hasPrefix("|") } >= 18)
    }
}
