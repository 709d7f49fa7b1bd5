import MQTTCore
import TestSupport
import Testing

@Suite("Engine: topic aliases", .heavy)
struct AliasTests {
    private func pair(ours: UInt16, theirs: UInt16) -> EnginePair {
        .persistent(
            client: { $0.outboundTopicAliasMaximum = ours }, server: { $0.topicAliasMaximum = theirs })
    }

    @Test func `a repeated topic is sent as its alias, the least recently used one is given away`() throws {
        let pair = pair(ours: 2, theirs: 10)
        try pair.connect()
        for topic in ["a", "b", "a", "c", "a", "b"] { try pair.publish("x", to: topic) }
        pair.settle()
        #expect(pair.server.messages.map(\.topic) == ["a", "b", "a", "c", "a", "b"])
        #expect(pair.client.publishes.map(\.topic) == ["a", "b", "", "c", "", "b"])
        #expect(pair.client.publishes.map { $0.properties.topicAlias } == [1, 2, 1, 2, 1, 2])
    }

    @Test func `no alias is above the server's maximum, and none without one [MQTT-3.3.2-9]`() throws {
        let few = pair(ours: 10, theirs: 1)
        try few.connect()
        for topic in ["a", "b", "a"] { try few.publish("x", to: topic) }
        few.settle()
        #expect(few.client.publishes.allSatisfy { $0.properties.topicAlias == 1 })
        let none = pair(ours: 10, theirs: 0)
        try none.connect()
        for _ in 0..<2 { try none.publish("x") }
        none.settle()
        #expect(none.client.publishes.allSatisfy { $0.topic == "t" && $0.properties.isEmpty })
    }

    @Test func `no mapping survives the connection: what is sent again has its topic [MQTT-3.3.2-7]`() throws {
        let pair = pair(ours: 10, theirs: 10)
        try pair.connect()
        try pair.publish("1", qos: .atLeastOnce)
        try pair.publish("2", qos: .atLeastOnce)
        pair.flush()
        #expect(pair.client.publishes.map(\.topic) == ["t", ""])
        pair.cut()
        pair.server.engine.configuration.topicAliasMaximum = 0
        try pair.connect()
        #expect(pair.client.publishes.suffix(2).map(\.topic) == ["t", "t"])
        #expect(pair.server.texts == ["1", "2"])
    }

    @Test func `a packet that could not be written gives out no alias`() throws {
        let pair = EnginePair(
            client: { $0.outboundTopicAliasMaximum = 4 },
            server: {
                $0.topicAliasMaximum = 4
                $0.maximumPacketSize = 40
            })
        try pair.connect()
        #expect(throws: MQTTUsageError.self) { try pair.publish(String(repeating: "x", count: 40)) }
        try pair.publish("ok")
        try pair.publish("ok")
        pair.settle()
        #expect(pair.client.publishes.map(\.topic) == ["t", ""])
        #expect(pair.server.texts == ["ok", "ok"])
        // 40 bytes without an alias, 43 with one.
        try pair.publish(String(repeating: "y", count: 33), to: "uu")
        pair.settle()
        #expect(pair.server.messages.last?.topic == "uu")
        #expect(pair.client.publishes.last?.properties.isEmpty == true)
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce], [UInt16(0), 4])
    func `an empty topic is refused, whatever aliases there are [MQTT-4.7.3-1]`(qos: QoS, aliases: UInt16) throws {
        let pair = pair(ours: aliases, theirs: aliases)
        try pair.connect()
        func expectRefusal() {
            #expect { try pair.publish("x", to: "", qos: qos) } throws: { error in
                (error as? MQTTUsageError)?.code == .invalidTopic
            }
        }
        expectRefusal()
        // A withdrawn alias has no topic.
        #expect(throws: MQTTUsageError.self) { try pair.publish("x", to: "a#", qos: qos) }
        expectRefusal()
        expectRefusal()
        #expect(pair.client.engine.output.isEmpty)
        try pair.publish("y", to: "a", qos: qos)
        pair.settle()
        #expect(pair.server.messages.map(\.topic) == ["a"])
        #expect(pair.client.engine.inFlightCount == 0)
    }

    private func receive(_ topic: String, alias: UInt16, into pair: EnginePair) throws {
        try pair.inject(
            .publish(
                .init(
                    topic: topic, payload: [], properties: [MQTTProperty(.topicAlias, .integer(UInt32(alias)))])),
            into: pair.client)
    }

    @Test func `every alias up to the advertised maximum is accepted and may change its topic [MQTT-3.3.2-10]`() throws
    {
        let pair = EnginePair(client: { $0.topicAliasMaximum = 200 })
        try pair.connect()
        for alias in 1...200 as ClosedRange<UInt16> { try receive("t/\(alias)", alias: alias, into: pair) }
        for alias in 1...200 as ClosedRange<UInt16> { try receive("", alias: alias, into: pair) }
        #expect(pair.client.messages.map(\.topic) == (1...200).map { "t/\($0)" } + (1...200).map { "t/\($0)" })
        try receive("new", alias: 3, into: pair)
        try receive("", alias: 3, into: pair)
        #expect(pair.client.messages.suffix(2).map(\.topic) == ["new", "new"])
    }

    @Test func `an alias above the maximum, or never set, ends the connection`() throws {
        let above = EnginePair(client: { $0.topicAliasMaximum = 2 })
        try above.connect()
        try receive("t", alias: 3, into: above)
        #expect(above.client.violation?.reasonCode == .topicAliasInvalid)
        let unset = EnginePair(client: { $0.topicAliasMaximum = 2 })
        try unset.connect()
        try receive("", alias: 2, into: unset)
        #expect(unset.client.violation?.reasonCode == .protocolError)
        let stale = EnginePair(client: { $0.topicAliasMaximum = 2 })
        try stale.connect()
        try receive("t", alias: 1, into: stale)
        stale.cut()
        try stale.connect()
        try receive("", alias: 1, into: stale)
        #expect(stale.client.violation?.reasonCode == .protocolError)
    }

    @Test func `a subscription identifier from a client ends the connection [MQTT-3.3.4-6]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.inject(
            .publish(.init(topic: "t", payload: [], properties: [MQTTProperty(.subscriptionIdentifier, .integer(1))])),
            into: pair.server)
        #expect(pair.server.violation?.clause == "MQTT-3.3.4-6")
    }

    @Test func `a server passes several subscription identifiers on one message [MQTT-3.3.4-4]`() throws {
        let pair = EnginePair()
        try pair.connect()
        var properties = MQTTProperties()
        properties.subscriptionIdentifiers = [1, 9]
        try pair.publish("x", properties: properties, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["x"])
        #expect(pair.server.publishes.last?.properties.subscriptionIdentifiers == [1, 9])
    }
}
