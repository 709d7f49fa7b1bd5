import Foundation
import MQTT

extension Growth {
    /// Messages that a session in a file holds.
    func sessions() async throws -> GrowthTable {
        var table = GrowthTable(
            "Sessions in a file", sizes: "messages stored",
            note: """
                Messages of 24 bytes on a topic of 48. *Filled* a thousand at a time; *one more* is one message of its own \
                added to n of them; *finished* from the first to the last, a thousand at a time; *sent* by a client that finds them and a broker that \
                has forgotten the session, until all are acknowledged. All without waiting for the \
                disk. A log of more than 1 MiB is written anew when most of it is history.
                """,
            .whole("filled"), .whole("opened"), .whole("file", .bytes), .each("one more"), .whole("finished"),
            .whole("sent"))
        for count in sizes([0, 1000, 10_000, 100_000, 1_000_000]) {
            var figures = [Double](repeating: .infinity, count: 6)
            for _ in 0..<max(1, setting.rounds) {
                for (index, figure) in try await session(count).enumerated() {
                    figures[index] = min(figures[index], figure)
                }
            }
            table.add(count, figures[0], figures[1], figures[2], figures[3], figures[4], figures[5])
        }
        return table
    }

    /// A new store in a directory of its own, which holds `count` messages and is closed, and what filling it cost.
    private func filledStore(_ count: Int, _ directory: URL) async throws -> Costs {
        let store = store(in: directory)
        _ = try store.open()
        defer { store.close() }
        try store.setClientID("growth")
        return try await measured { try each(1..<(count + 1), in: store) { Self.message($0) } }
    }

    private func store(in directory: URL) -> FileSessionStore {
        var options = FileSessionStore.Options()
        options.sync = .never
        options.limits = SessionStoreLimits(maximumMessages: 2 << 20, maximumBytes: 1 << 30)
        return FileSessionStore(directory: directory.path, options: options)
    }

    private func session(_ count: Int) async throws -> [Double] {
        let directory = Shell.directory.appendingPathComponent("growth-session")
        defer { try? FileManager.default.removeItem(at: directory) }
        let filled = try await filledStore(count, directory)
        let again = store(in: directory)
        var stored = 0
        let opened = try await measured { stored = try again.open().records.count }
        guard stored == count else { throw Shell.Failure(description: "\(stored) records of \(count) came back") }
        let path = directory.appendingPathComponent("session.log").path
        let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
        let more = scaled(1000)
        let oneMore = try await measured {
            for sequence in (count + 1)..<(count + 1 + more) { try again.append([Self.message(sequence)]) }
        }
        let finished = try await measured {
            try each(1..<(count + 1), in: again) { .finished(sequence: UInt64($0)) }
        }
        again.close()
        return [
            filled.processorSeconds, opened.processorSeconds, Double(size), oneMore.processorSeconds / Double(more),
            finished.processorSeconds, try await sent(count).processorSeconds,
        ]
    }

    /// A client that finds `count` messages in its store, from its start until the broker has acknowledged all of them.
    private func sent(_ count: Int) async throws -> Costs {
        let directory = Shell.directory.appendingPathComponent("growth-client")
        defer { try? FileManager.default.removeItem(at: directory) }
        _ = try await filledStore(count, directory)
        var configuration = MQTTConfiguration(clientID: "growth")
        configuration.sessionStore = store(in: directory)
        configuration.cleanStart = false
        configuration.maximumInFlight = 100
        configuration.maximumQueuedMessages = 2 << 20
        configuration.maximumQueuedBytes = 1 << 30
        let client = MQTTClient("mqtt://127.0.0.1:\(setting.mqtt.port)", configuration: configuration)
        let costs = try await measured {
            try await client.connect()
            // It stands behind all others.
            try await client.publish([1], to: MQTTRows.topic, qos: .atLeastOnce)
        }
        let bytes = client.counters.bytesSent
        await client.disconnect()
        guard bytes > count * 78 else { throw Shell.Failure(description: "only \(bytes) bytes left") }
        return costs
    }

    /// Messages of QoS 2 that are between PUBREC and PUBCOMP, which there may be as many of as packet identifiers.
    func exchanges() async throws -> GrowthTable {
        var table = GrowthTable(
            "Exchanges of QoS 2 in a session", sizes: "under way",
            note:
                "In memory: n messages, then PUBREC for all of them, then PUBCOMP in the same order or the other way round.",
            .whole("in order"), .whole("from the last"))
        for count in sizes([1, 10, 100, 1000, 10_000, 65_535]) {
            let inOrder = try await least { try await exchange(count, (1...count).map(\.self)) }
            let fromTheLast = try await least { try await exchange(count, (1...count).reversed()) }
            table.add(count, inOrder, fromTheLast)
        }
        return table
    }

    private func exchange(_ count: Int, _ order: [Int]) async throws -> Costs {
        let store = MemorySessionStore(limits: SessionStoreLimits(maximumMessages: 1 << 20, maximumBytes: 1 << 30))
        _ = try store.open()
        return try await measured {
            try each(1..<(count + 1), in: store) { Self.message($0, qos: .exactlyOnce, packetID: UInt16($0)) }
            try each(1..<(count + 1), in: store) { .released(sequence: UInt64($0)) }
            try store.append(order.map { .finished(sequence: UInt64($0)) })
            guard store.messageCount == 0 else { throw Shell.Failure(description: "messages are left") }
        }
    }

    private func each(
        _ sequences: Range<Int>, in store: any SessionStore, _ record: (Int) -> MQTTStoreRecord
    ) throws {
        for start in stride(from: sequences.lowerBound, to: sequences.upperBound, by: 1000) {
            try store.append((start..<min(start + 1000, sequences.upperBound)).map(record))
        }
    }

    private static func message(_ sequence: Int, qos: QoS = .atLeastOnce, packetID: UInt16 = 0) -> MQTTStoreRecord {
        .message(
            .init(
                sequence: UInt64(sequence), packetID: packetID, topic: MQTTRows.topic,
                payload: [UInt8](repeating: 0x70, count: 24), qos: qos, retain: false, properties: []))
    }
}
