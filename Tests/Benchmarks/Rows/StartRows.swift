import Foundation

/// What a program costs that connects, publishes one message and ends: as a process of its own, beside one that does
/// nothing and beside the same in C.
struct StartRows {
    let port: String
    let limit: String
    let rounds: Int
    let scale: Double

    func rows() throws -> [Row] {
        let program = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent()
            .appendingPathComponent("first-message").path
        guard FileManager.default.isExecutableFile(atPath: program) else {
            FileHandle.standardError.write(
                Data(
                    "The rows of a program's start are left out. Build Tests/FirstMessage: its Package.swift says how.\n"
                        .utf8))
            return []
        }
        var whole = Row("Process start to first message", unit: "µs", isRate: false, goal: "≤ 3800")
        var empty = Row(
            "Process start to the end of an empty async program with the same imports", unit: "µs", isRate: false,
            goal: "–")
        var difference = Row(
            "Process start to first message, above an empty program", unit: "µs", isRate: false, goal: "≤ 1100")
        for _ in 0..<rounds {
            var (ours, nothing, inC): ([Double], [Double], [Double]) = ([], [], [])
            for _ in 0..<max(5, Int(20 * scale)) {
                nothing.append(try Self.time(program, []))
                ours.append(try Self.time(program, [port]))
                inC.append(try Self.time(limit, [port, "window", "1"]))
            }
            whole.add(ours: median(ours), limit: median(inC))
            empty.add(ours: median(nothing))
            difference.add(ours: median(ours) - median(nothing))
        }
        return [whole, empty, difference]
    }

    /// The median of several starts.
    static func time(_ program: String, _ arguments: [String], times: Int) throws -> Double {
        median(try (0..<times).map { _ in try time(program, arguments) })
    }

    /// Microseconds from the start of a program to its end.
    private static func time(_ program: String, _ arguments: [String]) throws -> Double {
        let start = ContinuousClock.now
        _ = try Shell.run(program, arguments)
        return (ContinuousClock.now - start) / .microseconds(1)
    }
}
