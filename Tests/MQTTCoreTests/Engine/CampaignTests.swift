import MQTTCore
import TestSupport
import Testing

/// Random operations with loss of the connection at any byte, over pairs of engines; a failing round prints its seed.
@Suite("Engine: random campaigns", .heavy)
struct CampaignTests {
    /// One round: what was published, and how the bytes went.
    private final class Round {
        let pair: EnginePair
        var random: SeededGenerator
        var published: [(token: UInt64, qos: QoS)] = []
        var losesSessions: Bool

        init(seed: UInt64, losesSessions: Bool) {
            var random = SeededGenerator(seed: seed)
            let version = MQTTVersion.allCases.randomElement(using: &random)!
            let receiveMaximum = Int.random(in: 1...6, using: &random)
            let aliases = UInt16.random(in: 0...3, using: &random)
            pair = .persistent(
                version: version,
                client: {
                    $0.outboundTopicAliasMaximum = aliases
                    $0.keepAlive = 0
                    $0.maximumInFlight = 6
                },
                server: {
                    $0.receiveMaximum = UInt16(receiveMaximum)
                    $0.topicAliasMaximum = 4
                })
            pair.server.acknowledges = false
            self.random = random
            self.losesSessions = losesSessions
        }

        func run() throws {
            try pair.open()
            for _ in 0..<Int.random(in: 5...60, using: &random) { try step() }
            // In the end everything is delivered over a connection that holds.
            if pair.client.engine.phase == .closed { try pair.open() }
            for _ in 0..<4 {
                pair.settle()
                pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
            }
            pair.settle()
            while pair.client.engine.inFlightCount + pair.client.engine.queuedCount > 0 {
                let before = pair.client.completions.count
                pair.settle()
                pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
                pair.settle()
                guard pair.client.completions.count == before else { continue }
                // A message that others pass has its time.
                guard pair.client.engine.nextDeadline < pair.now + 700_000_000_000 else { break }
                pair.advance(seconds: max(0, Double(pair.client.engine.nextDeadline - pair.now)) / 1e9)
            }
        }

        private func step() throws {
            pair.now += 1_000_000
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                let qos: QoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
                let token = UInt64(published.count + 1)
                // One topic for each QoS, because order is promised within one.
                try pair.publish("\(token)", to: "t/\(qos.rawValue)", qos: qos, token: token)
                published.append((token, qos))
            case 4...6:
                pair.flush()
                deliver(pair.server)
            case 7...8:
                pair.flush()
                deliver(pair.client)
            case 9: acknowledgeSome()
            case 10: pair.settle()
            default:
                if pair.client.engine.phase == .closed {
                    try pair.open()
                } else {
                    pair.flush()
                    pair.cut()
                    if losesSessions, Int.random(in: 0..<3, using: &random) == 0 { pair.serverKeepsSession = false }
                    try pair.open()
                    pair.settle()
                    pair.serverKeepsSession = true
                }
            }
        }

        private func deliver(_ end: EnginePair.End) {
            let count = end.inbox.count
            guard count > 0 else { return }
            pair.deliver(to: end, atMost: Int.random(in: 1...count, using: &random))
        }

        /// The application answers some messages in any order.
        private func acknowledgeSome() {
            for message in pair.server.messages.suffix(8).shuffled(using: &random) where message.delivery != 0 {
                if Bool.random(using: &random) { pair.server.engine.acknowledge(message.delivery, at: pair.now) }
            }
        }
    }

    private func check(_ round: Round, seed: UInt64) {
        let pair = round.pair
        let comment: Comment = "CAMPAIGN_SEED=\(seed)"
        #expect(pair.client.failure == nil, comment)
        // The server fails the connection when its Receive Maximum is exceeded.
        #expect(pair.server.failure == nil, comment)
        let tokens = round.published.map(\.token)
        #expect(pair.client.completions.map(\.token).sorted() == tokens, comment)
        #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged }, comment)
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            let sent = round.published.filter { $0.qos == qos }.map(\.token)
            let received = pair.server.messages.filter { $0.topic == "t/\(qos.rawValue)" }.map { UInt64($0.text)! }
            #expect(Set(received) == Set(sent), comment)
            if qos == .exactlyOnce && !round.losesSessions {
                #expect(received == sent, comment)
            } else {
                // First appearances are in order whatever is repeated.
                var seen: Set<UInt64> = []
                #expect(received.filter { seen.insert($0).inserted } == sent, comment)
            }
        }
    }

    private func campaign(_ rounds: Int, losesSessions: Bool) throws {
        for index in 0..<rounds {
            let seed = Campaign.seed &+ UInt64(index)
            let round = Round(seed: seed, losesSessions: losesSessions)
            do { try round.run() } catch { Issue.record("CAMPAIGN_SEED=\(seed): \(error)") }
            check(round, seed: seed)
        }
    }

    @Test func `QoS 1 arrives at least once, QoS 2 exactly once, in order, while the server keeps the session`() throws
    {
        try campaign(Campaign.rounds(50_000), losesSessions: false)
    }

    @Test func `every message arrives although the server loses sessions`() throws {
        try campaign(Campaign.rounds(50_000), losesSessions: true)
    }
}
