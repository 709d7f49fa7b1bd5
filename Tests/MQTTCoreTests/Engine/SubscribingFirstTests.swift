import MQTTCore
import TestSupport
import Testing

@Suite("Engine: subscriptions before messages", .heavy)
struct SubscribingFirstTests {
    /// A client that subscribes first and has published before: one message of each QoS from 1 on is unacknowledged, and
    /// two wait in the queue. The server loses the session.
    private func interrupted(
        version: MQTTVersion, client change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = EnginePair.persistent(version: version) {
            $0.subscribesAgainAfterRefusals = true
            $0.queuesQoS0WhileDisconnected = true
            change(&$0)
        }
        try pair.connect()
        reconcile(pair)
        pair.server.acknowledges = false
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        try pair.publish("2", qos: .exactlyOnce, token: 2)
        pair.settle()
        pair.cut()
        pair.server.acknowledges = true
        pair.serverKeepsSession = false
        try pair.publish("3", qos: .atLeastOnce, token: 3)
        try pair.publish("4", token: 4)
        pair.client.sent = []
        pair.server.messages = []
        return pair
    }

    private func reconcile(_ pair: EnginePair) {
        pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
    }

    private func want(_ pair: EnginePair, _ filter: String) throws {
        try pair.client.engine.want(.init(filter: filter))
    }

    @Test(arguments: MQTTVersion.allCases)
    func `after the loss of a session the SUBACK comes before unacknowledged and queued messages`(
        version: MQTTVersion
    ) throws {
        let pair = try interrupted(version: version)
        pair.serverAnswers = true
        try pair.connect()
        try want(pair, "a")
        try want(pair, "b")
        try pair.publish("5", qos: .atLeastOnce, token: 5)
        try pair.publish("6", token: 6)
        pair.serverAnswers = false
        reconcile(pair)
        pair.settle()
        #expect(pair.client.publishes.isEmpty)
        #expect(pair.client.types == [.connect, .subscribe])
        for case .subscribeReceived(let subscribe) in pair.server.events {
            #expect(pair.client.publishes.isEmpty)
            try pair.server.engine.acknowledgeSubscribe(
                subscribe.packetID, codes: [.success, .success], at: pair.now)
            pair.settle()
        }
        #expect(pair.server.texts == ["1", "2", "3", "4", "5", "6"])
        #expect(Set(pair.client.completions.map(\.token)) == Set(1...6))
        #expect(pair.client.completions.count == 6)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a message published meanwhile waits behind the queue`(version: MQTTVersion) throws {
        let pair = try interrupted(version: version) { $0.maximumInFlight = 1 }
        try pair.connect()
        reconcile(pair)
        pair.settle()
        #expect(pair.server.texts == ["1", "2", "3", "4"])
    }

    @Test func `many messages wait too, within the Receive Maximum`() throws {
        let pair = EnginePair(client: { $0.subscribesAgainAfterRefusals = true }, server: { $0.receiveMaximum = 4 })
        try pair.connect()
        try want(pair, "a")
        let topic = "a/topic/of/some/length"
        let messages = (0..<10).map { MQTTOutgoingMessage([UInt8($0)], to: topic, qos: .atLeastOnce) }
        for message in messages {
            let outcome = try pair.client.engine.publish(
                topic: topic, payload: message.payload, qos: .atLeastOnce, token: 7, at: pair.now)
            #expect(outcome == .queued)
        }
        #expect(try pair.publish("held") == .queued)
        reconcile(pair)
        pair.flush()
        #expect(pair.client.publishes.isEmpty)
        pair.settle()
        #expect(pair.server.messages.count == 11)
        let outcomes = try (0..<5).map { try pair.publish("\($0)", qos: .atLeastOnce) }
        #expect(outcomes == [.written, .written, .written, .written, .queued])
    }

    @Test func `a SUBACK that is late because the caller does not read ends no connection`() throws {
        let pair = try unanswered()
        for _ in 0..<3 {
            pair.client.engine.setReadingPaused(true, at: pair.now)
            pair.advance(seconds: 80)
            pair.client.engine.setReadingPaused(false, at: pair.now)
            pair.advance(seconds: 3)
        }
        #expect(pair.client.failure == nil && pair.client.publishes.isEmpty)
        // While the caller reads, the server has to answer in time.
        pair.advance(seconds: 1)
        #expect(pair.client.failure == .subscribeTimeout)
    }

    /// The server answers SUBSCRIBE, which has just arrived.
    private func answerSubscribe(_ code: MQTTReasonCode, _ pair: EnginePair) throws {
        guard case .subscribeReceived(let subscribe)? = pair.server.events.last else {
            Issue.record("no SUBSCRIBE arrived")
            return
        }
        try pair.server.engine.acknowledgeSubscribe(subscribe.packetID, codes: [code], at: pair.now)
        pair.settle()
    }

    /// A client whose SUBSCRIBE is not answered, and that lets messages wait for that.
    private func unanswered(
        client change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = try interrupted(version: .v5_0) {
            $0.requestTimeout = 10_000_000_000
            change(&$0)
        }
        try pair.connect()
        try want(pair, "a")
        pair.serverAnswers = false
        reconcile(pair)
        pair.settle()
        return pair
    }

    @Test func `a SUBACK behind messages that arrive slowly ends no connection`() throws {
        // The server, to which no PINGREQ comes meanwhile, has to be patient.
        let pair = try unanswered { $0.keepAlive = 600 }
        #expect(try pair.stream(atMost: 100, answersPings: false) == 100)
        #expect(pair.client.failure == nil && pair.client.publishes.isEmpty)
        pair.settle()
        try answerSubscribe(.success, pair)
        #expect(pair.server.texts == ["1", "2", "3", "4"])
    }

