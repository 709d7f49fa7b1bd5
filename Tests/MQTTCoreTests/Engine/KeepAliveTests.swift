import MQTTCore
import TestSupport
import Testing

@Suite("Engine: keep alive", .heavy)
struct KeepAliveTests {
    private func pings(_ pair: EnginePair) -> Int { pair.client.types.filter { $0 == .pingreq }.count }

    @Test func `a quiet client pings at its interval and is answered [MQTT-3.1.2-20]`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        for _ in 0..<4 {
            pair.advance(seconds: 9.9)
            pair.settle()
            let before = pings(pair)
            pair.advance(seconds: 0.1)
            pair.settle()
            #expect(pings(pair) == before + 1)
        }
        #expect(pair.client.failure == nil)
        let answers = pair.client.events.count { if case .pingAnswered = $0 { true } else { false } }
        #expect(answers == 4)
    }

    @Test func `a client that only sends pings too, because it reads nothing`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        for _ in 0..<12 {
            pair.advance(seconds: 1)
            try pair.publish("x")
            pair.settle()
        }
        #expect(pings(pair) == 1)
    }

    @Test func `what is published with an older time counts as sent when it is taken out`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        let old = pair.now
        pair.advance(seconds: 5)
        try pair.inject(.publish(.init(topic: "t", payload: [])), into: pair.client)
        _ = try pair.client.engine.publish(topic: "x", payload: [], at: old)
        #expect(pair.client.engine.nextDeadline == old + 10_000_000_000)
        pair.client.engine.outputTaken(at: pair.now)
        #expect(pair.client.engine.nextDeadline == pair.now + 10_000_000_000)
        // Time does not run backwards.
        _ = try pair.client.engine.publish(topic: "x", payload: [], at: old)
        #expect(pair.client.engine.nextDeadline == pair.now + 10_000_000_000)
    }

    @Test func `a half-open connection is noticed within interval and ping timeout`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.advance(seconds: 10)
        pair.advance(seconds: 4.9)
        #expect(pair.client.failure == nil)
        #expect(pair.client.engine.nextDeadline == pair.now + 100_000_000)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .pingTimeout)
        #expect(pair.client.shouldClose)
    }

    @Test func `any byte is life while PINGRESP is awaited`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.advance(seconds: 10)
        pair.client.engine.output = []
        for _ in 0..<4 {
            pair.advance(seconds: 4)
            try pair.inject(.publish(.init(topic: "t", payload: [])), into: pair.client)
        }
        #expect(pair.client.failure == nil)
    }

    @Test func `the server's keep alive replaces ours [MQTT-3.1.2-21]`() throws {
        let short = EnginePair(client: { $0.keepAlive = 100 })
        short.connackProperties.serverKeepAlive = 2
        try short.connect()
        #expect(short.client.info?.keepAlive == 2)
        #expect(short.client.engine.nextDeadline == short.now + 2_000_000_000)
        let off = EnginePair(client: { $0.keepAlive = 100 })
        off.connackProperties.serverKeepAlive = 0
        try off.connect()
        #expect(off.client.engine.nextDeadline == .max)
        #expect(off.server.engine.nextDeadline == .max)
    }

    @Test func `a silent client is disconnected after one and a half intervals [MQTT-3.1.2-22]`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        pair.now += 14_900_000_000
        pair.server.run { engine, effects in engine.handleTimeout(at: pair.now, into: &effects) }
        #expect(pair.server.failure == nil)
        pair.now += 100_000_000
        pair.server.run { engine, effects in engine.handleTimeout(at: pair.now, into: &effects) }
        #expect(pair.server.failure == .keepAliveTimeout)
        pair.flush()
        #expect(pair.server.sent.last == .disconnect(.init(reasonCode: .keepAliveTimeout)))
    }

    @Test func `while we pause reading ourselves nothing is dead, and pings go on`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.client.engine.setReadingPaused(true, at: pair.now)
        for _ in 0..<6 { pair.advance(seconds: 10) }
        pair.flush()
        #expect(pings(pair) == 6)
        #expect(pair.client.failure == nil)
        pair.client.engine.setReadingPaused(false, at: pair.now)
        pair.advance(seconds: 6)
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test func `late, early and repeated timeouts are harmless`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        for _ in 0..<5 { pair.advance(seconds: 0) }
        pair.flush()
        #expect(pings(pair) == 0)
        pair.advance(seconds: 13)
        for _ in 0..<5 { pair.advance(seconds: 0) }
        pair.flush()
        #expect(pings(pair) == 1)
        pair.cut()
        pair.advance(seconds: 1000)
        #expect(pair.client.failure == nil)
        #expect(pair.client.engine.nextDeadline == .max)
    }
}
