import Testing

@testable import MQTTCore

@Suite("Engine: what leaves in a second")
struct PublishPaceTests {
    /// The most that leaves within any second of these times.
    private func most(_ times: [(time: Int64, units: Int)]) -> Int {
        times.indices.map { first in
            times[first...].prefix { $0.time <= times[first].time + 1_000_000_000 }.map(\.units).reduce(0, +)
        }.max() ?? 0
    }

    @Test(arguments: [1, 2, 3, 5, 9, 10, 11, 19, 20, 100, 1_000])
    func `no second has more messages than the limit, and a busy one hardly less`(limit: Int) {
        var pace = PublishPace(maximumMessages: limit, maximumBytes: nil)
        var times: [(time: Int64, units: Int)] = []
        var now: Int64 = 5
        for number in 0..<limit * 4 {
            // Someone who is idle for a while gets no larger burst for it.
            if number == limit * 2 { now += 10_000_000_000 }
            now = max(now, pace.opening)
            pace.add(byteCount: 1_000_000, at: now)
            times.append((now, 1))
        }
        #expect(most(times) == (limit < 10 ? limit : limit - 1))
    }

    @Test(arguments: [1, 100, 16_000]) func `no second has more bytes than the limit`(size: Int) {
        var pace = PublishPace(maximumMessages: nil, maximumBytes: 64_000)
        var times: [(time: Int64, units: Int)] = []
        var now: Int64 = 5
        for number in 0..<(200_000 / size) {
            now = max(now, pace.opening)
            let units = number % 2 == 0 ? size : 1
            pace.add(byteCount: units, at: now)
            times.append((now, units))
        }
        #expect(most(times.count > 5_000 ? Array(times.prefix(5_000)) : times) <= 64_000)
    }

