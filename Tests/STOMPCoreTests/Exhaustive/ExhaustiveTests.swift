import STOMPCore
import TestSupport
import Testing

/// Every order in which things can happen to a client and a broker with few messages; see ``SearchedQueue``.
@Suite("Engine: every state", .heavy)
struct ExhaustiveTests {
    typealias Scenario = SearchedQueue.Scenario

    /// A plain `swift test` visits small worlds only.
    static let isWhole = Campaign.scale >= 0.05

    private func search(_ name: String, _ scenarios: [Scenario]) {
        var total = ExhaustiveSearch<SearchedQueue>.Result()
        let clock = ContinuousClock()
        let start = clock.now
        for scenario in scenarios {
            var search = ExhaustiveSearch { SearchedQueue(scenario) }
            let result = search.run()
            result.check("\(scenario)")
            total = total + result
        }
        #expect(total.states > 50 * scenarios.count)
        print("\(name): \(scenarios.count) worlds, \(total.description), \(clock.now - start)")
    }

    static let breaks = isWhole ? 2 : 1

    @Test(arguments: [STOMPAckMode.client, .clientIndividual])
    func `what is acknowledged never comes again, and what is not is never lost`(mode: STOMPAckMode) {
        let versions = STOMPVersion.allCases.filter { $0 != .v10 || mode == .client }
        search(
            "acknowledgements, \(mode)",
            versions.map {
                Scenario(
                    version: $0, mode: mode, messages: Self.isWhole ? 3 : 2, sends: 0, operations: 0,
                    breaks: Self.breaks)
            })
    }

    @Test(arguments: [STOMPAckMode.client, .clientIndividual])
    func `a transaction takes effect whole or not at all`(mode: STOMPAckMode) {
        let small = Scenario(mode: mode, messages: 1, sends: 1, breaks: 1)
        let whole = [
            Scenario(mode: mode, messages: 1, sends: 1), Scenario(mode: mode, messages: 2, sends: 1),
            Scenario(mode: mode, messages: 1, sends: 2, breaks: 1),
        ]
        search("transactions, \(mode)", Self.isWhole ? whole : [small])
    }

    @Test func `a commit is confirmed when all of it is done, although the broker confirms it earlier`() {
        search(
            "early confirmations",
            [Scenario(messages: 1, sends: Self.isWhole ? 2 : 1, breaks: 1, confirmsCommitEarly: true)])
    }

    /// What makes it enough to break links between frames.
    @Test func `a cut within a frame leaves what a cut before it leaves`() {
        var cuts = 0
        let scenario = Scenario(messages: 1, sends: Self.isWhole ? 1 : 0, operations: 1, breaks: 1)
        var search = ExhaustiveSearch { SearchedQueue(scenario) }
        search.run().check("\(scenario)")
        search.forEachState { again in
            for isUp in [true, false] {
                let count = again().nextFrameCount(up: isUp)
                guard count > 0, again().canBreak else { continue }
                let whole = again()
                whole.take(.cut)
                let key = ExhaustiveSearch.key(whole)
                for bytes in 1..<count {
                    let broken = again()
                    broken.cutWithinFrame(up: isUp, after: bytes)
                    cuts += 1
                    #expect(broken.complaints == [])
                    #expect(ExhaustiveSearch.key(broken) == key, "\(scenario): \(bytes) bytes of \(count)")
                }
            }
        }
        #expect(cuts > 300)
        print("\(cuts) cuts within frames")
    }
}
