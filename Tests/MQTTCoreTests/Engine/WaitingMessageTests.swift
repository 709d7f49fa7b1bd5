import Testing

@testable import MQTTCore

@Suite("Engine: messages that wait, and are given up")
struct WaitingMessageTests {
    private let second: Int64 = 1_000_000_000

    private func expiry(_ seconds: UInt32) -> MQTTProperties {
        var properties = MQTTProperties()
        properties.messageExpiryInterval = seconds
        return properties
    }

    // MARK: Expiry

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `a message expires without a connection, and no sooner`(version: MQTTVersion, qos: QoS) throws {
        let pair = EnginePair.persistent(version: version, client: { $0.queuesQoS0WhileDisconnected = true })
        try pair.publish("lasts", qos: qos, token: 1)
        #expect(pair.client.engine.nextDeadline == .max)
        try pair.publish("expires", qos: qos, properties: expiry(30), token: 2)
        #expect(pair.client.engine.nextDeadline == pair.now + 30 * second)
        pair.advance(seconds: 29.999)
        #expect(pair.client.completions == [])
        pair.advance(seconds: 0.001)
        #expect(pair.client.completions == [.init(token: 2, outcome: .expired, reason: .success)])
        #expect(pair.client.engine.nextDeadline == .max)
        try pair.connect()
        #expect(pair.server.texts == ["lasts"])
    }

    @Test func `a message expires behind a full window, and makes room`() throws {
        let pair = EnginePair(client: {
            $0.maximumInFlight = 1
            $0.maximumQueuedMessages = 2
        })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("sent", qos: .atLeastOnce, properties: expiry(1), token: 1)
        pair.settle()
        for token in UInt64(2)...3 { try pair.publish("waits", qos: .atLeastOnce, properties: expiry(5), token: token) }
        #expect(throws: MQTTUsageError.self) { try pair.publish("too many", qos: .atLeastOnce, token: 4) }
        pair.advance(seconds: 5)
        #expect(pair.client.completions.map(\.token) == [2, 3])
        #expect(pair.client.completions.allSatisfy { $0.outcome == .expired })
        #expect(pair.client.hadRoom)
        #expect(pair.client.engine.inFlightCount == 1, "what was sent is finished, however old it becomes")
    }

    @Test func `messages that return to the queue with a lost session expire there too`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 1 })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        pair.settle()
        try pair.publish("2", qos: .atLeastOnce, properties: expiry(60), token: 2)
        pair.cut()
        pair.serverKeepsSession = false
        try pair.connect()
        pair.advance(seconds: 60)
        #expect(pair.client.completions == [.init(token: 2, outcome: .expired, reason: .success)])
    }

    @Test func `a long queue is not searched for each of its messages`() throws {
        let pair = EnginePair()
        for number in 0..<1_000 {
            try pair.publish("x", qos: .atLeastOnce, properties: expiry(30), token: UInt64(number))
            pair.now += second / 1_000
        }
        var searches = 0
        while pair.client.engine.nextDeadline != .max {
            pair.now = pair.client.engine.nextDeadline
            pair.advance(seconds: 0)
            searches += 1
        }
        #expect(pair.client.completions.map(\.token) == Array(UInt64(0)..<1_000))
        #expect((9...12).contains(searches), "\(searches)")
    }

    @Test func `the store forgets a message that has expired`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.publish("x", qos: .atLeastOnce, properties: expiry(1))
        pair.client.engine.storeRecords = []
        pair.advance(seconds: 1)
        #expect(pair.client.engine.storeRecords == [.finished(sequence: 1)])
    }

    @Test func `what a server keeps for a client has no deadline`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        pair.cut()
        try pair.publish("x", qos: .atLeastOnce, properties: expiry(1), from: pair.server)
        #expect(pair.server.engine.nextDeadline == .max)
    }

    // MARK: Withdrawing

    @Test(arguments: [false, true]) func `a message is withdrawn unless it was sent`(persists: Bool) throws {
        let pair = EnginePair.persistent(client: {
            $0.maximumInFlight = 1
            $0.persists = persists
        })
        pair.server.acknowledges = false
        try pair.connect()
        for token in UInt64(1)...3 { try pair.publish("\(token)", qos: .exactlyOnce, token: token) }
        pair.client.run { engine, effects in engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
        }
        pair.settle()
        func withdraw(_ token: UInt64) -> Bool {
            var isWithdrawn = false
            pair.client.run { engine, effects in isWithdrawn = engine.withdraw(token, into: &effects) }
            return isWithdrawn
        }
        pair.client.engine.storeRecords = []
        #expect(!withdraw(1), "in flight")
        #expect(withdraw(2))
        #expect(!withdraw(2), "gone")
        #expect(!withdraw(9), "unknown")
        #expect(pair.client.engine.storeRecords == (persists ? [.finished(sequence: 2)] : []))
        pair.cut()
        pair.serverKeepsSession = false
        try pair.open()
        pair.client.run { engine, effects in engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
        }
        #expect(!withdraw(1), "sent in a session that was lost")
        pair.server.acknowledges = true
        for _ in 0..<4 {
            pair.settle()
            pair.client.run { engine, effects in
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
        }
        pair.settle()
        #expect(Set(pair.server.texts) == ["1", "3"])
        #expect(pair.client.completions.allSatisfy { $0.token != 2 })
    }

    @Test func `a message that was withdrawn makes room`() throws {
        let pair = EnginePair(client: { $0.maximumQueuedMessages = 1 })
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        #expect(throws: MQTTUsageError.self) { try pair.publish("2", qos: .atLeastOnce, token: 2) }
        pair.client.run { engine, effects in _ = engine.withdraw(1, into: &effects) }
        #expect(pair.client.hadRoom)
        try pair.publish("2", qos: .atLeastOnce, token: 2)
    }

    /// A message may be refused while half of the queue is free: it is larger than the rest.
    @Test func `withdrawing nothing leaves the notice of room to what makes room`() throws {
        let pair = EnginePair(client: { $0.maximumQueuedBytes = 300 })
        try pair.publish(String(repeating: "x", count: 100), qos: .atLeastOnce, token: 1)
        #expect(throws: MQTTUsageError.self) {
            try pair.publish(String(repeating: "x", count: 250), qos: .atLeastOnce, token: 2)
        }
        pair.client.run { engine, effects in #expect(!engine.withdraw(9, into: &effects)) }
        #expect(!pair.client.hadRoom)
        pair.client.run { engine, effects in #expect(engine.withdraw(1, into: &effects)) }
        #expect(pair.client.hadRoom)
    }

    @Test func `what was sent in a session that was lost makes no room`() throws {
        let pair = EnginePair.persistent(client: {
            $0.maximumInFlight = 2
            $0.maximumQueuedMessages = 2
        })
        pair.server.acknowledges = false
        try pair.connect()
        for token: UInt64 in 1...4 { try pair.publish("\(token)", qos: .atLeastOnce, token: token) }
        #expect(pair.client.engine.dropOldestQueued() == 3)
        pair.cut()
        pair.serverKeepsSession = false
        pair.client.engine.configuration.maximumInFlight = 1
        try pair.connect()
        #expect(pair.client.engine.queuedCount == 2)
        #expect(pair.client.engine.dropOldestQueued() == 4)
        #expect(pair.client.engine.dropOldestQueued() == nil)
        #expect(pair.client.engine.queuedCount == 1)
    }
}
