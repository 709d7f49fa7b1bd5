import MQTTCore
import TestSupport
import Testing

/// A client's engine and servers that do not keep to the specification.
@Suite("Engine: what real servers send") struct LenientClientTests {
    /// A connection whose server is a test.
    private static func pair(
        _ version: MQTTVersion, _ change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = EnginePair(version: version, client: change)
        try pair.connect()
        pair.serverAnswers = false
        return pair
    }

    private func send(_ bytes: [UInt8], _ pair: EnginePair) {
        pair.client.inbox += bytes
        pair.deliver(to: pair.client)
    }

    /// PUBLISH of QoS 1, with its packet identifier.
    private func publish(_ topic: [UInt8], _ properties: [UInt8]? = nil, id: UInt8 = 9) -> [UInt8] {
        let body =
            [UInt8(0), UInt8(topic.count)] + topic + [0, id] + (properties.map { [UInt8($0.count)] + $0 } ?? []) + [
                0x78
            ]
        return [0x32, UInt8(body.count)] + body
    }

    private func dropped(_ end: EnginePair.End) -> [String] {
        end.events.compactMap { if case .invalidMessageDropped(let topic, _) = $0 { topic } else { nil } }
    }

    @Test func `3_1_1 proceeds without the session that CONNECT did not ask for`() throws {
        let pair = EnginePair(version: .v3_1_1)
        pair.serverAnswers = false
        try pair.connect()
        try pair.inject(.connack(.init(sessionPresent: true)), into: pair.client)
        #expect(pair.client.violation == nil)
        #expect(pair.client.info?.sessionPresent == false)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a refusal counts whatever Session Present is`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        pair.serverAnswers = false
        try pair.connect()
        send(version == .v5_0 ? [0x20, 3, 1, 0x87, 0] : [0x20, 2, 1, 5], pair)
        #expect(pair.client.violation == nil)
        guard case .connectionRefused(let connack)? = pair.client.events.last else {
            Issue.record("\(pair.client.events)")
            return
        }
        #expect(connack.reasonCode == .notAuthorized)
    }

    @Test(arguments: MQTTVersion.allCases, 0...3)
    func `UNSUBACK completes with any number of codes`(version: MQTTVersion, count: Int) throws {
        let pair = try Self.pair(version)
        try pair.client.engine.unsubscribe(["a", "b"], at: pair.now)
        pair.flush()
        guard case .unsubscribe(let request)? = pair.client.sent.last else {
            Issue.record("\(pair.client.sent)")
            return
        }
        let body =
            [0, UInt8(request.packetID)] + (version == .v5_0 ? [0] : []) + [UInt8](repeating: 0x11, count: count)
        send([0xB0, UInt8(body.count)] + body, pair)
        #expect(pair.client.violation == nil)
        let codes = pair.client.events.compactMap { event -> [MQTTReasonCode]? in
            if case .unsubscribeCompleted(_, let codes, _) = event { codes } else { nil }
        }
        // Those that are missing count as success.
        let expected = (0..<2).map { $0 < count ? MQTTReasonCode.noSubscriptionExisted : .success }
        #expect(codes == [version == .v5_0 ? expected : []])
    }

    @Test func `SUBACK with another number of codes says how many filters it answers`() throws {
        let pair = try Self.pair(.v3_1_1)
        try pair.client.engine.subscribe(
            ["a", "b", "c"].map { .init(filter: $0) }, at: pair.now)
        pair.flush()
        try pair.inject(.suback(.init(packetID: 1, reasonCodes: [.success])), into: pair.client)
        #expect(pair.client.violation?.clause == "MQTT-3.9.3-1")
        #expect(pair.client.violation?.message == "SUBACK has 1 reason code for 3 topic filters.")
        // None at all is the same.
        let other = try Self.pair(.v3_1_1)
        try other.client.engine.subscribe([.init(filter: "a")], at: other.now)
        other.flush()
        send([0x90, 2, 0, 1], other)
        #expect(other.client.violation?.message == "SUBACK has 0 reason codes for 1 topic filter.")
    }

