import Foundation

/// Prints the table. `benchmarks [--rounds N] [--scale X] [--peers] [ROW …]`, where a row is named as in ``Setting/rows``, or by how
/// its name begins, and X multiplies the number of messages (for profilers, which are slow).
///
/// `benchmarks --growth [--rounds N] [--scale X] [TABLE …]` prints how costs grow instead: ``Growth/tables``.
@main
enum Main {
    static func main() {
        Allocations.startCounting()
        // An `async` main would leave this thread to Dispatch, which ends it; Valgrind does not survive that.
        let ended = DispatchSemaphore(value: 0)
        Task.detached {
            do {
                try await printTable()
            } catch {
                FileHandle.standardError.write(Data("\(error)\n".utf8))
                exit(70)
            }
            ended.signal()
        }
        ended.wait()
    }

    private static func printTable() async throws {
        var arguments = Array(CommandLine.arguments.dropFirst())
        func option<Value: LosslessStringConvertible & Sendable>(_ name: String, _ fallback: Value) -> Value {
            guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return fallback }
            defer { arguments.removeSubrange(index...(index + 1)) }
            return Value(arguments[index + 1]) ?? fallback
        }
        let withPeers = arguments.contains("--peers")
        arguments.removeAll { $0 == "--peers" }
        let setting = Setting(rounds: option("--rounds", 3), scale: option("--scale", 1.0), withPeers: withPeers)
        if let index = arguments.firstIndex(of: "--growth") {
            arguments.remove(at: index)
            let isWhole = await Growth(setting: setting).run(arguments)
            setting.end()
            exit(isWhole ? 0 : 70)
        }
        let chosen = Setting.rows.filter { row in
            arguments.isEmpty || arguments.contains { row.name.hasPrefix($0) }
        }
        guard !chosen.isEmpty else {
            print("no such row; there are: \(Setting.rows.map(\.name).joined(separator: " "))")
            setting.end()
            exit(64)
        }
        defer { setting.end() }
        print(Row.header)
        var failed = false
        for (name, run) in chosen {
            do {
                for row in try await run(setting) {
                    print(row.line)
                    fflush(nil)
                }
            } catch {
                FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
                failed = true
            }
        }
        if failed {
            setting.end()
            exit(70)
        }
    }
}