    @Test(arguments: [60, 0])
    func `a server that sends messages and never answers SUBSCRIBE is left`(keepAlive: UInt16) throws {
        let pair = try unanswered { $0.keepAlive = keepAlive }
        // With keep alive the answer to PINGREQ shows that SUBACK is not behind the messages.
        let limit = keepAlive > 0 ? 11 : 600
        #expect(try pair.stream(atMost: 1_000, answersPings: true) == limit)
        #expect(pair.client.failure == .subscribeTimeout)
    }

    @Test func `a server that sends messages and answers neither SUBSCRIBE nor PINGREQ is left`() throws {
        let pair = try unanswered()
        #expect(try pair.stream(atMost: 1_000, answersPings: false) == 600)
        #expect(pair.client.failure == .subscribeTimeout)
    }

    @Test(arguments: [false, true])
    func `a refusing SUBACK lets the queue leave, at once or when the caller has handled it`(asksAgain: Bool) throws {
        let pair = try interrupted(version: .v5_0)
        pair.client.engine.configuration.subscribesAgainAfterRefusals = asksAgain
        try pair.connect()
        try want(pair, "a")
        pair.serverAnswers = false
        reconcile(pair)
        pair.settle()
        try answerSubscribe(.notAuthorized, pair)
        guard case .subscribeCompleted(_, codes: [.notAuthorized], _)? = pair.client.events.last else {
            Issue.record("the refusal is not reported: \(pair.client.events)")
            return
        }
        if asksAgain {
            #expect(pair.server.texts.isEmpty)
            reconcile(pair)
            pair.settle()
        }
        #expect(pair.server.texts == ["1", "2", "3", "4"])
    }

    @Test func `what is subscribed because of refusals comes before messages too`() throws {
        let pair = try interrupted(version: .v5_0) { $0.maximumFiltersPerRequest = 1 }
        try pair.connect()
        try want(pair, "a")
        try want(pair, "b")
        pair.serverAnswers = false
        reconcile(pair)
        pair.settle()
        for case .subscribeReceived(let subscribe) in pair.server.events {
            try pair.server.engine.acknowledgeSubscribe(subscribe.packetID, codes: [.notAuthorized], at: pair.now)
        }
        pair.settle()
        // Once for both refusals.
        try want(pair, "c")
        reconcile(pair)
        pair.settle()
        #expect(pair.client.publishes.isEmpty)
        // An ordinary one.
        try want(pair, "d")
        reconcile(pair)
        try answerSubscribe(.success, pair)
        #expect(pair.server.texts == ["1", "2", "3", "4"])
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a SUBACK that is late ends the connection, and everything waits for the next one`(
        version: MQTTVersion
    ) throws {
        let pair = try interrupted(version: version) { $0.requestTimeout = 5_000_000_000 }
        try pair.connect()
        try want(pair, "a")
        pair.serverAnswers = false
        reconcile(pair)
        pair.settle()
        pair.advance(seconds: 4.9)
        #expect(!pair.client.shouldClose)
        pair.advance(seconds: 0.2)
        #expect(pair.client.failure == .subscribeTimeout)
        #expect(pair.client.shouldClose)
        pair.settle()
        #expect(pair.client.publishes.isEmpty)
        pair.cut()
        pair.serverAnswers = true
        try pair.connect()
        reconcile(pair)
        pair.settle()
        #expect(Array(pair.server.texts.suffix(4)) == ["1", "2", "3", "4"])
    }

    @Test func `a later SUBSCRIBE that is late leaves the connection alone`() throws {
        let pair = EnginePair {
            $0.subscribesAgainAfterRefusals = true
            $0.requestTimeout = 5_000_000_000
            $0.keepAlive = 0
        }
        try pair.connect()
        reconcile(pair)
        pair.serverAnswers = false
        try want(pair, "a")
        try pair.publish("at once", qos: .atLeastOnce)
        pair.settle()
        #expect(pair.server.texts == ["at once"])
        pair.advance(seconds: 6)
        #expect(!pair.client.shouldClose)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `a resumed session sends PUBREL at once and PUBLISH after new subscriptions`(version: MQTTVersion) throws {
        let pair = EnginePair.persistent(version: version) { $0.subscribesAgainAfterRefusals = true }
        try pair.connect()
        reconcile(pair)
        try pair.publish("released", qos: .exactlyOnce, token: 1)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        try pair.publish("again", qos: .atLeastOnce, token: 2)
        pair.flush()
        pair.cut()
        pair.client.sent = []
        try pair.connect()
        try want(pair, "new")
        reconcile(pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .pubrel, .subscribe, .publish])
        #expect(pair.client.completions.map(\.token) == [1, 2])
    }

    @Test func `a connection that ends while messages wait keeps them for the next one`() throws {
        let pair = try interrupted(version: .v5_0)
        try pair.connect()
        try pair.publish("5", token: 5)
        pair.cut()
        try pair.connect()
        reconcile(pair)
        pair.settle()
        #expect(pair.server.texts == ["1", "2", "3", "4", "5"])
    }

    @Test func `what the server does not allow is refused although the message would wait`() throws {
        let pair = EnginePair { $0.subscribesAgainAfterRefusals = true }
        pair.connackProperties.maximumQoS = .atMostOnce
        try pair.connect()
        #expect(throws: MQTTUsageError.self) { try pair.publish("x", qos: .atLeastOnce) }
        #expect(try pair.publish("x") == .queued)
    }
}
