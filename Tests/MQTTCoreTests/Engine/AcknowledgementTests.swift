import MQTTCore
import TestSupport
import Testing

@Suite("Engine: acknowledgements, flow control, order", .heavy)
struct AcknowledgementTests {
    private func connectedReceiver(version: MQTTVersion = .v5_0, _ count: Int, qos: QoS) throws -> EnginePair {
        let pair = EnginePair(version: version)
        pair.client.acknowledges = false
        try pair.connect()
        for index in 0..<count { try pair.publish("\(index)", qos: qos, from: pair.server) }
        pair.settle()
        return pair
    }

    private func acknowledgedIDs(_ pair: EnginePair) -> [UInt16] {
        pair.client.sent.compactMap {
            switch $0 {
            case .puback(let ack), .pubrec(let ack): ack.packetID
            default: nil
            }
        }
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `answers given in any order leave in the order of arrival [MQTT-4.6.0-2, 4.6.0-3]`(qos: QoS) throws {
        let pair = try connectedReceiver(5, qos: qos)
        let tokens = pair.client.messages.map(\.delivery)
        for index in [3, 1, 4] { pair.client.engine.acknowledge(tokens[index], at: pair.now) }
        pair.settle()
        #expect(acknowledgedIDs(pair).isEmpty)
        pair.client.engine.acknowledge(tokens[0], at: pair.now)
        pair.settle()
        #expect(acknowledgedIDs(pair) == Array(pair.client.messages.map(\.packetID)[0...1]))
        pair.client.engine.acknowledge(tokens[2], at: pair.now)
        pair.settle()
        #expect(acknowledgedIDs(pair) == pair.client.messages.map(\.packetID))
        #expect(pair.server.completions.count == 5)
    }

    @Test func `one call acknowledges everything up to a token`() throws {
        let pair = try connectedReceiver(10, qos: .atLeastOnce)
        pair.client.engine.acknowledgeAll(through: pair.client.messages[6].delivery, at: pair.now)
        pair.settle()
        #expect(pair.server.completions.count == 7)
        pair.client.engine.acknowledgeAll(through: .max, at: pair.now)
        pair.settle()
        #expect(pair.server.completions.count == 10)
        try pair.publish("more", qos: .atLeastOnce, from: pair.server)
        pair.settle()
        #expect(pair.server.completions.count == 10)
    }

    @Test func `tokens of nobody, of yesterday and given twice do no harm`() throws {
        let pair = try connectedReceiver(2, qos: .atLeastOnce)
        let token = pair.client.messages[0].delivery
        for wrong in [0, 99, .max, token, token] as [UInt64] { pair.client.engine.acknowledge(wrong, at: pair.now) }
        pair.settle()
        #expect(pair.server.completions.count == 1)
    }

    @Test func `PUBREL is sent in the order of PUBREC [MQTT-4.6.0-4]`() throws {
        let pair = EnginePair()
        pair.server.acknowledges = false
        try pair.connect()
        for index in 0..<3 { try pair.publish("\(index)", qos: .exactlyOnce) }
        pair.settle()
        for id in [UInt16(2), 3, 1] { try pair.inject(.pubrec(.init(packetID: id)), into: pair.client) }
        pair.flush()
        let released = pair.client.sent.compactMap { if case .pubrel(let ack) = $0 { ack.packetID } else { nil } }
        #expect(released == [2, 3, 1])
    }

    @Test(arguments: [MQTTReasonCode.success, .packetIdentifierNotFound, .quotaExceeded])
    func `a QoS 2 message that no client received ends with what PUBREC said, unless PUBCOMP refuses it`(
        completion: MQTTReasonCode
    ) throws {
        let pair = EnginePair(version: .v5_0)
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("lost", qos: .exactlyOnce, token: 7)
        try pair.publish("found", qos: .exactlyOnce, token: 8)
        pair.settle()
        try pair.inject(.pubrec(.init(packetID: 1, reasonCode: .noMatchingSubscribers)), into: pair.client)
        for id in [UInt16(1), 2] { try pair.inject(.pubrec(.init(packetID: id)), into: pair.client) }
        try pair.inject(.pubcomp(.init(packetID: 1, reasonCode: completion)), into: pair.client)
        try pair.inject(.pubcomp(.init(packetID: 2)), into: pair.client)
        let isRefused = completion == .quotaExceeded
        #expect(
            pair.client.completions == [
                .init(
                    token: 7, outcome: isRefused ? .refused : .acknowledged,
                    reason: isRefused ? completion : .noMatchingSubscribers),
                .init(token: 8, outcome: .acknowledged, reason: .success),
            ])
    }

