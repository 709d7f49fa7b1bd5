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
        let pair = EnginePair(version: version, client: { $0.subscribesFirst = true })
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
        #expect(throws: MQTTUsageError.self) {
            try pair.client.engine.subscribe([.init(filter: "a")], token: 1, at: pair.now)
        }
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
}
