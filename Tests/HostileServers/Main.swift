import Foundation

/// Runs clients against hostile servers, each scenario in a process of its own, and prints what it cost.
///
///     hostile-servers [--seconds N] [NAME …]     scenarios whose names begin so; all without a name
///     hostile-servers --list
///
/// A row has the scenario, the memory that it took, the time after which the client reported an error, the connections
/// that it opened, the bytes that it sent, and the error. `!` marks a bound that did not hold; the status is then 1.
@main
enum Main {
    static func main() async {
        var arguments = Array(CommandLine.arguments.dropFirst())
        var seconds = 10.0
        if let index = arguments.firstIndex(of: "--seconds"), index + 1 < arguments.count {
            seconds = Double(arguments[index + 1]) ?? seconds
            arguments.removeSubrange(index...(index + 1))
        }
        if arguments.first == "--list" {
            for scenario in Scenario.all { print(scenario.name) }
            return
        }
        if arguments.first == "--one", arguments.count == 2 {
            guard let scenario = Scenario.all.first(where: { $0.name == arguments[1] }) else { exit(64) }
            let row = await Row(scenario, limit: scenario.limit ?? seconds)
            print(row.line)
            exit(row.failures.isEmpty ? 0 : 1)
        }
        let chosen = Scenario.all.filter { scenario in
            arguments.isEmpty || arguments.contains { scenario.name.hasPrefix($0) }
        }
        guard !chosen.isEmpty else {
            FileHandle.standardError.write(Data("No scenario has such a name; --list prints them.\n".utf8))
            exit(64)
        }
        print(Row.header)
        var failed = 0
        for scenario in chosen {
            let status = run(scenario.name, seconds)
            if status != 0 { failed += 1 }
            // A crash leaves no row.
            if status > 1 { print("\(scenario.name): the process ended with status \(status)") }
        }
        print("\(chosen.count) scenarios, \(failed) with a bound that did not hold")
        exit(failed == 0 ? 0 : 1)
    }

    /// Runs one scenario in a process of its own, which prints its row.
    private static func run(_ name: String, _ seconds: Double) -> Int32 {
        #if os(macOS) || os(Linux) || os(Android)
            fflush(nil)
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
            process.arguments = ["--seconds", "\(seconds)", "--one", name]
            do { try process.run() } catch { return 70 }
            process.waitUntilExit()
            return process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
        #else
            print("\(name): this system starts no other programs; run this scenario alone with --one")
            return 1
        #endif
    }
}
