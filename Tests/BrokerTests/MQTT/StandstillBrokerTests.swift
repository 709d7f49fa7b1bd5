import MQTT
import TestSupport
import Testing

/// A loop over a subscription that awaits an acknowledgement of its own client for each message, at real brokers.
@Suite(.serialized, .turns)
struct StandstillBrokerTests {
    enum Server: String, CaseIterable, Sendable {
        case mosquitto, mosquitto5, rabbitMQ

        static let usable = allCases.filter {
            $0 == .rabbitMQ ? Broker.rabbitMQ.isUsable : Broker.mosquitto.isUsable
        }
    }

    enum Way: CaseIterable, Sendable {
        case automatic, manual, onExecutor
    }

    /// A client, a sender, and what stops a broker that was started for them.
    private func clients(
        _ server: Server, _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> (client: MQTTClient, sender: MQTTClient, stop: @Sendable () async -> Void) {
        var configuration = MQTTConfiguration(clientID: "loop-%%%%")
        configuration.allowSlowBrokers()
        configuration.version = server == .mosquitto5 ? .v5_0 : .v3_1_1
        let url: String
        var stop: @Sendable () async -> Void = {}
        if server == .rabbitMQ {
            let port = try #require(try await SharedBrokers.rabbitMQ().mqttPort)
            url = "mqtt://guest:guest@127.0.0.1:\(port)"
        } else {
            let broker = try await Mosquitto.start()
            url = "mqtt://127.0.0.1:\(broker.port)"
            stop = { await broker.stop() }
        }
        let sender = MQTTClient(url, configuration: configuration)
        change(&configuration)
        let client = MQTTClient(url, configuration: configuration)
        try await sender.connect()
        try await client.connect()
        return (client, sender, stop)
    }

    @Test(.requires(anyOf: .mosquitto, .rabbitMQ), arguments: Server.usable, Way.allCases)
    func `messages of QoS 1 are all handled, whatever the buffer does`(server: Server, way: Way) async throws {
        let (client, sender, stop) = try await clients(server)
        let count = 60
        for overflow in [BufferPolicy.Overflow.dropOldest, .pauseReading] {
            let topic = "standstill/\(server)/\(way)"
            let input = try await client.subscribe(
                to: "\(topic)/in", qos: .atLeastOnce, buffer: BufferPolicy(messages: 5, overflow: overflow),
                acknowledgement: way == .manual ? .manual : .automatic)
            try await sender.publish(
                (0..<count).map { .init(Array("\($0)".utf8), to: "\(topic)/in", qos: .atLeastOnce) }
            ).check()
            @Sendable func handle() async throws -> [String?] {
                var texts: [String?] = []
                for try await message in input {
                    try await client.publish(message.bytes, to: "\(topic)/out", qos: .atLeastOnce)
                    if way == .manual { message.acknowledge() }
                    texts.append(message.text)
                    if texts.count == count { break }
                }
                return texts
            }
            let texts = try await withTimeout(.patience, "\(count) messages") {
                way == .onExecutor ? try await client.withExecutor { try await handle() } : try await handle()
            }
            #expect(texts == (0..<count).map { "\($0)" })
            try await input.unsubscribe()
        }
        await client.disconnect()
        await sender.disconnect()
        await stop()
    }

    @Test(.requires(anyOf: .mosquitto, .rabbitMQ), arguments: Server.usable)
    func `a reader that stops reading learns it, and where to look`(server: Server) async throws {
        // Messages of QoS 0 in a subscription of QoS 1, and then more than all subscriptions may hold.
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            let (client, sender, stop) = try await clients(server) {
                $0.requestTimeout = .seconds(3)
                if qos == .atLeastOnce { $0.maximumUnreadBytes = 100_000 }
            }
            let topic = "standstill/\(server)/\(qos.rawValue)"
            let overflow: BufferPolicy.Overflow = qos == .atMostOnce ? .pauseReading : .dropOldest
            let input = try await client.subscribe(
                to: "\(topic)/in", qos: .atLeastOnce, buffer: BufferPolicy(messages: 5, overflow: overflow))
            let events = client.events
            let payload = Array(repeating: UInt8(120), count: 50_000)
            for _ in 0..<20 { try await sender.publish(payload, to: "\(topic)/in", qos: qos) }
            let error = await #expect(throws: MQTTError.self) {
                try await withTimeout(.patience, "the end of the loop") {
                    var isFirst = true
                    for try await message in input {
                        // Until the buffer is full.
                        if isFirst { for await event in events { if case .readingPaused = event { break } } }
                        isFirst = false
                        try await client.publish(message.bytes, to: "\(topic)/out", qos: .atLeastOnce)
                    }
                }
            }
            #expect(error?.code == .timedOut && error?.message.contains("'\(topic)/in' is full") == true)
            await client.disconnect()
            await sender.disconnect()
            await stop()
        }
    }
}
