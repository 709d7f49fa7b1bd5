import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// What the sequences of one filter get of the messages that the server had retained.
@Suite("Client: retained messages", .turns)
struct RetainedMessageTests {
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `each sequence of a filter begins with its retained messages`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        var sequences: [MQTTSubscription] = []
        for qos in [QoS.atLeastOnce, .atMostOnce, .exactlyOnce, .atLeastOnce] {
            let door = try await client.subscribe(to: "house/+", qos: qos)
            let first = try #require(try await door.first(1).first)
            #expect(first.text == "closed" && first.isRetained)
            sequences.append(door)
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `sequences of a filter that are opened at once each get its retained message`(version: MQTTVersion)
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 0..<8 {
                group.addTask { try await client.subscribe(to: "house/door").first(1).first?.text }
            }
            for try await text in group { #expect(text == "closed") }
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `sequences that want no retained messages or are shared send no second SUBSCRIBE`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = [
            try await client.subscribe(to: "a"), try await client.subscribe(to: "$share/workers/a"),
        ]
        // The filters overlap: the first one gets an identifier, and no retained messages again.
        #expect(server.subscribed.map(\.filter) == ["a", "a", "$share/workers/a"])
        #expect(server.subscribed.map(\.retainHandling)[1] == .doNotSend)
        let further = [
            try await client.subscribe(to: "a", retainHandling: .sendIfNew),
            try await client.subscribe(to: "a", qos: .atMostOnce, retainHandling: .doNotSend),
            try await client.subscribe(to: "$share/workers/a"),
        ]
        #expect(further.map(\.reasonCodes) == [[.grantedQoS1], [.grantedQoS1], [.grantedQoS1]])
        #expect(server.subscribed.count == 3)
        server.send("x", to: "a")
        for messages in first + further { #expect(try await messages.first(1).map(\.text) == ["x"]) }
        await client.disconnect()
    }

    @Test
    func `the SUBSCRIBE for a further sequence keeps the QoS, the options and the properties of the subscription`()
        async throws
    {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        var properties = MQTTProperties()
        properties.subscriptionIdentifiers = [7]
        let first = try await client.subscribe(
            to: "a", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend,
            properties: properties)
        let second = try await client.subscribe(to: "a", qos: .atMostOnce)
        var expected = MQTTSubscriptionRequest(
            filter: "a", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend)
        #expect(server.subscribed.first == expected)
        expected.retainHandling = .sendAtSubscribe
        #expect(server.subscribed.dropFirst() == [expected])
        #expect(server.properties == [properties, properties])
        #expect(second.grantedQoS == .exactlyOnce)
        withExtendedLifetime(first) {}
        await client.disconnect()
    }

    /// The first one has them, or wants none.
    @Test func `a sequence with a higher QoS that wants no retained messages does not repeat them`() async throws {
        let server = SubscribingServer()
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        let first = try await client.subscribe(to: "a", qos: .atMostOnce)
        let second = try await client.subscribe(to: "a", qos: .atLeastOnce, retainHandling: .doNotSend)
        #expect(server.subscribed.map(\.qos) == [.atMostOnce, .atLeastOnce])
        #expect(server.subscribed.map(\.retainHandling) == [.sendAtSubscribe, .doNotSend])
        // A server without the session has neither.
        server.scriptedServer.link?.dropConnection()
        #expect(await eventually { server.subscribed.count == 3 })
        #expect(server.subscribed.last?.qos == .atLeastOnce)
        #expect(server.subscribed.last?.retainHandling == .sendAtSubscribe)
        withExtendedLifetime((first, second)) {}
        await client.disconnect()
    }

    /// Before the one that wants them, and after it; also when the filter is subscribed on a new connection.
    @Test(arguments: [true, false])
    func `a sequence that wants no retained messages gets none that another one of its filter asks for`(isFirst: Bool)
        async throws
    {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        try await client.publish("closed", to: "house/door", qos: .atLeastOnce, retain: true)
        let early = isFirst ? try await client.subscribe(to: "house/+", retainHandling: .doNotSend) : nil
        let wanting = try await client.subscribe(to: "house/+")
        let refusing =
            if let early { early } else { try await client.subscribe(to: "house/+", retainHandling: .doNotSend) }
        #expect(try await wanting.first(1).map(\.text) == ["closed"])
        await bench.cut()
        #expect(try await wanting.first(1).map(\.text) == ["closed"])
        try await client.publish("open", to: "house/door", qos: .atLeastOnce, retain: true)
        for messages in [wanting, refusing] {
            let message = try await messages.first(1).first
            #expect(message?.text == "open" && message?.isRetained == false)
        }
        await client.disconnect()
        await bench.stop()
    }

    /// RETAIN does not show then that a message was sent for SUBSCRIBE.
    @Test(arguments: ["house/+", "house/#"])
    func `with retainAsPublished, a sequence that wants no retained messages gets those that are published later`(
        filter: String
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let refusing = try await client.subscribe(to: "house/+", qos: .atMostOnce, retainHandling: .doNotSend)
        let wanting = try await client.subscribe(to: "house/+", qos: .atLeastOnce)
        let keeping = try await client.subscribe(to: filter, qos: .exactlyOnce, retainAsPublished: true)
        try await client.publish("open", to: "house/door", qos: .atLeastOnce, retain: true)
        for messages in [refusing, wanting, keeping] {
            let message = try await messages.first(1).first
            #expect(message?.text == "open" && message?.isRetained == true)
        }
        await client.disconnect()
        await bench.stop()
    }
}