    @Test func `a message larger than the limit leaves, and the next ones wait for it`() {
        var pace = PublishPace(maximumMessages: nil, maximumBytes: 1_000)
        #expect(pace.opening <= 0)
        pace.add(byteCount: 10_000, at: 0)
        #expect(pace.opening > 10_000_000_000)
        pace.add(byteCount: 256 << 20, at: .max / 2)
        #expect(pace.opening > .max / 2)
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce, .exactlyOnce])
    func `messages above the limit wait in the queue, in their order`(qos: QoS) throws {
        let pair = EnginePair(client: { $0.maximumPublishesPerSecond = 10 })
        try pair.connect()
        for number in 0..<30 { try pair.publish("\(number)", qos: qos, token: UInt64(number)) }
        pair.settle()
        #expect(pair.server.texts == ["0"])
        var counts: [Int] = []
        while pair.server.texts.count < 30, counts.count < 100 {
            let deadline = pair.client.engine.nextDeadline
            // It is called when something may leave, and not before.
            #expect(deadline > pair.now)
            pair.advance(seconds: Double(deadline - pair.now) / 1e9)
            pair.settle()
            counts.append(pair.server.texts.count)
        }
        #expect(pair.server.texts == (0..<30).map { "\($0)" })
        #expect(counts == Array(2...30))
        #expect((3_200_000_000...3_300_000_000).contains(pair.now - 1_000_000_000))
        // With nothing to send there is nothing to wait for.
        #expect(pair.client.engine.nextDeadline - pair.now > 10_000_000_000)
    }

    @Test func `what a session resumes keeps the pace too`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumPublishesPerSecond = 10 })
        pair.server.acknowledges = false
        try pair.connect()
        for number in 0..<10 { try pair.publish("\(number)", qos: .atLeastOnce) }
        for _ in 0..<20 {
            pair.advance(seconds: 0.2)
            pair.settle()
        }
        #expect(pair.server.texts.count == 10)
        pair.cut()
        pair.server.acknowledges = true
        pair.now += 60_000_000_000
        try pair.connect()
        let again = pair.client.publishes.count
        for _ in 0..<20 {
            pair.advance(seconds: 0.2)
            pair.settle()
        }
        #expect(pair.client.publishes.count > again)
        #expect(pair.client.completions.count == 10)
    }

    @Test func `a time that has come is no deadline while subscriptions are awaited after a reconnect`() throws {
        let pair = EnginePair.persistent(client: {
            $0.maximumPublishesPerSecond = 10
            $0.subscribesAgainAfterRefusals = true
        })
        func connect() throws {
            try pair.connect()
            pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
        }
        try connect()
        for number in 0..<5 { try pair.publish("\(number)", qos: .atLeastOnce) }
        pair.settle()
        pair.cut()
        pair.now += 1_000_000_000
        try pair.connect()
        // One call for the time that came while there was no connection, and no other.
        pair.advance(seconds: 0)
        #expect(pair.client.engine.nextDeadline > pair.now)
        pair.advance(seconds: 0.2)
        pair.settle()
        #expect(pair.client.engine.nextDeadline > pair.now)
        pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
        for _ in 0..<10 {
            pair.advance(seconds: 0.2)
            pair.settle()
        }
        #expect(pair.client.completions.count == 5)
    }

    @Test func `room is reported to a publisher whose message found neither the pace nor the queue open`() throws {
        let pair = EnginePair(client: {
            $0.maximumPublishesPerSecond = 10
            $0.maximumQueuedMessages = 0
        })
        try pair.connect()
        #expect(try pair.publish("0") == .written)
        #expect(throws: MQTTUsageError.self) { try pair.publish("1") }
        let deadline = pair.client.engine.nextDeadline
        #expect(deadline - pair.now <= 1_000_000_000)
        pair.advance(seconds: Double(deadline - pair.now) / 1e9)
        #expect(pair.client.hadRoom)
        #expect(try pair.publish("1") == .written)
    }

    @Test func `a limit that is lifted while connected holds nothing back`() throws {
        let pair = EnginePair(client: { $0.maximumPublishesPerSecond = 10 })
        try pair.connect()
        for number in 0..<5 { try pair.publish("\(number)", qos: .atLeastOnce) }
        pair.client.engine.configuration.maximumPublishesPerSecond = nil
        for _ in 0..<10 {
            pair.advance(seconds: 0.2)
            pair.settle()
        }
        #expect(pair.client.completions.count == 5)
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce])
    func `a limit that is set or changed while connected counts from the next message on`(qos: QoS) throws {
        let pair = EnginePair()
        try pair.connect()
        func limit(_ maximum: Int?) { pair.client.engine.configuration.maximumPublishesPerSecond = maximum }
        func advance(seconds: Double) {
            pair.advance(seconds: seconds)
            pair.settle()
        }
        limit(10)
        for number in 0..<5 { try pair.publish("\(number)", qos: qos) }
        pair.settle()
        #expect(pair.server.texts.count == 1)
        limit(1_000)
        #expect(pair.client.engine.nextDeadline <= pair.now)
        advance(seconds: 0)
        #expect(pair.server.texts.count == 5)
        advance(seconds: 1)
        limit(1)
        for number in 5..<8 { try pair.publish("\(number)", qos: qos) }
        pair.settle()
        #expect(pair.server.texts.count == 6)
        advance(seconds: 0.9)
        #expect(pair.server.texts.count == 6)
        advance(seconds: 0.2)
        #expect(pair.server.texts.count == 7)
        limit(nil)
        advance(seconds: 0)
        #expect(pair.server.texts == (0..<8).map { "\($0)" })
    }

    @Test func `a large message that has left counts at the new rate when the limit of bytes changes`() {
        var pace = PublishPace(maximumMessages: nil, maximumBytes: 1_000)
        pace.add(byteCount: 100_000, at: 5)
        #expect(pace.opening > 100_000_000_000)
        pace = PublishPace(maximumMessages: nil, maximumBytes: 1_000_000, after: pace)
        #expect(pace.opening < 200_000_000)
        pace.add(byteCount: 100_000, at: 5)
        #expect((100_000_000..<200_000_000).contains(pace.opening))
    }

    @Test func `without a limit nothing waits`() throws {
        let pair = EnginePair()
        try pair.connect()
        for number in 0..<1_000 { try pair.publish("\(number)") }
        pair.settle()
        #expect(pair.server.texts.count == 1_000)
    }
}
