import Foundation

/// Prints the table. `benchmarks [--rounds N] [--scale X] [--peers] [--peer NAME=PROGRAM …] [ROW …]`, where a row is named as in
/// ``Setting/rows``, or by how its name begins, X multiplies the number of messages (for profilers, which are slow), and the
/// peers are those of ``PeerRows``.
///
/// `benchmarks --growth [--rounds N] [--scale X] [TABLE …]` prints how costs grow instead: ``Growth/tables``.
@main
enum Main {
    static func main() {
        Counters.startCounting()
        var arguments = Array(CommandLine.arguments.dropFirst())
        func option<Value: LosslessStringConvertible & Sendable>(_ name: String, _ fallback: Value) -> Value {
            guard let index = arguments.firstIndex(of: name), index + 1 < arguments.count else { return fallback }
            defer { arguments.removeSubrange(index...(index + 1)) }
            return Value(arguments[index + 1]) ?? fallback
        }
        var peers: [PeerRows.Peer]? = arguments.contains("--peers") ? [] : nil
        arguments.removeAll { $0 == "--peers" }
        while arguments.contains("--peer") {
            let words = option("--peer", "").split(separator: "=", maxSplits: 1).map(String.init)
            guard words.count == 2 else {
                print("--peer takes NAME=PROGRAM")
                exit(64)
            }
            peers = (peers ?? []) + [PeerRows.Peer(name: words[0], program: words[1])]
        }
        let growth = arguments.firstIndex(of: "--growth").map { arguments.remove(at: $0) } != nil
        let (rounds, scale, named) = (option("--rounds", 3), option("--scale", 1.0), peers)
        let chosen = arguments
        if growth {
            run {
                let setting = Setting(rounds: rounds, scale: scale, peers: named)
                defer { setting.end() }
                return await Growth(setting: setting).run(chosen)
            }
        }
        func isChosen(_ name: String) -> Bool { chosen.isEmpty || chosen.contains { name.hasPrefix($0) } }
        let codecRows = Setting.codecRows.filter { isChosen($0.name) }
        let rows = Setting.rows.filter { isChosen($0.name) }
        guard !codecRows.isEmpty || !rows.isEmpty else {
            print(
                "no such row; there are: \((Setting.codecRows.map(\.name) + Setting.rows.map(\.name)).joined(separator: " "))"
            )
            exit(64)
        }
        print(Row.header)
        var failed = false
        for (name, run) in codecRows {
            failed = !printRows(name, Result { try run(CodecRows(rounds: rounds, scale: scale)) }) || failed
        }
        if rows.isEmpty { exit(failed ? 70 : 0) }
        run { [failed] in
            let setting = Setting(rounds: rounds, scale: scale, peers: named)
            defer { setting.end() }
            return await printTable(rows.map(\.name), setting) && !failed
        }
    }

    /// Runs what needs tasks, and ends the program. This thread serves the main actor from Foundation's run loop: an
    /// `async` main would leave it to Dispatch, which ends it, and Valgrind does not survive that.
    private static func run(_ body: @escaping @concurrent @Sendable () async -> Bool) -> Never {
        Task.detached {
            let succeeded = await body()
            exit(succeeded ? 0 : 70)
        }
        // Without a timer a run loop ends at once.
        RunLoop.main.add(Timer(timeInterval: 1e9, repeats: true) { _ in }, forMode: .default)
        while true { RunLoop.main.run() }
    }

    private static func printTable(_ names: [String], _ setting: Setting) async -> Bool {
        var succeeded = true
        for (name, run) in Setting.rows where names.contains(name) {
            let rows: Result<[Row], any Error>
            do {
                rows = .success(try await settled { try await run(setting) })
            } catch {
                rows = .failure(error)
            }
            succeeded = printRows(name, rows) && succeeded
        }
        return succeeded
    }

    /// Repeats rows until the rounds of their limits agree, five times at most.
    private static func settled(_ run: () async throws -> [Row]) async throws -> [Row] {
        var rows = try await run()
        for _ in 1..<5 where !rows.allSatisfy(\.isSettled) { rows = try await run() }
        return rows
    }

    private static func printRows(_ name: String, _ rows: Result<[Row], any Error>) -> Bool {
        switch rows {
        case .success(let rows):
            for row in rows { print(row.line) }
            fflush(nil)
            return true
        case .failure(let error):
            FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
            return false
        }
    }
}
