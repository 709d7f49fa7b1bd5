import Foundation
import MQTT

/// What it costs to keep messages: QoS 1 by array, window 100, with a session store, against the same without one.
struct StoreRows {
    let mqtt: MQTTRows
    let rounds: Int

    enum Store: String, CaseIterable {
        case memory = "in memory"
        case file = "in a file, not synced"
        case synced = "in a file, synced in groups"

        func make(_ directory: String) -> any SessionStore {
            switch self {
            case .memory:
                return MemorySessionStore(limits: SessionStoreLimits(maximumMessages: 1 << 20, maximumBytes: 1 << 30))
            case .file, .synced:
                var options = FileSessionStore.Options()
                options.limits = SessionStoreLimits(maximumMessages: 1 << 20, maximumBytes: 1 << 30)
                options.sync = self == .synced ? .always : .never
                return FileSessionStore(directory: directory, options: options)
            }
        }
    }

    func row(_ store: Store) async throws -> Row {
        let count = mqtt.scaled(200_000)
        var row = Row(
            "MQTT QoS 1 by array, session \(store.rawValue); limit: without a store", unit: "msg/s", goal: "–")
        for round in 0..<rounds {
            let plain = try await run(count, store: nil)
            let directory = Shell.directory.appendingPathComponent("session-\(store)-\(round)").path
            let kept = try await run(count, store: store.make(directory))
            row.add(kept, count, limit: Double(count) / plain.seconds)
        }
        return row
    }

    private func run(_ count: Int, store: (any SessionStore)?) async throws -> Costs {
        var configuration = MQTTConfiguration(clientID: "store")
        configuration.maximumInFlight = 100
        configuration.sessionStore = store
        configuration.cleanStart = store == nil
        configuration.maximumQueuedMessages = 1 << 20
        let client = MQTTClient("mqtt://127.0.0.1:\(mqtt.port)", configuration: configuration)
        try await client.connect()
        let message = MQTTOutgoingMessage([UInt8](repeating: 0x70, count: 24), to: MQTTRows.topic, qos: .atLeastOnce)
        let array = [MQTTOutgoingMessage](repeating: message, count: 1000)
        let costs = try await measured(calls: client.calls) {
            for _ in 0..<(count / 1000) { try await client.publish(array).check() }
        }
        await client.disconnect()
        return costs
    }
}
