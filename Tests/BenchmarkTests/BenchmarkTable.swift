import Foundation
import TestSupport

/// The benchmark as it was built beside the tests, and the table that it prints.
struct BenchmarkTable {
    /// The cells of each row by its name, in the order of the columns.
    private var rows: [String: [String]] = [:]

    private static let program = BuiltProgram.path("benchmarks")

    /// Runs rows by their names on the command line.
    static func run(_ rows: [String], scale: Double) async throws -> BenchmarkTable {
        var table = BenchmarkTable()
        for line in try await output(["--rounds", "1", "--scale", "\(scale)"] + rows) where line.hasPrefix("| ") {
            let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            table.rows[cells[0]] = cells
        }
        return table
    }

    /// The lines that it prints.
    static func output(_ arguments: [String]) async throws -> [String] {
        let process = try await ChildProcess.start(Command(program, arguments))
        let status = try await process.waitForEnd()
        guard status == .exited(0) else {
            throw Failure(description: "benchmarks ended with \(status): \(process.lines(.errors))")
        }
        return process.lines()
    }

    /// Instructions of one row at two sizes, of which the difference counts: what starting costs falls out. Nil where
    /// Valgrind does not work.
    static func instructions(_ row: String, valgrind: String) async throws -> Double? {
        let callgrind = try await Callgrind(program, valgrind: valgrind)
        var totals: [Double] = []
        for scale in [0.01, 0.02] {
            let arguments = ["--rounds", "1", "--scale", "\(scale)", row]
            guard
                let total = try await callgrind.instructions(arguments, environment: ["BENCHMARK_IS_COUNTING": "1"])
            else { return nil }
            totals.append(total)
        }
        // `scale` is of two million packets in each of the row's lines.
        return (totals[1] - totals[0]) / 20_000
    }

    /// Our own figure, where its unit is none.
    func figure(_ name: String) throws -> Double { try number(name, 1) }
    func allocations(_ name: String) throws -> Double { try number(name, 4) }
    func calls(_ name: String) throws -> Double { try number(name, 5) }
    func systemCalls(_ name: String) throws -> Double { try number(name, 6) }

    private func number(_ name: String, _ column: Int) throws -> Double {
        guard let cells = rows[name], cells.count > column,
            let value = Double(cells[column].trimmingCharacters(in: .whitespaces))
        else {
            throw Failure(description: "no figure for \(name); there are \(rows.keys.sorted())")
        }
        return value
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}