    @Test func `a second CONNACK with a failure ends the connection for the reason that it names`() throws {
        for phase in 0..<2 {
            let pair = try Self.pair(.v3_1_1)
            if phase == 1 {
                try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
                pair.flush()
            }
            send([0x20, 2, 0, 5], pair)
            #expect(pair.client.violation == nil)
            #expect(pair.client.shouldClose)
            guard case .connectionRefused(let connack)? = pair.client.events.last else {
                Issue.record("\(pair.client.events)")
                continue
            }
            #expect(connack.reasonCode == .notAuthorized)
        }
        let accepted = try Self.pair(.v3_1_1)
        send([0x20, 2, 0, 0], accepted)
        #expect(accepted.client.violation?.clause == "MQTT-3.2.0-2")
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1], [[0xE0, 0], [0xE0, 1, 0x8E], [0xE0, 2, 0x8E, 0]] as [[UInt8]])
    func `DISCONNECT before 5_0 is the server's farewell`(version: MQTTVersion, bytes: [UInt8]) throws {
        let pair = try Self.pair(version)
        send(bytes, pair)
        #expect(pair.client.violation == nil)
        #expect(pair.client.shouldClose)
        guard case .disconnectReceived(let packet)? = pair.client.events.last else {
            Issue.record("\(pair.client.events)")
            return
        }
        #expect(packet.reasonCode == (bytes.count > 2 ? .sessionTakenOver : .normalDisconnection))
    }

    @Test func `a server stays strict`() throws {
        for (version, bytes): (MQTTVersion, [UInt8]) in [
            (.v3_1_1, [0x38, 4, 0, 1, 0x61, 0x78]), (.v3_1_1, [0xC0, 0x80, 0]), (.v3_1_1, [0xE0, 1, 0x8E]),
            (.v5_0, [0x38, 5, 0, 1, 0x61, 0, 0x78]),
        ] {
            let pair = EnginePair(version: version)
            try pair.connect()
            pair.server.inbox = bytes
            pair.deliver(to: pair.server)
            #expect(pair.server.violation != nil, "\(bytes)")
        }
    }

    @Test func `refused packets are equal under other packet identifiers`() throws {
        for packets: [[UInt8]] in [
            [[0x90, 3, 0, 1, 3], [0x90, 3, 0, 2, 3]], [[0x40, 3, 0, 1, 0], [0x40, 3, 0, 2, 0]],
            [[0x62, 3, 0, 1, 0], [0x62, 3, 0, 2, 0]],
        ] {
            let found = try packets.map { bytes -> MQTTRefusedPacket? in
                let pair = try Self.pair(.v3_1_1)
                send(bytes, pair)
                for case .packetRefused(let packet) in pair.client.events { return packet }
                return nil
            }
            #expect(found[0] != nil && found[0] == found[1], "\(found)")
        }
    }

    // MARK: dropsInvalidMessages

    @Test(arguments: [false, true])
    func `a message with properties that it must not have is dropped where that is allowed`(drops: Bool) throws {
        let pair = try Self.pair(.v5_0) { $0.dropsInvalidMessages = drops }
        send(publish([0x61], [0x11, 0, 0, 0, 10]) + publish([0x62], [], id: 8), pair)
        #expect((pair.client.violation == nil) == drops)
        guard drops else { return }
        #expect(dropped(pair.client) == ["a"])
        #expect(pair.client.messages.map(\.topic) == ["b"])
        pair.flush()
        #expect(pair.client.types.suffix(2) == [.puback, .puback])
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a message without a topic is dropped where that is allowed`(version: MQTTVersion) throws {
        let pair = try Self.pair(version) { $0.dropsInvalidMessages = true }
        let properties: [UInt8]? = version == .v5_0 ? [] : nil
        send(publish([], properties) + publish([0x62], properties, id: 8), pair)
        #expect(pair.client.violation == nil)
        #expect(dropped(pair.client) == [""])
        #expect(pair.client.messages.map(\.topic) == ["b"])
        // With properties but no alias among them.
        guard version == .v5_0 else { return }
        send(publish([], [0x01, 1], id: 7), pair)
        #expect(pair.client.violation == nil)
        #expect(dropped(pair.client) == ["", ""])
    }

    @Test func `a dropped message sets its topic alias, so that later ones have the right topic`() throws {
        let pair = try Self.pair(.v5_0) {
            $0.dropsInvalidMessages = true
            $0.topicAliasMaximum = 4
        }
        // Alias 1 is "a"; the message that is dropped makes it "b".
        send(publish([0x61], [0x23, 0, 1], id: 1), pair)
        send(publish([0x62], [0x11, 0, 0, 0, 10, 0x23, 0, 1], id: 2), pair)
        send(publish([], [0x23, 0, 1], id: 3), pair)
        #expect(pair.client.violation == nil)
        #expect(pair.client.messages.map(\.topic) == ["a", "b"])
        // One with an invalid topic leaves none behind.
        send(publish([0xFF], [0x23, 0, 1], id: 4), pair)
        #expect(pair.client.violation == nil)
        send(publish([], [0x23, 0, 1], id: 5), pair)
        #expect(pair.client.violation?.clause == "MQTT 5.0 3.3.2.3.4")
    }

    @Test func `properties that cannot be read to their end leave no topic alias`() throws {
        let pair = try Self.pair(.v5_0) {
            $0.dropsInvalidMessages = true
            $0.topicAliasMaximum = 4
        }
        send(publish([0x61], [0x23, 0, 1], id: 1), pair)
        send(publish([0x62], [0x7F, 0x23, 0, 1], id: 2), pair)
        #expect(pair.client.violation == nil)
        #expect(dropped(pair.client) == ["b"])
        send(publish([], [0x23, 0, 1], id: 3), pair)
        #expect(pair.client.violation?.clause == "MQTT 5.0 3.3.2.3.4")
        #expect(pair.client.messages.map(\.topic) == ["a"])
    }

    @Test func `what no option drops is not called droppable`() throws {
        for (bytes, topics): ([UInt8], Int) in [
            (publish([], [0x23, 0, 1]), 4), (publish([0x61], [0x23, 0, 9]), 4), ([0x32, 3, 0, 9, 0x61], 0),
        ] {
            let pair = try Self.pair(.v5_0) {
                $0.dropsInvalidMessages = true
                $0.topicAliasMaximum = UInt16(topics)
            }
            send(bytes, pair)
            #expect(pair.client.violation != nil)
            #expect(dropped(pair.client).isEmpty)
        }
    }
}
