import Foundation
import MQTT

/// What connections cost that do nothing: memory for each, and how often their thread wakes for them.
struct IdleRows {
    let port: String
    let scale: Double

    func rows() async throws -> [Row] {
        Descriptors.raise()
        let count = max(10, Int(5_000 * scale))
        // What is there once for all, however many there are.
        let first = try await connect(10)
        try await settle()
        let (before, earlier) = (Memory.resident, Memory.allocated)
        let clients = try await connect(count)
        try await settle()
        var memory = Row("\(count) idle connections, KiB each", unit: "KiB", isRate: false, goal: "≤ 2")
        memory.add(ours: Double(Memory.resident - before) / Double(count) / 1024)

        var blocks: [Row] = []
        if let earlier, let now = Memory.allocated {
            var row = Row(
                "\(count) idle connections, bytes allocated for each", unit: "", isRate: false, goal: "≤ 2048")
            row.add(ours: Double(now - earlier) / Double(count))
            blocks = [row]
        }

        var wakes = Row(
            "\(count) idle connections, wake-ups of their thread in a second", unit: "", isRate: false, goal: "0")
        // Connecting leaves work behind, which a busy machine does later.
        var rate = try await wakeUps(in: 2)
        for _ in 0..<20 where rate > 0 { rate = try await wakeUps(in: 2) }
        wakes.add(ours: rate)
        var threads = Row("\(count) idle connections, threads that serve them", unit: "", isRate: false, goal: "1")
        threads.add(ours: Double(Threads.loops.count))
        for client in first + clients { await client.disconnect() }

        // One for the deadline, one for the answer.
        let few = 20
        var pings = Row(
            "\(few) connections with a keep alive of 1 s, wake-ups for each in a second", unit: "", isRate: false,
            goal: "≤ 2")
        let pinging = try await connect(few, keepAlive: .seconds(1))
        pings.add(ours: try await wakeUps(in: 3) / Double(few))
        for client in pinging { await client.disconnect() }
        return [memory] + blocks + [wakes, threads, pings] + (try await usedClients())
    }

    /// Clients that share nothing and have done something: a configuration of their own, a subscription, and a message
    /// that was published.
    private func usedClients() async throws -> [Row] {
        let count = max(10, Int(2_000 * scale))
        let first = try await use(10, after: 0)
        try await settle()
        let earlier = Memory.allocated
        let clients = try await use(count, after: 10)
        try await settle()
        guard let earlier, let now = Memory.allocated else { return [] }
        var row = Row(
            "\(count) idle clients with their own configuration, a subscription and a publish, bytes allocated for each",
            unit: "", isRate: false, goal: "≤ 5632")
        row.add(ours: Double(now - earlier) / Double(count))
        for (client, _) in first + clients { await client.disconnect() }
        return [row]
    }

    private func use(_ count: Int, after number: Int) async throws -> [(MQTTClient, MQTTSubscription)] {
        var clients: [(MQTTClient, MQTTSubscription)] = []
        for number in number..<(number + count) {
            var configuration = MQTTConfiguration()
            // Another for each, so that none shares its options.
            configuration.keepAlive = .seconds(600 + number)
            let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            try await client.connect()
            let messages = try await client.subscribe(to: "idle/\(number)/#")
            try await client.publish("on", to: "idle/\(number)", qos: .atLeastOnce)
            clients.append((client, messages))
        }
        return clients
    }

    /// Connects clients one after the other.
    func connect(_ count: Int, keepAlive: Duration = .seconds(600)) async throws -> [MQTTClient] {
        var configuration = MQTTConfiguration()
        configuration.keepAlive = keepAlive
        var clients: [MQTTClient] = []
        for _ in 0..<count {
            let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            try await client.connect()
            clients.append(client)
        }
        return clients
    }

    /// Waits until nothing is allocated or given back any more: clients give their buffers back when they come to rest.
    private func settle() async throws {
        var (last, unchanged) = (Memory.allocated, 0)
        for _ in 0..<200 where unchanged < 5 {
            try await Task.sleep(for: .milliseconds(50))
            let now = Memory.allocated
            unchanged = now == last ? unchanged + 1 : 0
            last = now
        }
    }

    /// How often in a second the connections' thread wakes while this one sleeps, which takes longer on a busy machine.
    private func wakeUps(in seconds: Int) async throws -> Double {
        let start = ContinuousClock.now
        let earlier = Threads.loops.map(\.waits).reduce(0, +)
        try await Task.sleep(for: .seconds(seconds))
        let later = Threads.loops.map(\.waits).reduce(0, +)
        return Double(later - earlier) / ((ContinuousClock.now - start) / .seconds(1))
    }
}
