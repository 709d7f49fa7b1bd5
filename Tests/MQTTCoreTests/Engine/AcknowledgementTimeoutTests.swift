import MQTTCore
import TestSupport
import Testing

/// A server that answers PINGREQ and acknowledges nothing.
@Suite("Engine: acknowledgements that do not come", .heavy)
struct AcknowledgementTimeoutTests {
    private static let limit: Int64 = 30_000_000_000

    /// A pair whose server acknowledges no message.
    private func silentPair(
        _ version: MQTTVersion = .v5_0, _ change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = EnginePair.persistent(version: version) {
            $0.keepAlive = 10
            change(&$0)
        }
        pair.server.acknowledges = false
        try pair.connect()
        return pair
    }

    /// Seconds pass, in which the server answers what its engine answers by itself.
    private func pass(_ seconds: Int, _ pair: EnginePair) {
        for _ in 0..<seconds {
            pair.advance(seconds: 1)
            pair.settle()
        }
    }

    private func failure(_ topic: String, _ qos: QoS, _ seconds: Int64 = 30) -> MQTTConnectionFailure {
        .acknowledgementTimeout(topic: topic, qos, after: seconds * 1_000_000_000)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `after 30 seconds without any acknowledgement the connection ends and names the oldest message`(
        version: MQTTVersion, qos: QoS
    ) throws {
        let pair = try silentPair(version)
        pass(100, pair)
        try pair.publish("x", to: "oldest", qos: qos)
        pair.settle()
        pass(20, pair)
        try pair.publish("y", to: "later", qos: .atLeastOnce)
        pass(9, pair)
        #expect(pair.client.failure == nil)
        #expect(pair.client.types.contains(.pingreq))
        pass(1, pair)
        #expect(pair.client.failure == failure("oldest", qos))
        #expect(pair.client.shouldClose)
    }

    @Test func `messages that were sent as an array are awaited too`() throws {
        let pair = try silentPair()
        pass(100, pair)
        for number in 0..<3 { try pair.publish("\(number)", to: "messages/of/an/array", qos: .atLeastOnce) }
        pair.settle()
        pass(29, pair)
        #expect(pair.client.failure == nil)
        pass(1, pair)
        #expect(pair.client.failure == failure("messages/of/an/array", .atLeastOnce))
    }

    @Test func `PUBCOMP is awaited like PUBREC, and PUBREC is progress`() throws {
        let pair = try silentPair()
        try pair.publish("x", to: "t", qos: .exactlyOnce)
        pair.settle()
        pass(20, pair)
        pair.server.engine.acknowledgeAll(through: .max - 1, at: pair.now)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        // PUBREL gets lost, as in a server that ignores it.
        pair.server.inbox = []
        pass(29, pair)
        #expect(pair.client.failure == nil)
        pass(1, pair)
        #expect(pair.client.failure == failure("t", .exactlyOnce))
    }

    @Test func `any acknowledgement is progress, and nothing is awaited without a message`() throws {
        let pair = try silentPair()
        for _ in 0..<5 {
            try pair.publish("x", qos: .atLeastOnce)
            try pair.publish("y", qos: .atLeastOnce)
            pair.settle()
            pass(29, pair)
            let first = try #require(pair.server.messages.last { $0.text == "x" })
            pair.server.engine.acknowledgeAll(through: first.delivery, at: pair.now)
            pair.settle()
            pass(29, pair)
            pair.server.engine.acknowledgeAll(through: first.delivery + 1, at: pair.now)
            pair.settle()
            #expect(pair.client.engine.inFlightCount == 0)
            pass(100, pair)
        }
        #expect(pair.client.failure == nil)
        #expect(pair.client.engine.nextDeadline >= pair.now)
    }

    @Test func `bytes of the message that the peer's system acknowledges are progress, later bytes are not`() throws {
        // Nothing is read from the server: pings are no part of this.
        let pair = try silentPair { $0.keepAlive = 0 }
        try pair.publish("large", to: "large", qos: .atLeastOnce)
        for second in 1...100 { pair.advance(seconds: 1, total: 100_000, acknowledged: second * 1_000) }
        for _ in 1...29 { pair.advance(seconds: 1, total: 100_000, acknowledged: 100_000) }
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 1, total: 100_000, acknowledged: 100_000)
        #expect(pair.client.failure == failure("large", .atLeastOnce))
    }