    @Test func `no more than Receive Maximum is unacknowledged, and QoS 2 counts until PUBCOMP [MQTT-4.9.0-1]`() throws
    {
        let pair = EnginePair(server: { $0.receiveMaximum = 3 })
        pair.server.acknowledges = false
        try pair.connect()
        for index in 0..<6 { try pair.publish("\(index)", qos: .exactlyOnce, token: UInt64(index)) }
        pair.settle()
        #expect(pair.server.texts == ["0", "1", "2"])
        try pair.inject(.pubrec(.init(packetID: 1)), into: pair.client)
        pair.flush()
        #expect(pair.client.publishes.count == 3)
        try pair.inject(.pubcomp(.init(packetID: 1)), into: pair.client)
        pair.flush()
        #expect(pair.client.publishes.count == 4)
    }

    @Test func `SUBSCRIBE, PINGREQ, QoS 0 and PUBREL do not wait for the window [MQTT-4.9.0-3]`() throws {
        let pair = EnginePair(server: { $0.receiveMaximum = 1 })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce)
        try pair.publish("2", qos: .atLeastOnce)
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        try pair.client.engine.ping(at: pair.now)
        try pair.publish("0")
        pair.settle()
        try pair.inject(.pubrec(.init(packetID: 1)), into: pair.client)
        pair.flush()
        #expect(pair.client.types == [.connect, .publish, .subscribe, .pingreq, .publish, .pubrel])
    }

    @Test func `the window counts what was sent again [MQTT 5.0 4.9]`() throws {
        let pair = EnginePair.persistent(server: { $0.receiveMaximum = 10 })
        pair.server.acknowledges = false
        try pair.connect()
        for index in 0..<12 { try pair.publish("\(index)", qos: .atLeastOnce, token: UInt64(index)) }
        pair.settle()
        #expect(pair.client.publishes.count == 10)
        pair.cut()
        pair.server.engine.configuration.receiveMaximum = 4
        try pair.connect()
        #expect(pair.client.publishes.count == 14)
        pair.server.acknowledges = true
        pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
        pair.settle()
        #expect(Array(pair.server.texts.suffix(12)) == (0..<12).map { "\($0)" })
        #expect(pair.client.completions.map(\.token) == Array(UInt64(0)..<12))
        let dups = pair.client.publishes.map(\.isDuplicate)
        #expect(dups == (0..<22).map { 10 <= $0 && $0 < 20 })
    }

    @Test func `a peer that exceeds the Receive Maximum we granted is disconnected [MQTT-3.3.4-9]`() throws {
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            let pair = EnginePair(client: {
                $0.receiveMaximum = 2
                $0.enforcesReceiveMaximum = true
            })
            pair.client.acknowledges = false
            try pair.connect()
            for id in 1...3 {
                try pair.inject(
                    .publish(.init(topic: "t", payload: [], qos: qos, packetID: UInt16(id))), into: pair.client)
            }
            #expect(pair.client.messages.count == 2)
            #expect(pair.client.violation?.reasonCode == .receiveMaximumExceeded)
            pair.flush()
            #expect(pair.client.sent.last == .disconnect(.init(reasonCode: .receiveMaximumExceeded)))
        }
    }

    @Test func `a server accepts no more than the Receive Maximum of its CONNACK [MQTT-4.13.1-1]`() throws {
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            let pair = EnginePair(server: { $0.receiveMaximum = 2 })
            pair.server.acknowledges = false
            try pair.connect()
            for id in 1...3 {
                try pair.inject(
                    .publish(.init(topic: "t", payload: [], qos: qos, packetID: UInt16(id))), into: pair.server)
            }
            #expect(pair.server.messages.count == 2)
            #expect(pair.server.violation?.reasonCode == .receiveMaximumExceeded)
        }
    }

    @Test func `a client accepts 65,535 messages without an acknowledgement, and reports the excess once`() throws {
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            let pair = EnginePair(client: { $0.receiveMaximum = 2 })
            pair.client.acknowledges = false
            try pair.connect()
            for id in 1...65_535 {
                try pair.inject(
                    .publish(.init(topic: "t", payload: [], qos: qos, packetID: UInt16(id))), into: pair.client)
            }
            #expect(pair.client.messages.count == 65_535)
            #expect(pair.client.violation == nil)
            var reports = 0
            for event in pair.client.events { if case .receiveMaximumExceeded(2) = event { reports += 1 } }
            #expect(reports == 1)
            try pair.inject(.publish(.init(topic: "t", payload: [], qos: .atLeastOnce, packetID: 1)), into: pair.client)
            #expect(pair.client.violation?.reasonCode == .receiveMaximumExceeded)
        }
    }

    @Test func `a QoS 2 message holds its place of our Receive Maximum until PUBREL`() throws {
        let pair = EnginePair(client: {
            $0.receiveMaximum = 1
            $0.enforcesReceiveMaximum = true
        })
        try pair.connect()
        try pair.inject(.publish(.init(topic: "t", payload: [], qos: .exactlyOnce, packetID: 1)), into: pair.client)
        try pair.inject(.publish(.init(topic: "t", payload: [], qos: .exactlyOnce, packetID: 2)), into: pair.client)
        #expect(pair.client.violation?.reasonCode == .receiveMaximumExceeded)
    }

    @Test func `PUBREL is always answered, also for an unknown identifier [MQTT-4.3.3-11]`() throws {
        let new = EnginePair()
        try new.connect()
        try new.inject(.pubrel(.init(packetID: 77)), into: new.client)
        new.flush()
        #expect(new.client.sent.last == .pubcomp(.init(packetID: 77, reasonCode: .packetIdentifierNotFound)))
        let old = EnginePair(version: .v3_1_1)
        try old.connect()
        try old.inject(.pubrel(.init(packetID: 77)), into: old.client)
        old.flush()
        #expect(old.client.sent.last == .pubcomp(.init(packetID: 77)))
    }

    @Test func `an identifier is new after PUBCOMP whatever DUP says [MQTT-4.3.3-12]`() throws {
        let pair = EnginePair()
        try pair.connect()
        let publish = MQTTPacket.publish(
            .init(topic: "t", payload: [], qos: .exactlyOnce, isDuplicate: true, packetID: 5))
        try pair.inject(publish, into: pair.client)
        try pair.inject(publish, into: pair.client)
        #expect(pair.client.messages.count == 1)
        try pair.inject(.pubrel(.init(packetID: 5)), into: pair.client)
        try pair.inject(publish, into: pair.client)
        #expect(pair.client.messages.count == 2)
        pair.flush()
        #expect(pair.client.types == [.connect, .pubrec, .pubrec, .pubcomp, .pubrec])
    }

    @Test func `an identifier is new after a PUBREC that refused it [MQTT-4.3.3-9]`() throws {
        let pair = EnginePair()
        pair.client.acknowledges = false
        try pair.connect()
        let publish = MQTTPacket.publish(.init(topic: "t", payload: [], qos: .exactlyOnce, packetID: 5))
        try pair.inject(publish, into: pair.client)
        pair.client.engine.acknowledge(pair.client.messages[0].delivery, reason: .notAuthorized, at: pair.now)
        try pair.inject(publish, into: pair.client)
        #expect(pair.client.messages.count == 2)
    }

    @Test func `a QoS 1 identifier is a new message after PUBACK [MQTT-4.3.2-5]`() throws {
        let pair = EnginePair()
        try pair.connect()
        let publish = MQTTPacket.publish(
            .init(topic: "t", payload: [], qos: .atLeastOnce, isDuplicate: true, packetID: 5))
        try pair.inject(publish, into: pair.client)
        try pair.inject(publish, into: pair.client)
        #expect(pair.client.messages.count == 2)
    }

    @Test func `an acknowledgement of the wrong kind ends the connection`() throws {
        for packet in [
            MQTTPacket.pubrec(.init(packetID: 1)), .pubcomp(.init(packetID: 1)),
            .suback(.init(packetID: 1, reasonCodes: [.success])),
        ] {
            let pair = EnginePair()
            pair.server.acknowledges = false
            try pair.connect()
            try pair.publish("x", qos: .atLeastOnce)
            pair.settle()
            try pair.inject(packet, into: pair.client)
            #expect(pair.client.violation?.reasonCode == .protocolError)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `PUBACK for a QoS 2 message ends its exchange, which is reported once per connection`(
        version: MQTTVersion
    ) throws {
        let pair = EnginePair.persistent(version: version) { $0.persists = true }
        pair.server.acknowledges = false
        func store() {
            pair.client.run { engine, effects in
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
        }
        func reports() -> Int {
            pair.client.events.count { if case .exactlyOnceUnavailable = $0 { true } else { false } }
        }
        try pair.connect()
        for token in 1...3 { try pair.publish("\(token)", qos: .exactlyOnce, token: UInt64(token)) }
        store()
        pair.settle()
        for publish in pair.client.publishes.prefix(2) {
            try pair.inject(.puback(.init(packetID: publish.packetID)), into: pair.client)
        }
        #expect(pair.client.failure == nil)
        #expect(pair.client.completions.map(\.token) == [1, 2])
        #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged })
        #expect(reports() == 1)
        #expect(pair.client.engine.inFlightCount == 1)
        let finished = pair.client.engine.storeRecords.count { if case .finished = $0 { true } else { false } }
        #expect(finished == 2)
        pair.cut()
        try pair.connect()
        store()
        pair.settle()
        let again = try #require(pair.client.publishes.last)
        #expect(again.isDuplicate && again.payload == Array("3".utf8))
        try pair.inject(.puback(.init(packetID: again.packetID)), into: pair.client)
        #expect(pair.client.completions.map(\.token) == [1, 2, 3])
        #expect(reports() == 2)
    }

    @Test func `PUBACK after PUBREC is a violation`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        try pair.inject(.puback(.init(packetID: 1)), into: pair.client)
        #expect(pair.client.violation?.reasonCode == .protocolError)
    }

    @Test func `acknowledgements of nothing are ignored, and PUBREC is answered [MQTT 5.0 3.6.2.1]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.inject(.puback(.init(packetID: 9)), into: pair.client)
        try pair.inject(.pubcomp(.init(packetID: 9)), into: pair.client)
        try pair.inject(.pubrec(.init(packetID: 9)), into: pair.client)
        pair.flush()
        #expect(pair.client.violation == nil)
        #expect(pair.client.sent.last == .pubrel(.init(packetID: 9, reasonCode: .packetIdentifierNotFound)))
    }

    @Test func `a cancelled operation keeps its identifier until the answer [MQTT-2.2.1-3]`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = 1_000_000_000 })
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.settle()
        pair.advance(seconds: 2)
        guard case .requestLate(let request) = pair.client.events.last else {
            Issue.record("not reported")
            return
        }
        #expect(request.filters == ["a"])
        for _ in 0..<200 {
            try pair.publish("x", qos: .atLeastOnce)
            pair.settle()
        }
        guard case .subscribe(let subscribe)? = pair.client.sent.first(where: { $0.type == .subscribe }) else {
            Issue.record("no SUBSCRIBE was sent")
            return
        }
        #expect(!pair.client.publishes.contains { $0.packetID == subscribe.packetID })
        try pair.inject(.suback(.init(packetID: subscribe.packetID, reasonCodes: [.success])), into: pair.client)
        // The answer comes too late.
        let isAnswered = pair.client.events.contains { if case .subscribeCompleted = $0 { true } else { false } }
        #expect(!isAnswered && pair.client.violation == nil)
    }

    @Test func `properties of an acknowledgement are reported with its token`() throws {
        let pair = EnginePair()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("x", qos: .atLeastOnce, token: 4)
        pair.settle()
        try pair.inject(
            .puback(.init(packetID: 1, properties: [MQTTProperty(.reasonString, .string("why"))])), into: pair.client)
        guard case .acknowledgementProperties(let token, let properties) = pair.client.events.last else {
            Issue.record("no properties")
            return
        }
        #expect(token == 4)
        #expect(properties.reasonString == "why")
    }
}
