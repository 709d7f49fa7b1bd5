import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing

/// How many bytes an operation puts on the wire, and that it takes one write. As the specifications have it, byte by byte.
@Suite(.turns)
struct ByteTests {
    /// 48 bytes.
    private static let topic = "benchmark/site-0001/line-0002/machine-0003/state"
    private static let payload = [UInt8](repeating: 0x70, count: 24)

    /// What `operation` wrote once everything that it began is done.
    private func expect(
        _ bytes: Int, writes: Int = 1, by client: MQTTClient, sourceLocation: SourceLocation = #_sourceLocation,
        _ operation: () async throws -> Void
    ) async throws {
        let before = client.counters
        try await operation()
        // The counters are brought up to date when what was under way is done.
        let isThere = await eventually { client.counters.bytesSent >= before.bytesSent + bytes }
        let after = client.counters
        #expect(isThere && after.bytesSent - before.bytesSent == bytes, sourceLocation: sourceLocation)
        #expect(after.writes - before.writes <= writes, sourceLocation: sourceLocation)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func mqttWritesWhatItsFormatNeedsAndNoMore(_ version: MQTTVersion) async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration(clientID: "bytes")
        configuration.version = version
        configuration.outboundTopicAliasMaximum = 0
        let client = MQTTClient(try #require(broker.urls.mqtt), configuration: configuration)
        try await client.connect()
        // The length of the properties.
        let properties = version == .v5_0 ? 1 : 0
        let publish = 2 + 2 + Self.topic.utf8.count + properties + Self.payload.count
        // CONNECT: 2 of header, 6 of name, level, flags, 2 of keep alive, properties, 2 and 5 of the identifier.
        #expect(await eventually { client.counters.bytesSent >= 19 })
        try await expect(publish, by: client) { try await client.publish(Self.payload, to: Self.topic) }
        try await expect(publish + 2, by: client) {
            try await client.publish(Self.payload, to: Self.topic, qos: .atLeastOnce)
        }
        // PUBREL is 4 bytes in both versions: success is left out.
        try await expect(publish + 2 + 4, writes: 2, by: client) {
            try await client.publish(Self.payload, to: Self.topic, qos: .exactlyOnce)
        }
        let message = MQTTOutgoingMessage(Self.payload, to: Self.topic, qos: .atLeastOnce)
        try await expect(10 * (publish + 2), by: client) {
            try await client.publish([MQTTOutgoingMessage](repeating: message, count: 10)).check()
        }
        var subscription: MQTTSubscription?
        try await expect(2 + 2 + properties + 2 + 3 + 1, by: client) {
            subscription = try await client.subscribe(to: "a/#")
        }
        try await expect(2 + 2 + properties + 2 + 3, by: client) { try await subscription?.unsubscribe() }
        await client.disconnect()
        await broker.stop()
    }

    @Test func aTopicAliasTakesThePlaceOfATopic() async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = MQTTConfiguration(clientID: "bytes")
        configuration.version = .v5_0
        let client = MQTTClient(try #require(broker.urls.mqtt), configuration: configuration)
        try await client.connect()
        // Aliases are given to topics that come again.
        for _ in 0..<3 { try await client.publish(Self.payload, to: Self.topic, qos: .atLeastOnce) }
        // An empty topic, the identifier, and the property in 1 + 3 bytes.
        try await expect(2 + 2 + 2 + 4 + 24, by: client) {
            try await client.publish(Self.payload, to: Self.topic, qos: .atLeastOnce)
        }
        await client.disconnect()
        await broker.stop()
    }

    @Test func stompWritesItsHeadersAndNoMore() async throws {
        let broker = try await LoopbackBroker.start()
        var configuration = STOMPConfiguration()
        // A busy machine would send some.
        (configuration.outgoingHeartBeat, configuration.incomingHeartBeat) = (.zero, .zero)
        let client = STOMPClient(try #require(broker.urls.stomp), configuration: configuration)
        try await client.connect()
        try await client.sendAndConfirm([], to: "/topic/a")
        let before = client.counters
        try await client.send([1, 2, 3], to: "/topic/a")
        try await client.sendAndConfirm([1, 2, 3], to: "/topic/a")
        let plain = "SEND\ndestination:/topic/a\ncontent-length:3\n\n".utf8.count + 3 + 1
        let confirmed = plain + "receipt:2\n".utf8.count
        #expect(await eventually { client.counters.bytesSent >= before.bytesSent + plain + confirmed })
        #expect(client.counters.bytesSent == before.bytesSent + plain + confirmed)
        #expect(client.counters.writes - before.writes <= 2)
        await client.disconnect()
        await broker.stop()
    }
}
