import MQTTCore
import TestSupport
import Testing

@Suite("Engine: leaving gracefully", .heavy)
struct LeavingTests {
    /// A client that has received two QoS 2 messages and sent PUBREC for them; PUBREL is on its way.
    private func receiving(
        version: MQTTVersion, client change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = EnginePair.persistent(version: version, client: change)
        try pair.connect()
        for text in ["1", "2"] { try pair.publish(text, qos: .exactlyOnce, from: pair.server) }
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        return pair
    }

    private func leave(_ pair: EnginePair, seconds: Int64 = 2) {
        pair.client.run { engine, effects in
            try? engine.leave(within: seconds * 1_000_000_000, at: pair.now, into: &effects)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `DISCONNECT follows the PUBCOMP of every QoS 2 message under way`(version: MQTTVersion) throws {
        let pair = try receiving(version: version)
        leave(pair)
        pair.flush()
        #expect(!pair.client.shouldClose)
        #expect(pair.client.types.last == .pubrec)
        pair.settle()
        #expect(pair.client.types.suffix(3) == [.pubcomp, .pubcomp, .disconnect])
        #expect(pair.client.shouldClose)
        #expect(pair.client.texts == ["1", "2"])
        #expect(pair.server.completions.count == 2)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `without an open exchange DISCONNECT leaves at once, behind what was published`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version, client: { $0.subscribesAgainAfterRefusals = true })
        try pair.connect()
        try pair.publish("held")
        leave(pair)
        pair.flush()
        #expect(pair.client.types == [.connect, .publish, .disconnect])
        #expect(pair.client.shouldClose)
    }

    @Test func `a PUBREL that does not come holds DISCONNECT back no longer than the limit`() throws {
        let pair = try receiving(version: .v5_0)
        leave(pair)
        pair.server.inbox = []
        pair.advance(seconds: 1.9)
        pair.flush()
        #expect(!pair.client.types.contains(.disconnect))
        #expect(pair.client.engine.nextDeadline > pair.now)
        pair.advance(seconds: 0.2)
        pair.flush()
        #expect(pair.client.types.last == .disconnect)
        #expect(pair.client.shouldClose)
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `a message that arrives meanwhile begins nothing, and comes with the next connection`(qos: QoS) throws {
        let pair = try receiving(version: .v5_0)
        leave(pair)
        try pair.publish("3", qos: qos, from: pair.server)
        pair.settle()
        #expect(pair.client.types.last == .disconnect)
        #expect(pair.client.texts == ["1", "2"])
        pair.cut()
        try pair.connect()
        #expect(pair.client.texts == ["1", "2", "3"])
    }

    @Test func `a session store is waited for, and nothing new may be sent`() throws {
        let pair = EnginePair.persistent { $0.persists = true }
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        leave(pair)
        pair.settle()
        #expect(!pair.client.types.contains(.pubrec))
        #expect(throws: MQTTUsageError.self) { try pair.publish("x") }
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        #expect(pair.client.engine.output.isEmpty)
        for _ in 0..<2 {
            pair.client.run { engine, effects in
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
            pair.settle()
        }
        #expect(pair.client.types.suffix(3) == [.pubrec, .pubcomp, .disconnect])
    }

    @Test func `a message that the application has not acknowledged is not waited for`() throws {
        let pair = EnginePair.persistent()
        pair.client.acknowledges = false
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        leave(pair)
        pair.settle()
        #expect(pair.client.types.last == .disconnect)
    }

    @Test(arguments: MQTTVersion.allCases)
    func `our own QoS 2 exchanges are finished if the session ends with the connection`(version: MQTTVersion) throws {
        for pair in [EnginePair(version: version), EnginePair.persistent(version: version)] {
            try pair.connect()
            try pair.publish("1", qos: .exactlyOnce)
            try pair.publish("2", qos: .atLeastOnce)
            pair.flush()
            let isKept = pair.client.engine.sessionOutlivesConnection
            leave(pair)
            pair.flush()
            #expect(pair.client.types.last == (isKept ? .disconnect : .publish))
            pair.settle()
            #expect(pair.client.types.suffix(2) == (isKept ? [.publish, .disconnect] : [.pubrel, .disconnect]))
            #expect(pair.client.completions.count == (isKept ? 0 : 2))
            #expect(pair.client.shouldClose)
        }
    }

    @Test func `an answer to our own QoS 2 message holds DISCONNECT back no longer than the limit`() throws {
        let pair = EnginePair()
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("1", qos: .exactlyOnce)
        leave(pair)
        pair.settle()
        pair.advance(seconds: 1.9)
        pair.settle()
        #expect(pair.client.types.last == .publish)
        pair.advance(seconds: 0.2)
        pair.flush()
        #expect(pair.client.types.last == .disconnect)
    }

    @Test func `messages of QoS 0 leave at their pace, and others stay in the queue`() throws {
        let pair = EnginePair(client: { $0.maximumPublishesPerSecond = 10 })
        try pair.connect()
        for number in 0..<5 { try pair.publish("\(number)", qos: number == 2 ? .atLeastOnce : .atMostOnce) }
        leave(pair)
        pair.settle()
        #expect(pair.server.texts == ["0"])
        for _ in 0..<3 {
            #expect(!pair.client.shouldClose)
            let deadline = pair.client.engine.nextDeadline
            #expect(deadline > pair.now)
            pair.advance(seconds: Double(deadline - pair.now) / 1e9)
            pair.settle()
        }
        #expect(pair.server.texts == ["0", "1", "3", "4"])
        #expect(pair.client.types.last == .disconnect)
        #expect(pair.client.engine.queuedCount == 1)
    }

    @Test func `messages of QoS 0 that the pace does not allow hold DISCONNECT back no longer than the limit`() throws {
        let pair = EnginePair(client: { $0.maximumPublishesPerSecond = 1 })
        try pair.connect()
        for number in 0..<9 { try pair.publish("\(number)") }
        leave(pair)
        for _ in 0..<30 {
            pair.advance(seconds: 0.1)
            pair.settle()
        }
        #expect(pair.client.types.last == .disconnect)
        #expect((2...3).contains(pair.server.texts.count))
    }

    @Test func `until DISCONNECT is written, its reason and properties may change, but not its limit`() throws {
        let pair = try receiving(version: .v5_0)
        leave(pair)
        pair.server.inbox = []
        pair.advance(seconds: 1.5)
        var properties = MQTTProperties()
        properties.sessionExpiryInterval = 0
        pair.client.run { engine, effects in
            try? engine.leave(
                reason: .disconnectWithWillMessage, properties: properties, within: 2_000_000_000, at: pair.now,
                into: &effects)
        }
        pair.advance(seconds: 0.6)
        pair.flush()
        #expect(
            pair.client.sent.last
                == .disconnect(.init(reasonCode: .disconnectWithWillMessage, properties: properties)))
        #expect(throws: MQTTUsageError.self) {
            var effects = MQTTEffects()
            try pair.client.engine.leave(within: 0, at: pair.now, into: &effects)
        }
    }

    @Test func `leaving again when the limit is over writes DISCONNECT once [MQTT-3.14.4-1]`() throws {
        let pair = try receiving(version: .v5_0)
        leave(pair)
        pair.server.inbox = []
        // The timer has not been handled yet.
        pair.now += 2_100_000_000
        leave(pair)
        let shouldClose = pair.client.engine.shouldClose
        #expect(shouldClose)
        pair.flush()
        #expect(pair.client.types.count { $0 == .disconnect } == 1)
    }
}