    @Test func `a stream of QoS 0 behind the message does not hide that nothing is acknowledged`() throws {
        let pair = try silentPair { $0.keepAlive = 0 }
        try pair.publish("x", to: "first", qos: .atLeastOnce)
        for second in 1...29 {
            try pair.publish("y", to: "stream")
            pair.advance(seconds: 1, total: 1_000 + second * 100, acknowledged: 1_000 + second * 100)
        }
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 2, total: 5_000, acknowledged: 5_000)
        #expect(pair.client.failure == failure("first", .atLeastOnce))
    }

    @Test func `an acknowledgement behind messages that arrive slowly is waited for`() throws {
        // The server, to which no PINGREQ comes meanwhile, has to be patient.
        let pair = try silentPair { $0.keepAlive = 600 }
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        #expect(try pair.stream(atMost: 300, answersPings: false) == 300)
        #expect(pair.client.failure == nil)
        pair.settle()
        pair.server.engine.acknowledgeAll(through: .max - 1, at: pair.now)
        pair.settle()
        #expect(pair.client.engine.inFlightCount == 0)
    }

    @Test func `messages that arrive do not hide that nothing is acknowledged`() throws {
        let pair = try silentPair { $0.keepAlive = 60 }
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        // The answer to PINGREQ, which is written after 30 seconds, shows it.
        #expect((31...33).contains(try pair.stream(atMost: 300, answersPings: true)))
        #expect(pair.client.failure == failure("t", .atLeastOnce))
        let deaf = try silentPair { $0.keepAlive = 0 }
        try deaf.publish("x", to: "t", qos: .atLeastOnce)
        #expect((600...602).contains(try deaf.stream(atMost: 1_000, answersPings: true)))
        #expect(deaf.client.failure == failure("t", .atLeastOnce))
    }

    @Test func `the time doubles with each connection in a row, until an acknowledgement arrives`() throws {
        let pair = try silentPair()
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        func lasts(_ seconds: Int64, _ number: Int) throws {
            pair.settle()
            pair.client.events.removeAll { if case .connectionFailed = $0 { true } else { false } }
            pass(Int(seconds) - 1, pair)
            #expect(pair.client.failure == nil, "connection \(number)")
            pass(1, pair)
            #expect(pair.client.failure == failure("t", .atLeastOnce, seconds), "connection \(number)")
            pair.cut()
        }
        for (number, seconds) in [30, 60, 120, 240].enumerated() {
            try lasts(Int64(seconds), number)
            try pair.connect()
        }
        // A connection that ends for another reason changes nothing.
        pair.cut()
        try pair.connect()
        pair.settle()
        let delivered = try #require(pair.server.messages.last)
        pair.server.engine.acknowledgeAll(through: delivered.delivery, at: pair.now)
        pair.settle()
        #expect(pair.client.engine.inFlightCount == 0)
        try pair.publish("y", to: "t", qos: .atLeastOnce)
        try lasts(30, 5)
    }

    @Test func `a worker that acknowledges late does not end its connection`() throws {
        let pair = try silentPair()
        pair.client.acknowledges = false
        _ = try pair.publish("job", to: "t", qos: .atLeastOnce, from: pair.server)
        _ = try pair.publish("job", to: "t", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        pass(1_000, pair)
        #expect(pair.client.messages.count == 2)
        #expect(pair.client.failure == nil && pair.server.failure == nil)
    }

    @Test func `while we do not read, nothing is awaited`() throws {
        let pair = try silentPair { $0.keepAlive = 0 }
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        pair.settle()
        pair.client.engine.setReadingPaused(true, at: pair.now)
        pass(100, pair)
        pair.client.engine.setReadingPaused(false, at: pair.now)
        pass(29, pair)
        #expect(pair.client.failure == nil)
        pass(1, pair)
        #expect(pair.client.failure == failure("t", .atLeastOnce))
    }

    @Test func `while nothing is read because of what waits, what the server takes of it is progress`() throws {
        let pair = try silentPair { $0.keepAlive = 0 }
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        pair.settle()
        pair.advance(seconds: 3)
        pair.client.engine.setReadingHeldUp(true, at: pair.now)
        for second in 1...100 { pair.advance(seconds: 1, moved: second) }
        #expect(pair.client.failure == nil)
        // What waits is counted every two seconds.
        for _ in 1...31 { pair.advance(seconds: 1, moved: 100) }
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 1, moved: 100)
        #expect(pair.client.failure == failure("t", .atLeastOnce))
    }

    @Test func `without a limit a client waits for ever`() throws {
        let pair = try silentPair { $0.acknowledgementTimeout = .max }
        try pair.publish("x", qos: .exactlyOnce)
        pair.settle()
        pass(1_000, pair)
        #expect(pair.client.failure == nil)
    }

    @Test func `a message that waited for our own store is awaited from when it is sent`() throws {
        let pair = try silentPair { $0.persists = true }
        pass(50, pair)
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        pass(50, pair)
        pair.client.run { engine, effects in
            engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
        }
        pair.settle()
        #expect(pair.server.messages.count == 1)
        pass(29, pair)
        #expect(pair.client.failure == nil)
        pass(1, pair)
        #expect(pair.client.failure == failure("t", .atLeastOnce))
    }

    @Test func `PUBREL that waits for our own store is not awaited from the server`() throws {
        let pair = try silentPair { $0.persists = true }
        func stored() {
            pair.client.run { engine, effects in
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
        }
        try pair.publish("x", to: "t", qos: .exactlyOnce)
        stored()
        pair.settle()
        pair.server.engine.acknowledgeAll(through: .max - 1, at: pair.now)
        pair.settle()
        pass(100, pair)
        #expect(pair.client.failure == nil)
        stored()
        pair.settle()
        #expect(pair.client.engine.inFlightCount == 0)
    }
}
