import Foundation
import MQTT

/// What connections cost that do nothing: memory for each, and how often the process wakes for them.
struct IdleRows {
    let port: String
    let scale: Double

    func rows() async throws -> [Row] {
        Descriptors.raise()
        let count = max(10, Int(5_000 * scale))
        // What is there once for all, however many there are.
        let first = try await connect(10)
        let before = Memory.resident
        let clients = try await connect(count)
        var memory = Row("\(count) idle connections, KiB each", unit: "KiB", isRate: false, goal: "≤ 2")
        memory.add(ours: Double(Memory.resident - before) / Double(count) / 1024)

        var wakes = Row(
            "\(count) idle connections, wake-ups of the process in a second", unit: "", isRate: false, goal: "0")
        let earlier = Threads.waits
        try await Task.sleep(for: .seconds(3))
        // One of them is the end of this sleep, seen by the pool's threads.
        wakes.add(ours: Double(Threads.waits - earlier) / 3)
        var threads = Row("\(count) idle connections, threads that serve them", unit: "", isRate: false, goal: "1")
        threads.add(ours: Double(Threads.names.count { $0.hasPrefix("messaging-loop") }))
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
}
