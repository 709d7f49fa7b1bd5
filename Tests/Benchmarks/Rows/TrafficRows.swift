import Foundation
import MQTT

/// The rows for traffic as its users send it, beside a C program that sends and reads the same bytes.
struct TrafficRows {
    let port: String
    /// The program in C.
    let limit: String
    let rounds: Int
    let scale: Double

    private func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * scale) / 1000) * 1000 }

    private func client(_ version: MQTTVersion = .v3_1_1) async throws -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "bench")
        configuration.version = version
        configuration.maximumInFlight = 100
        // What the broker sent would be missing on another connection, and the row would wait for it for ever.
        configuration.reconnect = .never
        let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
        try await client.connect()
        return client
    }

    /// What the C program takes: seconds on the wall and seconds of the processor.
    private func limit(_ version: MQTTVersion, _ mode: String, _ argument: String) throws -> (Double, Double) {
        let text = try Shell.run(limit, [port, version == .v5_0 ? "5" : "4", mode, argument])
        let numbers = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        return numbers.count == 2 ? (numbers[0], numbers[1]) : (.nan, .nan)
    }

    /// One round of either side, ours first in every other round.
    private func addRounds(
        to row: inout Row, of count: Int, limit: () throws -> (Double, Double), ours: () async throws -> Costs
    ) async throws {
        for round in 0...rounds {
            let costs: Costs
            let seconds: (Double, Double)
            if round % 2 == 0 {
                seconds = try limit()
                costs = try await ours()
            } else {
                costs = try await ours()
                seconds = try limit()
            }
            // The first warms up.
            if round == 0 && rounds > 1 { continue }
            row.add(costs, count, limit: Double(count) / seconds.0, limitProcessor: seconds.1 * 1e9 / Double(count))
            if rounds == 1 { return }
        }
    }

    // MARK: Sets of rows

    /// 1,000 topics, payloads of up to 4 KiB, half of them with two user properties, QoS 0 and 1 in turn.
    func mixed() async throws -> [Row] {
        let traffic = Traffic(count: 300_000, topics: 1_000, payload: nil, qos: nil, hasProperties: nil)
        return [
            try await publish("mixed traffic, 5.0, arrays of 1,000", traffic, version: .v5_0, goal: "–"),
            try await receive("mixed traffic, 5.0, owned", traffic, version: .v5_0, .owned, goal: "–"),
        ]
    }

    func receive() async throws -> [Row] {
        [
            try await receive("10 topics, slices", Traffic(count: 5_000_000, topics: 10), goal: "–"),
            try await receive("1,000 topics, slices", Traffic(count: 5_000_000, topics: 1_000), goal: "≥ 0.45"),
            try await receive("10,000 topics, slices", Traffic(count: 5_000_000, topics: 10_000), goal: "≥ 0.3"),
            try await receive("1,000 topics, owned", Traffic(count: 5_000_000, topics: 1_000), .owned, goal: "≥ 0.35"),
        ]
    }

    /// QoS 1, of which the client acknowledges each message.
    func receiveAtLeastOnce() async throws -> Row {
        try await receive(
            "QoS 1, one topic, window 1,000", Traffic(count: 1_000_000, qos: .atLeastOnce, window: 1_000),
            goal: "≥ 0.4")
    }

    /// QoS 1, each message once the one before is acknowledged.
    func receiveSingly() async throws -> Row {
        try await receive(
            "QoS 1, one at a time", Traffic(count: 20_000, qos: .atLeastOnce, window: 1), goal: "–")
    }

    /// QoS 2, 100 in flight, by array.
    func exactlyOnce() async throws -> Row {
        try await publish(
            "QoS 2, window 100, arrays of 1,000", Traffic(count: 300_000, qos: .exactlyOnce), mode: "qos2",
            goal: "≥ 0.8")
    }

    // MARK: Receiving

    enum Reading: String {
        case slices, owned
    }

    @concurrent private static func consume(
        _ messages: MQTTSubscription, _ count: Int, _ reading: Reading
    ) async throws {
        var (seen, bytes) = (0, 0)
        for try await message in messages {
            switch reading {
            case .slices: bytes &+= message.payload.count
            case .owned: bytes &+= message.bytes.count &+ message.topic.utf8.count
            }
            seen += 1
            if seen == count { break }
        }
        precondition(seen == count, "the broker sent \(seen) messages of \(count), with \(bytes) bytes")
    }

    private func received(
        _ traffic: Traffic, _ version: MQTTVersion, _ reading: Reading, log: FrameLog? = nil
    ) async throws -> Costs {
        let client = try await client(version)
        if let log { client.inspect(into: log) }
        let costs = try await measured(calls: client.calls) {
            let messages = try await client.subscribe(
                to: "growth/#", qos: .atLeastOnce, buffer: BufferPolicy(overflow: .pauseReading))
            let flood = Task { try await client.subscribe(to: "traffic/" + traffic.description, qos: .atLeastOnce) }
            try await Self.consume(messages, traffic.count, reading)
            _ = try await flood.value
        }
        await client.disconnect()
        return costs
    }

    func receive(
        _ name: String, _ traffic: Traffic, version: MQTTVersion = .v3_1_1, _ reading: Reading = .slices, goal: String
    ) async throws -> Row {
        var traffic = traffic
        traffic.count = scaled(traffic.count)
        var row = Row("MQTT receive, \(name)", unit: "msg/s", goal: goal)
        try await addRounds(to: &row, of: traffic.count) {
            try limit(version, reading == .owned ? "owned" : "receive", traffic.description)
        } ours: {
            try await received(traffic, version, reading)
        }
        return row
    }

    /// 10,000 filters in ten sequences, and a message on a topic of each in turn.
    func filters() async throws -> Row {
        let traffic = Traffic(count: scaled(1_000_000), topics: 10_000)
        var row = Row("MQTT receive, 10,000 filters in ten sequences, 10,000 topics", unit: "msg/s", goal: "≥ 0.08")
        try await addRounds(to: &row, of: traffic.count) {
            try limit(.v3_1_1, "receive", traffic.description)
        } ours: {
            let client = try await client()
            var sequences: [MQTTSubscription] = []
            for ten in 0..<10 {
                let requests = (0..<1_000).map { MQTTSubscriptionRequest(filter: Self.filter(ten * 1_000 + $0)) }
                sequences.append(
                    try await client.subscribe(to: requests, buffer: BufferPolicy(overflow: .pauseReading)))
            }
            let costs = try await measured(calls: client.calls) {
                try await consumed(sequences, traffic, client)
            }
            await client.disconnect()
            return costs
        }
        return row
    }

    /// 10,000 sequences with a task each.
    func sequences() async throws -> Row {
        let traffic = Traffic(count: max(10_000, scaled(200_000) / 10_000 * 10_000), topics: 10_000)
        var row = Row(
            "MQTT receive, 10,000 sequences with a task each, CPU", unit: "ns", isRate: false, goal: "≤ 5000 ns")
        for _ in 0..<rounds {
            let client = try await client()
            var sequences: [MQTTSubscription] = []
            for number in 0..<10_000 {
                sequences.append(
                    try await client.subscribe(
                        to: Self.filter(number), qos: .atMostOnce, buffer: BufferPolicy(overflow: .pauseReading)))
            }
            let costs = try await measured(calls: client.calls) {
                try await consumed(sequences, traffic, client)
            }
            await client.disconnect()
            row.add(ours: costs.processorSeconds * 1e9 / Double(traffic.count))
            row.addCosts(costs, traffic.count)
        }
        return row
    }

    private static func filter(_ number: Int) -> String {
        let digits = String(number)
        return "growth/+/" + String(repeating: "0", count: 5 - digits.count) + digits + "/#"
    }

    /// Reads all sequences at once until every message has arrived.
    private func consumed(_ sequences: [MQTTSubscription], _ traffic: Traffic, _ client: MQTTClient) async throws {
        let each = traffic.count / sequences.count
        // Not in a task group, which takes time in proportion to its tasks for the end of each of them.
        let readers = sequences.map { messages in Task { try await Self.consume(messages, each, .slices) } }
        defer { for reader in readers { reader.cancel() } }
        _ = try await client.subscribe(to: "traffic/" + traffic.description, qos: .atMostOnce)
        for reader in readers { try await reader.value }
    }

    /// The default `BufferPolicy` beside a reader that is slower than the network: how many messages it drops.
    func defaultPolicy() async throws -> Row {
        let traffic = Traffic(count: scaled(1_000_000), topics: 1_000)
        var row = Row(
            "MQTT receive, 1,000 topics, default buffer policy: messages dropped of a million", unit: "", isRate: false,
            goal: "–")
        for _ in 0..<rounds {
            let client = try await client()
            let messages = try await client.subscribe(to: "growth/#", qos: .atMostOnce)
            let flood = Task { try await client.subscribe(to: "traffic/" + traffic.description, qos: .atMostOnce) }
            var (seen, dropped) = (0, 0)
            for try await message in messages {
                seen += 1
                dropped += message.droppedBefore
                if seen + dropped == traffic.count { break }
            }
            _ = try await flood.value
            await client.disconnect()
            row.add(ours: Double(dropped) * 1e6 / Double(traffic.count))
        }
        return row
    }

    // MARK: Publishing

    private func published(_ traffic: Traffic, _ version: MQTTVersion, log: FrameLog? = nil) async throws -> Costs {
        let client = try await client(version)
        if let log { client.inspect(into: log) }
        // Whole periods of what comes in turn.
        let array = traffic.messages(0..<min(traffic.count, max(traffic.topics, 1_000)))
        let costs = try await measured(calls: client.calls) {
            for _ in 0..<(traffic.count / array.count) { try await client.publish(array).check() }
            try await client.publish([0x70], to: "growth/end", qos: .atLeastOnce)
        }
        await client.disconnect()
        return costs
    }

    func publish(
        _ name: String, _ traffic: Traffic, version: MQTTVersion = .v3_1_1, mode: String = "publish", goal: String
    ) async throws -> Row {
        var traffic = traffic
        traffic.count = scaled(traffic.count)
        var row = Row("MQTT publish, \(name)", unit: "msg/s", goal: goal)
        try await addRounds(to: &row, of: traffic.count) {
            try limit(version, mode, traffic.description)
        } ours: {
            try await published(traffic, version)
        }
        return row
    }

    /// One call for each message.
    private func publishedSingly(_ count: Int, _ payload: Int, _ properties: MQTTProperties) async throws -> Costs {
        let client = try await client(.v5_0)
        let payload = [UInt8](repeating: 0x70, count: payload)
        let costs = try await measured(calls: client.calls) {
            for _ in 0..<count {
                try await client.publish(payload, to: MQTTRows.topic, properties: properties)
            }
            try await client.publish(payload, to: MQTTRows.topic, qos: .atLeastOnce)
        }
        await client.disconnect()
        return costs
    }

    /// Two user properties beside a payload that is 36 bytes longer.
    func properties() async throws -> [Row] {
        let count = scaled(1_000_000)
        let with = Traffic(count: count, hasProperties: true)
        let without = Traffic(count: count, payload: 60)
        var rows: [Row] = []
        for name in ["publish singly", "publish arrays", "receive"] {
            var row = Row(
                "MQTT 5.0 \(name), two user properties ÷ a payload 36 bytes longer", unit: "msg/s", goal: "≥ 0.7")
            func costs(_ traffic: Traffic) async throws -> Costs {
                switch name {
                case "publish singly":
                    try await publishedSingly(
                        count, traffic.payload ?? 0, traffic.hasProperties == true ? Traffic.properties : [])
                case "publish arrays": try await published(traffic, .v5_0)
                default: try await received(traffic, .v5_0, .slices)
                }
            }
            try await addPairs(to: &row, of: count) {
                try await costs(without)
            } ours: {
                try await costs(with)
            }
            rows.append(row)
        }
        return rows
    }

    /// The same client and traffic with a log that records each packet, and without.
    func watched() async throws -> [Row] {
        let traffic = Traffic(count: scaled(1_000_000), topics: 10)
        var publish = Row("MQTT publish arrays, ten topics, watched ÷ not", unit: "msg/s", goal: "≥ 0.4")
        try await addPairs(to: &publish, of: traffic.count) {
            try await published(traffic, .v3_1_1)
        } ours: {
            try await published(traffic, .v3_1_1, log: FrameLog())
        }
        var receive = Row("MQTT receive, ten topics, watched ÷ not", unit: "msg/s", goal: "≥ 0.3")
        try await addPairs(to: &receive, of: traffic.count) {
            try await received(traffic, .v3_1_1, .slices)
        } ours: {
            try await received(traffic, .v3_1_1, .slices, log: FrameLog())
        }
        return [publish, receive]
    }

    /// Two ways of the same, in turn; the second is the row's figure.
    private func addPairs(
        to row: inout Row, of count: Int, other: () async throws -> Costs, ours: () async throws -> Costs
    ) async throws {
        for _ in 0..<rounds {
            let other = try await other()
            row.add(
                try await ours(), count, limit: Double(count) / other.seconds,
                limitProcessor: other.processorSeconds * 1e9 / Double(count))
        }
    }

    // MARK: Connections

    /// CONNECT, CONNACK, DISCONNECT, one connection after the other.
    func connections(_ place: Place) async throws -> [Row] {
        let count = scaled(2_000)
        let name = "MQTT connect and disconnect\(place.rawValue)"
        var switches = Row("\(name), times that a thread waits", unit: "", isRate: false, goal: "–")
        var row = Row(name, unit: "/s", goal: place == .pool ? "≥ 0.55, ≤ 100 µs CPU" : "≥ 0.7, ≤ 70 µs CPU")
        let client = MQTTClient("mqtt://127.0.0.1:\(port)")
        try await addRounds(to: &row, of: count) {
            try limit(.v3_1_1, "connect", "\(count)")
        } ours: {
            let before = Threads.waits
            let costs = try await place.run(on: client) {
                try await measured {
                    for _ in 0..<count {
                        let one = MQTTClient(
                            "mqtt://127.0.0.1:\(port)", configuration: MQTTConfiguration(clientID: "x"))
                        try await one.connect()
                        await one.disconnect()
                    }
                }
            }
            switches.add(ours: Double(Threads.waits - before) / Double(count))
            return costs
        }
        return [row, switches]
    }
}
