import Foundation

/// How costs grow: `benchmarks --growth [TABLE …]` prints tables in Markdown, for sizes from one to what there is room for.
///
/// Figures are processor time of the whole process, the least of several rounds: what other programs do on the machine
/// is in them as little as can be.
struct Growth {
    let setting: Setting

    static let tables: [(name: String, make: @Sendable (Growth) async throws -> [GrowthTable])] = [
        ("messages", { [try await $0.messages()] }),
        ("connections", { [try await $0.connections()] }),
        ("subscriptions", { [try await $0.subscriptions()] }),
        ("in-flight", { [try await $0.inFlight()] }),
        ("sessions", { [try await $0.sessions(), try await $0.exchanges()] }),
    ]

    /// Prints the tables whose names begin as one of `chosen` does; returns whether all could be made.
    func run(_ chosen: [String]) async -> Bool {
        print(head)
        var isWhole = true
        for (name, make) in Self.tables where chosen.isEmpty || chosen.contains(where: name.hasPrefix) {
            do {
                for table in try await make(self) { print(table.markdown) }
            } catch {
                FileHandle.standardError.write(Data("\(name): \(error)\n".utf8))
                isWhole = false
            }
            fflush(nil)
        }
        return isWhole
    }

    /// The version of the compiler that is there now, which need not be the one that made this program.
    private var compiler: String {
        let words =
            (try? Shell.run("/usr/bin/env", ["swift", "--version"]))?.split(whereSeparator: \.isWhitespace) ?? []
        guard let index = words.firstIndex(of: "version"), index + 1 < words.count else { return "" }
        return ", Swift \(words[index + 1])"
    }

    private var head: String {
        let format = DateFormatter()
        format.dateFormat = "yyyy-MM-dd"
        format.timeZone = TimeZone(identifier: "UTC")
        #if os(Linux)
            let system = "Linux"
        #else
            let system = "macOS"
        #endif
        return """
            # How costs grow

            \(format.string(from: Date())), \(ProcessInfo.processInfo.activeProcessorCount) cores, \(system)\(compiler), by

                swift run -c release benchmarks --growth

            Each figure is processor time of the whole process, the least of \(setting.rounds) rounds; the brokers at the
            other end are programs of their own. *All* is the cost of n together, *each* of one of them. *Growth* is the
            exponent with which the cost of all n grew since the line above: 1 is linear (one of them costs the same,
            however many there are), 2 is quadratic, n log n is at most 1.3 from 10 on and 1.2 from 100 on. What grew faster
            than n log n, with a margin of 0.2 for what else the machine did, is bold.

            """
    }

    /// Sizes up to the largest one, which `--scale` makes smaller.
    func sizes(_ all: [Int]) -> [Int] {
        let largest = Double(all.last ?? 0) * setting.scale
        return all.filter { Double($0) <= max(largest, Double(all.first ?? 0)) }
    }

    func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * setting.scale)) }

    /// The least processor time of the rounds, in seconds.
    func least(_ body: () async throws -> Costs) async rethrows -> Double {
        var least = Double.infinity
        for _ in 0..<max(1, setting.rounds) { least = min(least, try await body().processorSeconds) }
        return least
    }
}
