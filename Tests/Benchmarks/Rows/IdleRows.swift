import Foundation
import MQTT

/// What connections cost that do nothing: memory for each, and how often the process wakes for them.
struct IdleRows {
    let port: String
    let scale: Double

    func rows() async throws -> [Row] {
        raiseDescriptorLimit()
        let count = max(10, Int(5_000 * scale))
        // What is there once for all, however many there are.
        let first = try await connect(10)
        let before = residentBytes()
        let clients = try await connect(count)
        var memory = Row("\(count) idle connections, KiB each", unit: "KiB", isRate: false, goal: "≤ 2")
        memory.add(ours: Double(residentBytes() - before) / Double(count) / 1024)

        var wakes = Row(
            "\(count) idle connections, wake-ups of the process in a second", unit: "", isRate: false, goal: "0")
        let earlier = waits()
        try await Task.sleep(for: .seconds(3))
        // One of them is the end of this sleep, seen by the pool's threads.
        wakes.add(ours: Double(waits() - earlier) / 3)
        var threads = Row("\(count) idle connections, threads that serve them", unit: "", isRate: false, goal: "1")
        threads.add(ours: Double(threadNames().count { $0.hasPrefix("messaging-loop") }))
        for client in first + clients { await client.disconnect() }
        return [memory, wakes, threads]
    }

    private func connect(_ count: Int) async throws -> [MQTTClient] {
        var configuration = MQTTConfiguration()
        configuration.keepAlive = .seconds(600)
        var clients: [MQTTClient] = []
        for _ in 0..<count {
            let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            try await client.connect()
            clients.append(client)
        }
        return clients
    }

    private func raiseDescriptorLimit() {
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private func residentBytes() -> Int {
        let words = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ") ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * Int(sysconf(Int32(_SC_PAGESIZE))) : 0
    }

    private var tasks: [String] { (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? [] }

    private func threadNames() -> [String] {
        tasks.compactMap { try? String(contentsOfFile: "/proc/self/task/\($0)/comm", encoding: .utf8) }
    }

    /// How often the threads of this process have waited so far.
    private func waits() -> Int {
        tasks.reduce(0) { sum, task in
            let status = (try? String(contentsOfFile: "/proc/self/task/\(task)/status", encoding: .utf8)) ?? ""
            let line = status.split(separator: "\n").first { $0.hasPrefix("voluntary_ctxt_switches") }
            return sum + (line.flatMap { Int($0.split(whereSeparator: \.isWhitespace).last ?? "") } ?? 0)
        }
    }
}
