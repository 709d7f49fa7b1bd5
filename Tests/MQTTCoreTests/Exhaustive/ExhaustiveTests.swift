import MQTTCore
import TestSupport
import Testing

/// Every order in which things can happen to a client and a server with few messages; see ``SearchedLink`` and ``Passage``.
@Suite("Engine: every state", .heavy)
struct ExhaustiveTests {
    typealias Scenario = SearchedLink.Scenario

    /// A plain `swift test` visits small worlds only.
    static let isWhole = Campaign.scale >= 0.05
    /// What is published in most tests.
    static let messages: [[QoS]] =
        isWhole
        ? mixes(3)
        : [[.exactlyOnce, .exactlyOnce], [.exactlyOnce, .atLeastOnce], [.atLeastOnce, .atMostOnce]]
    static let few: [[QoS]] = isWhole ? mixes(2) : [[.exactlyOnce], [.atLeastOnce]]
    static let breaks = isWhole ? 2 : 1

    /// All ways to choose the QoS of so many messages.
    static func mixes(_ count: Int) -> [[QoS]] {
        (0..<count).reduce([[]]) { mixes, _ in
            mixes.flatMap { mix in [QoS.atMostOnce, .atLeastOnce, .exactlyOnce].map { mix + [$0] } }
        }
    }

    /// Visits every state of these worlds.
    private func search(_ name: String, _ scenarios: [Scenario]) {
        var total = ExhaustiveSearch<SearchedLink>.Result()
        let clock = ContinuousClock()
        let start = clock.now
        for scenario in scenarios {
            var search = ExhaustiveSearch { SearchedLink(scenario) }
            let result = search.run()
            result.check("\(scenario)")
            total = total + result
        }
        #expect(total.states > 10 * scenarios.count)
        print("\(name): \(scenarios.count) worlds, \(total.description), \(clock.now - start)")
    }

    /// The same messages in both directions, in two worlds.
    private func bothWays(_ mixes: [[QoS]], _ adjust: (inout Scenario) -> Void = { _ in }) -> [Scenario] {
        mixes.flatMap { mix in
            [Scenario(up: mix), Scenario(down: mix)].map { scenario in
                var scenario = scenario
                adjust(&scenario)
                return scenario
            }
        }
    }

    @Test func `a link that breaks twice loses, repeats and reorders nothing`() {
        search(
            "links that break",
            bothWays(Self.messages) + bothWays([[.exactlyOnce, .atLeastOnce]]) { $0.window = 1 })
    }

    @Test func `a process that dies at any step continues with what it had stored`() {
        search(
            "processes that die",
            bothWays(Self.messages) {
                $0.dies = true
                $0.breaks = Self.breaks
            } + [Scenario(up: [.atLeastOnce, .atMostOnce, .atMostOnce], breaks: 1, dies: true)])
    }

    @Test func `messages in both directions do not disturb each other`() {
        let pairs: [([QoS], [QoS])] =
            Self.isWhole
            ? Self.mixes(2).flatMap { mix in [(mix, [.atLeastOnce]), (mix, [.exactlyOnce]), ([.exactlyOnce], mix)] }
            : [([.exactlyOnce], [.exactlyOnce])]
        search(
            "both directions",
            pairs.flatMap { (up, down) in
                [false, true].map { Scenario(up: up, down: down, breaks: $0 ? 1 : Self.breaks, dies: $0) }
            })
    }

    @Test func `a server that forgets the session causes duplicates that are reported, and no other`() {
        search("lost sessions", Self.messages.map { Scenario(up: $0, breaks: Self.breaks, losses: 1) })
        search(
            "lost sessions with a store",
            Self.few.map { Scenario(up: $0, breaks: Self.breaks, dies: true, losses: 1) })
    }

    @Test func `subscriptions come first on each connection`() {
        search(
            "subscriptions first",
            Self.few.flatMap { mix in
                [false, true].map { Scenario(up: mix, breaks: Self.breaks, dies: $0, subscribesFirst: true) }
            })
    }

    @Test func `the server has the filters that are wanted, however often a subscription ends and is made again`() {
        let changes = Self.isWhole ? 3 : 2
        search(
            "changed subscriptions",
            [false, true].flatMap { dies in
                [0, 1].map {
                    Scenario(breaks: Self.breaks, dies: dies, losses: $0, subscribesFirst: true, changes: changes)
                }
            })
    }

    @Test func `packets that arrive together have the same effect`() {
        search("packets together", bothWays(Self.messages) { $0.arrivesTogether = true })
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `messages that are published in one call are messages like others`(qos: QoS) {
        let last = Self.isWhole ? [[], [QoS.atMostOnce], [.atLeastOnce], [.exactlyOnce]] : [[]]
        search(
            "arrays",
            last.flatMap { last in
                [false, true].map {
                    Scenario(up: [qos, qos] + last, arrivesTogether: $0, publishesTogether: true)
                }
            })
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1])
    func `older versions promise the same`(version: MQTTVersion) {
        search(
            "MQTT \(version)",
            bothWays(Self.few) {
                $0.version = version
                $0.breaks = Self.breaks
            })
        search(
            "MQTT \(version) with a store",
            bothWays(Self.few) {
                $0.version = version
                $0.dies = true
            })
    }

    /// What makes it enough to break links between packets.
    @Test func `a cut within a packet leaves what a cut before it leaves`() {
        var cuts = 0
        for scenario in Self.few.flatMap({ [Scenario(up: $0, breaks: 1), Scenario(down: $0, breaks: 1)] }) {
            var search = ExhaustiveSearch { SearchedLink(scenario) }
            search.run().check("\(scenario)")
            search.forEachState { again in
                for isUp in [true, false] {
                    let count = again().nextPacketCount(up: isUp)
                    guard count > 0, again().canBreak else { continue }
                    let whole = again()
                    whole.take(.cut)
                    let key = ExhaustiveSearch.key(whole)
                    for bytes in 1..<count {
                        let broken = again()
                        broken.cutWithinPacket(up: isUp, after: bytes)
                        cuts += 1
                        #expect(broken.complaints == [])
                        #expect(ExhaustiveSearch.key(broken) == key, "\(scenario): \(bytes) bytes of \(count)")
                    }
                }
            }
        }
        #expect(cuts > 300)
        print("\(cuts) cuts within packets")
    }
}
