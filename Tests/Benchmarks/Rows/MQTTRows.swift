import Foundation
import MQTT

extension MQTTClient {
    /// Reads and writes so far.
    nonisolated func calls() -> Int { counters.reads + counters.writes }
}

/// The rows for MQTT 3.1.1, end to end over loopback against the broker in C.
struct MQTTRows {
    let port: String
    let limit: String
    let rounds: Int
    let scale: Double
    static let topic = "benchmark/site-0001/line-0002/machine-0003/state"

    /// Thousands, so that every way of sharing them out comes out even enough.
    func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * scale) / 1000) * 1000 }

    func client() async throws -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "bench")
        configuration.maximumInFlight = 100
        let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
        try await client.connect()
        return client
    }

    private func limitSeconds(_ mode: String, _ count: Int) throws -> Double {
        Double(try Shell.run(limit, [port, mode, "\(count)"]).trimmingCharacters(in: .whitespacesAndNewlines)) ?? .nan
    }

    /// One `await publish` for each message.
    func publishSingly() async throws -> Row {
        let count = scaled(2_000_000)
        var row = Row("MQTT QoS 0 publish, one call each", unit: "msg/s", goal: "≥ 0.08")
        let payload = [UInt8](repeating: 0x70, count: 24)
        for _ in 0..<rounds {
            let limit = Double(count * 5) / (try limitSeconds("publish", count * 5))
            let client = try await client()
            let costs = try await measured(calls: client.calls) {
                for _ in 0..<count { try await client.publish(payload, to: Self.topic) }
                try await client.publish(payload, to: Self.topic, qos: .atLeastOnce)
            }
            await client.disconnect()
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// Arrays of 100.
    func publishArrays() async throws -> Row {
        let count = scaled(10_000_000)
        var row = Row("MQTT QoS 0 publish, arrays of 100", unit: "msg/s", goal: "≥ 0.40")
        let message = MQTTOutgoingMessage([UInt8](repeating: 0x70, count: 24), to: Self.topic, qos: .atMostOnce)
        let array = [MQTTOutgoingMessage](repeating: message, count: 100)
        for _ in 0..<rounds {
            let limit = Double(count) / (try limitSeconds("publish", count))
            let client = try await client()
            let costs = try await measured(calls: client.calls) {
                for _ in 0..<(count / 100) { try await client.publish(array).check() }
                try await client.publish(message.payload, to: Self.topic, qos: .atLeastOnce)
            }
            await client.disconnect()
            row.add(costs, count, limit: limit)
        }
        return row
    }

    enum Reading: String, CaseIterable {
        case slices, owned, batches

        var goal: String {
            switch self {
            case .slices: "≥ 0.35"
            case .owned: "≥ 0.15"
            case .batches: "≥ 0.60"
            }
        }
    }

    /// A task of its own, as a program's loop over messages is; returns how many bytes there were.
    @concurrent private static func consume(
        _ messages: MQTTSubscription, _ count: Int, _ reading: Reading
    ) async throws -> Int {
        var seen = 0
        var bytes = 0
        switch reading {
        case .slices:
            for try await message in messages {
                bytes &+= message.payload.count
                seen += 1
                if seen == count { break }
            }
        case .owned:
            for try await message in messages {
                bytes &+= message.bytes.count &+ message.topic.utf8.count
                seen += 1
                if seen == count { break }
            }
        case .batches:
            for try await batch in messages.batches {
                for message in batch { bytes &+= message.payload.count }
                seen += batch.count
                if seen == count { break }
            }
        }
        return bytes
    }

    /// `for try await` over a subscription.
    func receive(_ reading: Reading) async throws -> Row {
        let count = scaled(10_000_000)
        var row = Row("MQTT QoS 0 receive, \(reading.rawValue)", unit: "msg/s", goal: reading.goal)
        for _ in 0..<rounds {
            let limit = Double(count) / (try limitSeconds("receive", count))
            let client = try await client()
            var bytes = 0
            let costs = try await measured(calls: client.calls) {
                let messages = try await client.subscribe(
                    to: "#", qos: .atMostOnce, buffer: BufferPolicy(overflow: .pauseReading))
                let flood = Task { try await client.subscribe(to: "flood/\(count)/24", qos: .atMostOnce) }
                bytes = try await Self.consume(messages, count, reading)
                _ = try await flood.value
            }
            await client.disconnect()
            precondition(bytes >= count * 24, "the broker sent something else")
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// 64 MiB each, which are written from the caller's own bytes: the peak says whether they were copied.
    func publishLarge() async throws -> Row {
        let count = max(1, Int(8 * scale))
        var row = Row("MQTT QoS 1 publish, 64 MiB each", unit: "msg/s", goal: "–")
        for _ in 0..<rounds {
            let client = try await client()
            let costs = try await measured(calls: client.calls) {
                let payload = [UInt8](repeating: 0x70, count: 64 << 20)
                for _ in 0..<count { try await client.publish(payload, to: Self.topic, qos: .atLeastOnce) }
            }
            await client.disconnect()
            row.add(costs, count)
        }
        return row
    }

    /// QoS 1, 100 in flight, by array.
    func windowByArray() async throws -> Row {
        let count = scaled(1_000_000)
        var row = Row("MQTT QoS 1 publish, window 100, array", unit: "msg/s", goal: "≥ 0.90")
        let message = MQTTOutgoingMessage([UInt8](repeating: 0x70, count: 24), to: Self.topic, qos: .atLeastOnce)
        let array = [MQTTOutgoingMessage](repeating: message, count: count)
        for _ in 0..<rounds {
            let limit = Double(count) / (try limitSeconds("window", count))
            let client = try await client()
            let costs = try await measured(calls: client.calls) { try await client.publish(array).check() }
            await client.disconnect()
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// QoS 1, 100 tasks that each await.
    func windowByTasks(_ place: Place) async throws -> Row {
        let count = scaled(500_000)
        // Of a round trip in the pool Dispatch alone takes more than half: see the rows "Resuming … tasks of the pool".
        let goal = place == .pool ? "≥ 0.4" : "≥ 0.45"
        var row = Row("MQTT QoS 1 publish, 100 tasks awaiting\(place.rawValue)", unit: "msg/s", goal: goal)
        let payload = [UInt8](repeating: 0x70, count: 24)
        for _ in 0..<rounds {
            let limit = Double(count) / (try limitSeconds("window", count))
            let client = try await client()
            let costs = try await measured(calls: client.calls) {
                try await place.run(on: client) {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<100 {
                            group.addTask {
                                for _ in 0..<(count / 100) {
                                    try await client.publish(payload, to: Self.topic, qos: .atLeastOnce)
                                }
                            }
                        }
                        try await group.waitForAll()
                    }
                }
            }
            await client.disconnect()
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// QoS 1, one at a time: the median and the 99th percentile of the round trip.
    func roundTrip(_ place: Place, _ cores: Cores) async throws -> [Row] {
        let count = scaled(20_000)
        let name = "MQTT QoS 1 round trip, \(cores.rawValue)"
        var middle = Row(
            "\(name), median\(place.rawValue)", unit: "ns", isRate: false, goal: place == .pool ? "≤ 1.15" : "≤ 1.05")
        var tail = Row("\(name), p99\(place.rawValue)", unit: "ns", isRate: false, goal: "–", settles: false)
        let awake = try cores.keptAwake()
        defer { awake?.end() }
        let payload = [UInt8](repeating: 0x70, count: 24)
        for _ in 0..<rounds {
            let limits = try Shell.run(limit, [port, "roundtrip", "\(count)"]).split(whereSeparator: \.isWhitespace)
                .compactMap { Double($0) }
            let client = try await client()
            let (times, costs) = try await place.run(on: client) {
                var times: [Double] = []
                times.reserveCapacity(count)
                let costs = try await measured(calls: client.calls) {
                    for _ in 0..<count {
                        let start = ContinuousClock.now
                        try await client.publish(payload, to: Self.topic, qos: .atLeastOnce)
                        times.append((ContinuousClock.now - start) / .nanoseconds(1))
                    }
                }
                return (times.sorted(), costs)
            }
            await client.disconnect()
            middle.addCosts(costs, count)
            middle.add(ours: times[count / 2], limit: limits[0])
            tail.add(ours: times[count * 99 / 100], limit: limits[1])
        }
        return [middle, tail]
    }
}
