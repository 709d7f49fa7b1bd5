import Foundation
import MQTT
import STOMP

/// From publishing a message to receiving it through a real broker, one message at a time, beside the same in C.
struct LatencyRows {
    let rounds: Int
    let scale: Double
    /// Other clients, where they are to be measured too.
    let peers: PeerRows?

    private var count: Int { max(100, Int(5_000 * scale)) }
    private static let payload = [UInt8](repeating: 0x70, count: 24)

    /// Through a Mosquitto that this program starts; none where it is not installed.
    func mosquitto(_ cores: Cores) async throws -> [Row] {
        let port = "\(Ports.free())"
        guard let broker = try? Child("/usr/bin/env", ["sh", "-c", "exec mosquitto -p \(port) 2> /dev/null"]) else {
            return []
        }
        defer { broker.end() }
        let client = try await connected { MQTTClient("mqtt://127.0.0.1:\(port)", clientID: "latency") }
        await client.disconnect()
        let awake = try cores.keptAwake()
        defer { awake?.end() }
        var rows: [Row] = []
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            let name = "MQTT through Mosquitto, QoS \(qos.rawValue), \(cores.rawValue)"
            for place in [Place.pool, .loop] {
                rows += try await self.rows(name, ["mqtt\(qos.rawValue)", port], place) {
                    try await exchangeMQTT(port, qos, place)
                }
            }
            rows += peers?.latency(name, port: port, qos: Int(qos.rawValue), count: count) ?? []
        }
        return rows
    }

    /// Through the RabbitMQ whose STOMP port `RABBITMQ_STOMP_PORT` names; none without it.
    func rabbitMQ(_ cores: Cores) async throws -> [Row] {
        guard let port = ProcessInfo.processInfo.environment["RABBITMQ_STOMP_PORT"] else {
            FileHandle.standardError.write(
                Data("The rows through RabbitMQ are left out. Name its STOMP port with RABBITMQ_STOMP_PORT.\n".utf8))
            return []
        }
        let awake = try cores.keptAwake()
        defer { awake?.end() }
        var rows: [Row] = []
        for place in [Place.pool, .loop] {
            rows += try await self.rows("STOMP through RabbitMQ, \(cores.rawValue)", ["stomp", port], place) {
                try await exchangeSTOMP(port, place)
            }
        }
        return rows
    }

    // MARK: Ours

    private struct Times {
        var sorted: [Double]
        var costs: Costs
    }

    private func exchangeMQTT(_ port: String, _ qos: QoS, _ place: Place) async throws -> Times {
        let client = MQTTClient("mqtt://127.0.0.1:\(port)", clientID: "latency")
        try await client.connect()
        let messages = try await client.subscribe(to: "latency", qos: qos)
        let result = try await place.run(on: client) {
            var iterator = messages.makeAsyncIterator()
            return try await repeated {
                try await client.publish(Self.payload, to: "latency", qos: qos)
                _ = try await iterator.next()
            }
        }
        await client.disconnect()
        return result
    }

    private func exchangeSTOMP(_ port: String, _ place: Place) async throws -> Times {
        var configuration = STOMPConfiguration()
        configuration.credentials = Credentials(userName: "guest", password: "guest")
        let client = STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
        try await client.connect()
        let messages = try await client.subscribe(to: "/topic/latency")
        let result = try await place.run(on: client) {
            var iterator = messages.makeAsyncIterator()
            return try await repeated {
                try await client.send(Self.payload, to: "/topic/latency")
                _ = try await iterator.next()
            }
        }
        await client.disconnect()
        return result
    }

    private func repeated(_ exchange: () async throws -> Void) async throws -> Times {
        for _ in 0..<100 { try await exchange() }
        var times: [Double] = []
        times.reserveCapacity(count)
        let costs = try await measured {
            for _ in 0..<count {
                let start = ContinuousClock.now
                try await exchange()
                times.append((ContinuousClock.now - start) / .nanoseconds(1))
            }
        }
        return Times(sorted: times.sorted(), costs: costs)
    }

    // MARK: Rows

    private func rows(
        _ name: String, _ arguments: [String], _ place: Place, _ ours: () async throws -> Times
    ) async throws -> [Row] {
        let limit = try Shell.compile("latency_limit")
        var middle = Row("\(name), publish to receive, median\(place.rawValue)", unit: "ns", isRate: false, goal: "–")
        var tail = Row(
            "\(name), publish to receive, p99\(place.rawValue)", unit: "ns", isRate: false, goal: "–", settles: false)
        for _ in 0..<rounds {
            let limits = try Shell.run(limit, [arguments[1], arguments[0], "\(count)"])
                .split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            let times = try await ours()
            middle.add(
                ours: times.sorted[count / 2], limit: limits[0], times.costs, count, limitProcessor: limits[2])
            tail.add(ours: times.sorted[count * 99 / 100], limit: limits[1])
        }
        return [middle, tail]
    }

    /// Tries until a broker that is starting accepts.
    private func connected(_ make: () -> MQTTClient) async throws -> MQTTClient {
        for _ in 0..<100 {
            let client = make()
            if (try? await client.connect()) != nil { return client }
            await client.disconnect()
            try await Task.sleep(for: .milliseconds(50))
        }
        throw Shell.Failure(description: "Mosquitto does not accept connections")
    }
}
