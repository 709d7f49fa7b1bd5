import Foundation
import MQTT

extension Growth {
    /// Connections of one process, all of them on its one loop.
    func connections() async throws -> GrowthTable {
        var table = GrowthTable(
            "Connections", sizes: "connections",
            note: """
                All of them on one loop. A message goes over one of n connections, each of which has one of QoS 1 under way at \
                most and a task of its own. Memory is said from 1,000 connections on: fewer find room in what others left.
                """,
            .each("open"), .each("memory", .bytes), .each("message"), .each("close"))
        let port = try setting.serve("idle_broker")
        let room = Descriptors.raise() - 100
        let idle = IdleRows(port: port, scale: setting.scale)
        for count in sizes([1, 10, 100, 1000, 10_000]) {
            guard count <= room else {
                table.leaveOut(count, why: "this system allows a process \(room + 100) descriptors")
                continue
            }
            var open = Double.infinity
            var memory = 0.0
            var message = Double.infinity
            var close = Double.infinity
            for _ in 0..<max(1, setting.rounds) {
                Memory.trim()
                let before = Memory.resident
                var clients: [MQTTClient] = []
                open = min(open, try await measured { clients = try await idle.connect(count) }.processorSeconds)
                memory = max(memory, Double(Memory.resident - before))
                let each = max(1, scaled(20_000) / count)
                let costs = try await measured { try await publish(each, over: clients) }
                message = min(message, costs.processorSeconds / Double(each * count))
                close = min(
                    close, await measured { for client in clients { await client.disconnect() } }.processorSeconds)
            }
            table.add(
                count, open / Double(count), count < 1000 || memory == 0 ? .nan : memory / Double(count), message,
                close / Double(count))
        }
        return table
    }

    private func publish(_ count: Int, over clients: [MQTTClient]) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for client in clients {
                group.addTask {
                    for _ in 0..<count {
                        try await client.publish([1, 2, 3, 4], to: MQTTRows.topic, qos: .atLeastOnce)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
