import MQTTCore
import TestSupport
import Testing

@Suite("Engine: keep alive", .heavy)
struct KeepAliveTests {
    private func pings(_ pair: EnginePair) -> Int { pair.client.types.filter { $0 == .pingreq }.count }

    private func isHeldUp(_ pair: EnginePair) -> Bool { pair.client.engine.isHeldUp(at: pair.now) }

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

    @Test func `the silence of a connection is noticed although reading was paused when the one before ended`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.client.engine.setReadingPaused(true, at: pair.now)
        pair.cut()
        try pair.connect()
        pair.advance(seconds: 10)
        pair.advance(seconds: 5)
        #expect(pair.client.failure == .pingTimeout)
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

    @Test func `while nothing is read because of what waits, what the server takes of it is its sign of life`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.advance(seconds: 10)
        pair.client.engine.setReadingHeldUp(true, at: pair.now)
        for moved in 1...20 { pair.advance(seconds: 4, moved: moved) }
        pair.advance(seconds: 4, moved: 20)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 1, moved: 20)
        #expect(pair.client.failure == .pingTimeout)
    }

    /// A client of a slow link: 10 s of keep alive, 5 s for answers, and PINGREQ written behind 1,000 bytes.
    private func pingBehindBytes() throws -> EnginePair {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.advance(seconds: 10, total: 1_000, acknowledged: 100)
        #expect(pair.client.engine.nextDeadline == pair.now + 5_000_000_000)
        return pair
    }

    @Test func `PINGREQ that waits behind bytes on a slow link is waited for as long as those arrive`() throws {
        let pair = try pingBehindBytes()
        for acknowledged in stride(from: 200, through: 1_000, by: 100) {
            pair.advance(seconds: 5, total: 1_002, acknowledged: acknowledged)
            #expect(pair.client.failure == nil)
            #expect(pair.client.engine.nextDeadline == pair.now + 5_000_000_000)
        }
        // Now PINGREQ itself has arrived, and its answer is due.
        pair.advance(seconds: 4.9, total: 1_002, acknowledged: 1_002)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1, total: 1_002, acknowledged: 1_002)
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test func `a late PINGREQ that has been answered starts anew`() throws {
        let pair = try pingBehindBytes()
        pair.advance(seconds: 5, total: 1_002, acknowledged: 1_000)
        try pair.inject(.pingresp, into: pair.client)
        pair.advance(seconds: 10, total: 1_002, acknowledged: 1_002)
        pair.advance(seconds: 5, total: 1_004, acknowledged: 1_004)
        // Nothing was written before the second PINGREQ that had not arrived.
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test func `bytes that arrive behind PINGREQ do not make a server alive that answers nothing`() throws {
        let pair = try pingBehindBytes()
        pair.advance(seconds: 5, total: 50_000, acknowledged: 50_000)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 5, total: 100_000, acknowledged: 100_000)
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test func `a link that drops everything is noticed in time while bytes wait`() throws {
        let pair = try pingBehindBytes()
        pair.advance(seconds: 4.9, total: 2_000, acknowledged: 100)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1, total: 2_000, acknowledged: 100)
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test(arguments: [true, false])
    func `a server that takes bytes and answers none is noticed while 50 messages a second are published`(
        systemAcknowledges: Bool
    ) throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 10
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        let start = pair.now
        var total = 0
        while pair.client.failure == nil, pair.now - start < 60_000_000_000 {
            try pair.publish("x")
            total += pair.client.engine.output.count
            pair.client.engine.output = []
            // One message is always on its way.
            pair.advance(seconds: 0.02, total: total, acknowledged: systemAcknowledges ? total - 10 : 0)
        }
        #expect(pair.client.failure == .pingTimeout)
        #expect(pair.now - start <= 20_100_000_000)
    }

    /// What becomes of the bytes before PINGREQ: how many of 10,000 have arrived when it is written, and then every 2 s.
    @Test(arguments: [
        ("a slow link", [1_000, 1_500, 2_000, 2_400], true),
        ("a system that reports no acknowledgements", [0, 0, 0, 0], false),
        ("a server that has stopped reading", [1_000, 4_000, 4_000, 4_000], false),
        ("a link that was held up for a moment", [1_000, 1_500, 9_900, 10_000], false),
    ])
    func `only bytes that keep arriving slowly before PINGREQ hold it up`(
        what: String, arrived: [Int], expected: Bool
    ) throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        pair.advance(seconds: 10, total: 10_000, acknowledged: arrived[0])
        #expect(!isHeldUp(pair))
        for acknowledged in arrived[1...] { pair.advance(seconds: 2, total: 10_002, acknowledged: acknowledged) }
        #expect(isHeldUp(pair) == expected, "\(what)")
        pair.cut()
        #expect(isHeldUp(pair) == expected, "\(what)")
    }

    @Test func `what layers may add to bytes that wait does not hold PINGREQ up`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        // 320 bytes wait: the total allows for their encryption.
        pair.advance(seconds: 10, total: 2_000 + 320 + 320 / 16 + 1_024, acknowledged: 2_000)
        for _ in 0..<3 { pair.advance(seconds: 2, total: 2_340, acknowledged: 2_340) }
        #expect(!isHeldUp(pair))
    }

    @Test func `a PINGREQ of unknown position is not held up`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        // As the search for a refused request writes it.
        try pair.client.engine.ping(at: pair.now, progress: OutputProgress(total: .max))
        for number in 1...4 { pair.advance(seconds: 2, total: 10_000, acknowledged: 1_000 * number) }
        #expect(!isHeldUp(pair))
    }

    @Test func `a change of the network has PINGREQ written at once, unless one is unanswered or keep alive is off`()
        throws
    {
        let pair = EnginePair(client: {
            $0.keepAlive = 600
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        func change() {
            pair.client.engine.networkChanged(at: pair.now)
            pair.advance(seconds: 0)
        }
        for number in 1...3 {
            pair.advance(seconds: 1)
            change()
            change()
            pair.settle()
            #expect(pings(pair) == number)
        }
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 1)
        change()
        pair.client.engine.output = []
        pair.advance(seconds: 4.9)
        // The one that is unanswered counts.
        change()
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .pingTimeout)

        let other = EnginePair(client: { $0.keepAlive = 0 })
        try other.connect()
        other.client.engine.networkChanged(at: other.now)
        #expect(other.client.engine.nextDeadline == .max)
        other.advance(seconds: 0)
        other.flush()
        #expect(pings(other) == 0)
    }

    @Test func `while reading is paused a change of the network proves nothing, and has no PINGREQ written`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 600 })
        try pair.connect()
        pair.client.engine.setReadingPaused(true, at: pair.now)
        pair.client.engine.networkChanged(at: pair.now)
        pair.advance(seconds: 0)
        pair.flush()
        #expect(pings(pair) == 0)
    }

    /// The system of the client sleeps for so many seconds.
    private func sleep(_ pair: EnginePair, seconds: Double) {
        let start = pair.now
        pair.now += Int64(seconds * 1_000_000_000)
        pair.client.engine.systemSlept(since: start, at: pair.now, progress: OutputProgress())
        pair.client.run { engine, effects in engine.handleTimeout(at: pair.now, into: &effects) }
    }

    @Test(arguments: [30, 50, 100_000])
    func `after a long sleep PINGREQ is written at once, and answered or late after pingTimeout`(
        seconds: Double
    ) throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 60
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        sleep(pair, seconds: seconds)
        pair.settle()
        #expect(pings(pair) == 1)
        pair.advance(seconds: 59)
        #expect(pair.client.failure == nil)

        sleep(pair, seconds: seconds)
        pair.client.engine.output = []
        pair.advance(seconds: 4.9)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .pingTimeout)
    }

    /// World 20261201000104: a message of a paced client was due when the system woke, and PINGREQ waited for a minute.
    @Test func `what is due when the system wakes does not take the place of PINGREQ`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 60
            $0.maximumPublishesPerSecond = 1
        })
        try pair.connect()
        for number in 0..<3 { try pair.publish("\(number)", qos: .atLeastOnce, token: UInt64(number + 1)) }
        pair.settle()
        sleep(pair, seconds: 100)
        pair.settle()
        #expect(pings(pair) == 1)
    }

    @Test func `a short sleep is no reason for PINGREQ`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 60 })
        try pair.connect()
        sleep(pair, seconds: 29.9)
        pair.settle()
        #expect(pings(pair) == 0)
        pair.advance(seconds: 30)
        pair.settle()
        #expect(pings(pair) == 0)
        pair.advance(seconds: 0.2)
        pair.settle()
        #expect(pings(pair) == 1)
    }

    /// A device that sleeps whenever it can.
    @Test(arguments: [1, 10, 29, 30, 3_600])
    func `short times awake between sleeps do not keep a dead connection`(seconds: Double) throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 60
            $0.pingTimeout = 5_000_000_000
            $0.requestTimeout = 20_000_000_000
        })
        try pair.connect()
        // PINGREQ has no answer from here on.
        pair.advance(seconds: 60)
        pair.client.engine.output = []
        var awake = 0
        while pair.client.failure == nil, awake < 100 {
            sleep(pair, seconds: seconds)
            pair.advance(seconds: 1)
            awake += 1
        }
        #expect(pair.client.failure == .pingTimeout && awake == 5)
    }

    /// What has arrived is read, and other threads publish, before the sleep is noticed.
    @Test(arguments: [10, 3_600])
    func `what happens after the wake, before the sleep is noticed, has its own time`(seconds: Int64) throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 0
            $0.acknowledgementTimeout = 20_000_000_000
            $0.requestTimeout = 10_000_000_000
        })
        try pair.connect()
        let start = pair.now
        pair.now += seconds * 1_000_000_000
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.client.engine.output = []
        pair.client.engine.systemSlept(since: start, at: pair.now, progress: OutputProgress())
        var isLate: Bool { pair.client.events.contains { if case .requestLate = $0 { true } else { false } } }
        pair.advance(seconds: 9.9)
        #expect(!isLate)
        pair.advance(seconds: 0.1)
        #expect(isLate && pair.client.failure == nil)
        for _ in 0..<12 { pair.advance(seconds: 1) }
        guard case .acknowledgementTimeout = pair.client.failure else {
            Issue.record("\(String(describing: pair.client.failure))")
            return
        }
    }

    /// The server answers PINGREQ, and nothing else.
    @Test func `long sleeps do not keep a SUBSCRIBE waiting that PINGRESP has overtaken`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 60
            $0.requestTimeout = 10_000_000_000
        })
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.settle()
        var isLate: Bool { pair.client.events.contains { if case .requestLate = $0 { true } else { false } } }
        var awake = 0
        while !isLate, awake < 100 {
            sleep(pair, seconds: 100)
            pair.settle()
            pair.advance(seconds: 2)
            awake += 2
        }
        #expect(awake == 10 && pair.client.failure == nil)
    }

    @Test func `an answer to PINGREQ that was awaited before a sleep is awaited for pingTimeout after it`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 60
            $0.pingTimeout = 5_000_000_000
        })
        try pair.connect()
        pair.advance(seconds: 60)
        pair.client.engine.output = []
        pair.advance(seconds: 4.9)
        sleep(pair, seconds: 30)
        // That one is on its way.
        pair.flush()
        #expect(pings(pair) == 0)
        pair.advance(seconds: 4.9)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .pingTimeout)
    }

    @Test func `after a sleep nothing is written without keep alive, or while reading is paused`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 0 })
        try pair.connect()
        sleep(pair, seconds: 1_000)
        pair.flush()
        #expect(pings(pair) == 0 && pair.client.engine.nextDeadline == .max)

        let paused = EnginePair(client: { $0.keepAlive = 600 })
        try paused.connect()
        paused.client.engine.setReadingPaused(true, at: paused.now)
        sleep(paused, seconds: 20)
        paused.flush()
        #expect(pings(paused) == 0 && paused.client.failure == nil)
        // Reading is still paused: no answer is late.
        for _ in 0..<3 { paused.advance(seconds: 600) }
        #expect(paused.client.failure == nil)
    }

    @Test func `after a sleep CONNACK is awaited for pingTimeout`() throws {
        let pair = EnginePair(client: {
            $0.connectTimeout = 30_000_000_000
            $0.pingTimeout = 10_000_000_000
        })
        pair.serverAnswers = false
        try pair.open()
        pair.settle()
        sleep(pair, seconds: 1_000)
        pair.advance(seconds: 9.9)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .connectTimeout)
    }

    @Test func `a server whose system slept waits for its client anew`() throws {
        let pair = EnginePair(client: { $0.keepAlive = 10 })
        try pair.connect()
        let start = pair.now
        pair.now += 1_000_000_000_000
        pair.server.run { engine, effects in
            engine.systemSlept(since: start, at: pair.now, progress: OutputProgress())
            engine.handleTimeout(at: pair.now, into: &effects)
        }
        pair.now += 14_900_000_000
        pair.server.run { engine, effects in engine.handleTimeout(at: pair.now, into: &effects) }
        #expect(pair.server.failure == nil && pair.server.engine.output.isEmpty)
        pair.now += 100_000_000
        pair.server.run { engine, effects in engine.handleTimeout(at: pair.now, into: &effects) }
        #expect(pair.server.failure == .keepAliveTimeout)
    }

    @Test func `after a sleep what was asked for before is awaited anew`() throws {
        let pair = EnginePair(client: {
            $0.keepAlive = 600
            $0.requestTimeout = 20_000_000_000
            $0.acknowledgementTimeout = 30_000_000_000
        })
        try pair.connect()
        pair.server.acknowledges = false
        pair.serverAnswers = false
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.settle()
        sleep(pair, seconds: 1_000)
        // PINGREQ has an answer, and the two have not.
        pair.settle()
        var isLate: Bool { pair.client.events.contains { if case .requestLate = $0 { true } else { false } } }
        for _ in 0..<19 { pair.advance(seconds: 1) }
        #expect(!isLate)
        for _ in 0..<2 { pair.advance(seconds: 1) }
        #expect(isLate)
        for _ in 0..<8 { pair.advance(seconds: 1) }
        #expect(pair.client.failure == nil)
        for _ in 0..<10 { pair.advance(seconds: 1) }
        guard case .acknowledgementTimeout = pair.client.failure else {
            Issue.record("\(String(describing: pair.client.failure))")
            return
        }
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
