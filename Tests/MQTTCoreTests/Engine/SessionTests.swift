import TestSupport
import Testing

@testable import MQTTCore

@Suite("Engine: sessions over connections", .heavy)
struct SessionTests {
    @Test(arguments: MQTTVersion.allCases)
    func `unacknowledged publishes are sent again in their original order with DUP set`(version: MQTTVersion) throws {
        let pair = EnginePair.persistent(version: version)
        try pair.connect()
        for index in 0..<70 {
            try pair.publish("\(index)", qos: index % 3 == 0 ? .exactlyOnce : .atLeastOnce, token: UInt64(index))
        }
        pair.flush()
        let ids = pair.client.publishes.map(\.packetID)
        pair.cut()
        #expect(pair.client.completions.isEmpty)
        try pair.connect()
        let again = pair.client.publishes.dropFirst(70)
        #expect(again.map(\.packetID) == ids)
        let texts = (0..<70).map { "\($0)" }
        #expect(again.map { String(decoding: $0.payload, as: UTF8.self) } == texts)
        #expect(again.allSatisfy { $0.isDuplicate })
        #expect(pair.server.texts == texts)
        #expect(pair.client.completions.count == 70)
    }

    @Test func `identifiers that wrapped do not change the order [MQTT-4.6.0-1]`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        for _ in 0..<2 {
            for _ in 0..<55 { try pair.publish("first", qos: .atLeastOnce) }
            pair.settle()
        }
        for index in 0..<20 { try pair.publish("\(index)", qos: .atLeastOnce) }
        let before = pair.client.engine.output
        let ids = EnginePair.packets(before, version: .v5_0).map {
            if case .publish(let publish) = $0 { publish.packetID } else { UInt16(0) }
        }
        #expect(ids != ids.sorted())
        pair.cut()
        try pair.connect()
        #expect(Array(pair.server.texts.suffix(20)) == (0..<20).map { "\($0)" })
    }

    @Test func `nothing is sent again while the connection lasts [MQTT-4.4.0-1]`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("x", qos: .atLeastOnce)
        pair.settle()
        for _ in 0..<10 {
            pair.advance(seconds: 5)
            pair.settle()
        }
        #expect(pair.client.publishes.count == 1)
    }

    @Test func `after PUBREC only PUBREL is sent again [MQTT-4.3.3-6]`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, token: 1)
        try pair.publish("2", qos: .exactlyOnce, token: 2)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        #expect(pair.client.types.suffix(2) == [.pubrel, .pubrel])
        pair.cut()
        try pair.connect()
        #expect(pair.client.types.suffix(3) == [.connect, .pubrel, .pubrel])
        #expect(pair.server.texts == ["1", "2"])
        #expect(pair.client.completions.map(\.token) == [1, 2])
    }

    @Test func `a QoS 2 message whose PUBREC was lost is delivered once [MQTT-4.3.3-10]`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.publish("once", qos: .exactlyOnce)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        try pair.connect()
        #expect(pair.server.texts == ["once"])
        #expect(pair.client.completions.count == 1)
        #expect(pair.server.types.filter { $0 == .pubrec }.count == 1)
    }

    /// How a connection ends whose CONNECT has no answer.
    enum UnansweredConnect: CaseIterable { case cut, late, endOfProcess }

    /// A server that has lost the session begins another with a CONNECT whose answer is lost, and calls that one present.
    /// A repetition would have DUP set [MQTT-3.3.1-1].
    @Test(arguments: UnansweredConnect.allCases)
    func `a QoS 2 message of a session that began with an unanswered CONNECT is no repetition`(
        unanswered: UnansweredConnect
    ) throws {
        let pair = EnginePair.persistent(client: { $0.persists = unanswered == .endOfProcess })
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, from: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        let records = pair.client.engine.session.records
        pair.cut()
        pair.server.engine = MQTTEngine(configuration: pair.server.engine.configuration)
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        if unanswered == .late {
            pair.server.engine.output = []
            pair.advance(seconds: 3600)
            #expect(pair.client.failure == .connectTimeout)
        }
        pair.cut()
        if unanswered == .endOfProcess {
            pair.client.engine = MQTTEngine(
                configuration: pair.client.engine.configuration, session: MQTTSession(restoring: records))
        }
        try pair.connect()
        #expect(pair.lastSessionPresent && pair.client.info?.sessionMayBeAnother == true)
        try pair.publish("2", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["1", "2"])
        #expect(pair.client.messages.map(\.packetID) == [1, 1])
        // What came on this connection is known, with or without DUP.
        try pair.publish("3", qos: .exactlyOnce, from: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        let third = try #require(pair.server.publishes.last)
        try pair.inject(.publish(third), into: pair.client)
        pair.settle()
        #expect(pair.client.texts == ["1", "2", "3"])
        pair.cut()
        try pair.connect()
        #expect(pair.client.info?.sessionMayBeAnother == false)
    }

    /// The server may read that CONNECT after the one that it has answered.
    @Test func `an unanswered CONNECT leaves doubt after a connection without a session`() throws {
        let pair = EnginePair.persistent()
        try pair.open()
        pair.cut()
        try pair.connect()
        #expect(!pair.lastSessionPresent)
        for expected in [true, false] {
            pair.cut()
            try pair.connect()
            #expect(pair.lastSessionPresent && pair.client.info?.sessionMayBeAnother == expected)
        }
    }

    /// It has no Session Present.
    @Test func `with 3.1 each session that continues may be another`() throws {
        let pair = EnginePair.persistent(version: .v3_1)
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, from: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.cut()
        pair.server.engine = MQTTEngine(configuration: pair.server.engine.configuration)
        try pair.connect()
        try pair.publish("2", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["1", "2"])
    }

    @Test func `one QoS 2 message without DUP shows that nothing is left of the session before`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        for text in ["1", "2"] { try pair.publish(text, qos: .exactlyOnce, from: pair.server) }
        pair.flush()
        pair.deliver(to: pair.client)
        pair.cut()
        pair.server.engine = MQTTEngine(configuration: pair.server.engine.configuration)
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        try pair.connect()
        try pair.publish("3", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        try pair.publish("lost at first", qos: .exactlyOnce, from: pair.server)
        pair.flush()
        pair.cut()
        try pair.connect()
        #expect(pair.server.publishes.last?.isDuplicate == true && pair.server.publishes.last?.packetID == 2)
        #expect(pair.client.texts == ["1", "2", "3", "lost at first"])
    }

    /// The server holds the identifier of a message that the earlier process has not finished.
    @Test(arguments: MQTTVersion.allCases)
    func `a process without a store begins at another packet identifier in a session of an earlier one`(
        version: MQTTVersion
    ) throws {
        let pair = EnginePair.persistent(version: version, client: { $0.acceptsUnknownSession = true })
        try pair.connect()
        try pair.publish("first process", qos: .exactlyOnce)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        pair.client.engine = MQTTEngine(configuration: pair.client.engine.configuration)
        pair.now += 1_000_000
        try pair.connect()
        try pair.publish("second process", qos: .exactlyOnce, token: 2)
        pair.settle()
        #expect(pair.server.texts == ["first process", "second process"])
        #expect(pair.client.completions.map(\.token) == [2])
    }

    @Test func `a CONNECT that was refused began no session`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        pair.cut()
        pair.serverAnswers = false
        try pair.open()
        try pair.inject(.connack(.init(reasonCode: .serverUnavailable)), into: pair.client)
        #expect(pair.client.shouldClose)
        pair.cut()
        pair.serverAnswers = true
        try pair.connect()
        #expect(pair.lastSessionPresent && pair.client.info?.sessionMayBeAnother == false)
    }

    @Test func `an identifier of QoS 2 is not used again after its message cannot be sent any more`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.publish("given up", qos: .exactlyOnce)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        pair.server.engine.configuration.maximumQoS = .atLeastOnce
        try pair.connect()
        #expect(pair.client.completions.map(\.outcome) == [.unsendableAgain])
        pair.cut()
        pair.server.engine.configuration.maximumQoS = .exactlyOnce
        // The next process begins with the lowest identifier.
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration,
            session: MQTTSession(restoring: pair.client.engine.session.records))
        try pair.connect()
        try pair.publish("other", qos: .exactlyOnce)
        pair.settle()
        #expect(pair.server.texts == ["given up", "other"])
    }

    @Test func `a message that was sent in a lost session and cannot be sent any more may have arrived`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        pair.server.acknowledges = false
        try pair.publish("sent", qos: .exactlyOnce, token: 1)
        pair.settle()
        pair.cut()
        try pair.publish("never sent", qos: .exactlyOnce, token: 2)
        pair.serverKeepsSession = false
        pair.server.engine.configuration.maximumQoS = .atLeastOnce
        try pair.connect()
        #expect(pair.client.completions.map(\.token) == [1, 2])
        #expect(pair.client.completions.map(\.outcome) == [.unsendableAgain, .unsendable])
        #expect(pair.client.completions.allSatisfy { $0.reason == .qosNotSupported })
    }

    @Test func `a QoS 2 message held by the application over a connection is acknowledged by its first token`() throws {
        let pair = EnginePair.persistent()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("held", qos: .exactlyOnce)
        pair.settle()
        pair.cut()
        try pair.connect()
        #expect(pair.server.texts == ["held"])
        #expect(!pair.server.types.contains(.pubrec))
        pair.server.engine.acknowledge(pair.server.messages[0].delivery, at: pair.now)
        pair.settle()
        #expect(pair.client.completions.count == 1)
    }

    @Test func `a QoS 2 message acknowledged while disconnected is answered when it is repeated`() throws {
        let pair = EnginePair.persistent()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("held", qos: .exactlyOnce)
        pair.settle()
        pair.cut()
        pair.server.engine.acknowledge(pair.server.messages[0].delivery, at: pair.now)
        try pair.connect()
        #expect(pair.server.texts == ["held"])
        #expect(pair.client.completions.count == 1)
    }

    @Test func `messages are published anew when the server lost the session [MQTT-3.2.2-5]`() throws {
        let pair = EnginePair.persistent()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        try pair.publish("2", qos: .exactlyOnce, token: 2)
        try pair.publish("3", qos: .atLeastOnce, token: 3)
        pair.settle()
        pair.cut()
        try pair.publish("4", qos: .atLeastOnce, token: 4)
        pair.serverKeepsSession = false
        pair.server.acknowledges = true
        try pair.connect()
        #expect(Array(pair.server.texts.suffix(4)) == ["1", "2", "3", "4"])
        #expect(pair.client.publishes.suffix(4).allSatisfy { !$0.isDuplicate })
        let lost = pair.client.events.compactMap { event -> (Int, [UInt64])? in
            if case .sessionLost(let count, let duplicates) = event { (count, duplicates) } else { nil }
        }
        #expect(lost.count == 1)
        #expect(lost.first?.0 == 3)
        #expect(lost.first?.1 == [2])
        #expect(pair.client.completions.map(\.token) == [1, 3, 4, 2])
    }

    @Test func `what waited for PUBCOMP is published anew too, in its place`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, token: 1)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        try pair.publish("2", qos: .atLeastOnce, token: 2)
        pair.cut()
        pair.serverKeepsSession = false
        try pair.connect()
        #expect(pair.server.texts == ["1", "1", "2"])
        #expect(pair.client.completions.map(\.token).sorted() == [1, 2])
    }

    @Test func `messages of a lost session fail instead if the configuration says so`() throws {
        let pair = EnginePair.persistent(client: { $0.republishesAfterSessionLoss = false })
        try pair.connect()
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        pair.cut()
        try pair.publish("2", qos: .atLeastOnce, token: 2)
        pair.serverKeepsSession = false
        try pair.connect()
        #expect(
            pair.client.completions == [
                .init(token: 1, outcome: .sessionLost, reason: .success),
                .init(token: 2, outcome: .acknowledged, reason: .success),
            ])
    }

    @Test func `a clean start forgets the identifiers of received messages too [MQTT-3.1.2-4]`() throws {
        let pair = EnginePair.persistent()
        pair.client.acknowledges = false
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["x"])
        pair.cut()
        pair.client.engine.configuration.cleanStart = true
        try pair.connect()
        try pair.publish("y", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["x", "y"])
    }

    @Test func `a session that nobody knows is refused in 5.0 [MQTT-3.2.2-4] and may be accepted on request`() throws {
        for accepts in [false, true] {
            let pair = EnginePair.persistent(client: { $0.acceptsUnknownSession = accepts })
            pair.serverAnswers = false
            try pair.connect()
            pair.server.run { engine, effects in
                try? engine.acceptConnection(sessionPresent: true, at: pair.now, into: &effects)
            }
            pair.settle()
            #expect(pair.client.violation?.clause == (accepts ? nil : "MQTT-3.2.2-4"))
            #expect(pair.client.types == (accepts ? [.connect] : [.connect, .disconnect]))
        }
    }

    @Test func `a session whose CONNACK was lost is ours`() throws {
        let pair = EnginePair.persistent()
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        try pair.connect()
        #expect(pair.client.info?.sessionPresent == true)
    }

    @Test func `Session Present after a clean start is a violation in 5_0 [MQTT-3.2.2-2]`() throws {
        let pair = EnginePair(version: .v5_0)
        pair.serverAnswers = false
        try pair.connect()
        try pair.inject(.connack(.init(sessionPresent: true)), into: pair.client)
        #expect(pair.client.violation?.clause == "MQTT-3.2.2-2")
    }

    @Test func `a session without expiry ends with its connection [MQTT-3.1.2-23]`() throws {
        let pair = EnginePair(client: { $0.cleanStart = false })
        try pair.connect()
        pair.cut()
        #expect(pair.client.holdsSession == false)
        #expect(pair.server.holdsSession == false)
        let kept = EnginePair.persistent(version: .v3_1_1)
        try kept.connect()
        kept.cut()
        #expect(kept.client.holdsSession)
        #expect(kept.server.holdsSession)
    }

    @Test func `requests fail with their connection and their identifiers are free again`() throws {
        let pair = EnginePair.persistent()
        pair.serverAnswers = true
        try pair.connect()
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        try pair.client.engine.unsubscribe(["b"], at: pair.now)
        pair.cut()
        let failed = pair.client.events.flatMap { event -> [String] in
            if case .requestFailed(let request) = event { request.filters } else { [] }
        }
        #expect(failed == ["a", "b"])
    }

    @Test func `a discarded session reports every message`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        pair.cut()
        try pair.publish("2", qos: .exactlyOnce, token: 2)
        pair.client.run { engine, effects in try? engine.discardSession(into: &effects) }
        #expect(pair.client.completions.map(\.token) == [1, 2])
        #expect(pair.client.completions.allSatisfy { $0.outcome == .discarded })
        #expect(pair.client.engine.queuedCount == 0)
    }

    @Test func `a server moves a session from one engine to the next`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        pair.cut()
        try pair.publish("offline", qos: .atLeastOnce, token: 5, from: pair.server)
        let session = try pair.server.engine.replaceSession(MQTTSession())
        #expect(session.queuedCount == 1)
        pair.serverAnswers = false
        try pair.connect()
        _ = try pair.server.engine.replaceSession(session)
        pair.server.run { engine, effects in
            try? engine.acceptConnection(sessionPresent: true, at: pair.now, into: &effects)
        }
        pair.settle()
        #expect(pair.client.texts == ["offline"])
        #expect(pair.server.completions.map(\.token) == [5])
    }

    @Test(arguments: [true, false])
    func `a QoS 2 message of an earlier connection is refused as it was said, before or after its repetition`(
        isEarly: Bool
    ) throws {
        let pair = EnginePair.persistent()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("held", qos: .exactlyOnce, token: 3)
        pair.settle()
        pair.cut()
        func refuse() {
            pair.server.engine.acknowledge(pair.server.messages[0].delivery, reason: .quotaExceeded, at: pair.now)
        }
        if isEarly { refuse() }
        try pair.connect()
        if !isEarly {
            #expect(pair.client.completions.isEmpty)
            refuse()
            pair.settle()
        }
        #expect(pair.server.texts == ["held"])
        #expect(pair.client.completions == [.init(token: 3, outcome: .refused, reason: .quotaExceeded)])
        #expect(pair.client.engine.inFlightCount == 0)
        // The identifier is new [MQTT-4.3.3-9].
        try pair.publish("next", qos: .exactlyOnce, token: 4)
        pair.settle()
        #expect(pair.server.texts == ["held", "next"])
    }

    @Test(arguments: [false, true])
    func `a message that is sent again has the rest of its expiry interval [MQTT-3.3.2-6]`(fromServer: Bool) throws {
        let pair = EnginePair.persistent()
        let (sender, receiver) = fromServer ? (pair.server, pair.client) : (pair.client, pair.server)
        receiver.acknowledges = false
        try pair.connect()
        var properties = MQTTProperties()
        properties.messageExpiryInterval = 100
        try pair.publish("begun", qos: .atLeastOnce, properties: properties, token: 1, from: sender)
        pair.flush()
        pair.cut()
        pair.advance(seconds: 60)
        try pair.connect()
        pair.flush()
        #expect(sender.publishes.map(\.properties.messageExpiryInterval) == [100, 40])
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `an exchange that was begun is finished after the message expired [MQTT-4.3.3-7, 4.3.3-13]`(qos: QoS) throws {
        var properties = MQTTProperties()
        properties.messageExpiryInterval = 1
        // Not acknowledged when the connection broke: sent again, however old it is.
        let pair = EnginePair.persistent()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("begun", qos: qos, properties: properties, token: 1)
        pair.flush()
        pair.cut()
        pair.advance(seconds: 60)
        try pair.connect()
        #expect(pair.client.publishes.map(\.isDuplicate) == [false, true])
        pair.server.acknowledges = true
        pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
        pair.settle()
        #expect(pair.client.completions == [.init(token: 1, outcome: .acknowledged, reason: .success)])
        // What is left of its time; 0 is read in different ways.
        #expect(pair.client.publishes.map(\.properties.messageExpiryInterval) == [1, 1])
        guard qos == .exactlyOnce else { return }
        // PUBREC came, then time passed on both sides: PUBREL and PUBCOMP follow all the same.
        let slow = EnginePair.persistent()
        try slow.connect()
        try slow.publish("taken", qos: .exactlyOnce, properties: properties, token: 2)
        slow.flush()
        slow.deliver(to: slow.server)
        slow.flush()
        slow.deliver(to: slow.client)
        slow.cut()
        slow.advance(seconds: 60)
        try slow.connect()
        #expect(slow.client.types.suffix(1) == [.pubrel])
        #expect(slow.client.completions == [.init(token: 2, outcome: .acknowledged, reason: .success)])
        #expect(slow.server.texts == ["taken"])
    }
}
