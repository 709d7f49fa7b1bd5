import MQTTCore
import TestSupport
import Testing

@Suite("Filter tree", .heavy)
struct FilterTreeTests {
    @Test("finds the same filters as asking each of them, through inserts and removals")
    func agreesWithNaiveMatching() {
        var random = SeededGenerator(seed: Campaign.seed ^ 0x7EE)
        for round in 0..<Campaign.rounds(2_000) {
            var tree = MQTTFilterTree<Int>()
            var naive: [String: Int] = [:]
            for step in 0..<80 {
                let filter = random.shortFilter()
                if random.chance(40) {
                    #expect(tree.remove(filter) == naive.removeValue(forKey: filter))
                } else {
                    #expect(tree.insert(step, for: filter) == naive.updateValue(step, forKey: filter))
                }
                let topic = random.shortTopic()
                let expected = naive.filter { MQTTTopicFilter.matches($0.key, topic: topic) }.values.sorted()
                guard tree.matches(topic).sorted() == expected, tree.count == naive.count,
                    tree.value(for: filter) == naive[filter]
                else {
                    Issue.record("seed \(Campaign.seed), round \(round): \(topic) in \(naive)")
                    return
                }
            }
            for filter in naive.keys { tree.remove(filter) }
            #expect(tree.isEmpty)
            #expect(tree.matches("a/b") == [])
        }
    }

    @Test("agrees with a matcher that splits into levels")
    func matcherAgreesWithLevels() {
        var random = SeededGenerator(seed: Campaign.seed ^ 0x1E7E1)
        for _ in 0..<Campaign.rounds(200_000) {
            let filter = random.shortFilter()
            let topic = random.shortTopic()
            let expected = Self.matchesByLevels(filter, topic)
            if MQTTTopicFilter.matches(filter, topic: topic) != expected { Issue.record("\(filter) and \(topic)") }
        }
    }

    /// Written after the prose of section 4.7, without a thought for speed.
    private static func matchesByLevels(_ filter: String, _ topic: String) -> Bool {
        let filter = filter.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        let topic = topic.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        if topic[0].hasPrefix("$"), filter[0] == "+" || filter[0] == "#" { return false }
        if filter.last == "#" {
            let parent = filter.dropLast()
            return topic.count >= parent.count && zip(parent, topic).allSatisfy { $0 == "+" || $0 == $1 }
        }
        return topic.count == filter.count && zip(filter, topic).allSatisfy { $0 == "+" || $0 == $1 }
    }

    @Test("holds ten thousand filters of one level and finds each")
    func manyFilters() {
        var tree = MQTTFilterTree<Int>()
        for index in 0..<10_000 { tree.insert(index, for: "device/\(index)/motion") }
        tree.insert(-1, for: "device/+/motion")
        #expect(tree.count == 10_001)
        let missed = (0..<10_000).filter { tree.matches("device/\($0)/motion").sorted() != [-1, $0] }
        #expect(missed == [])
        for index in 0..<10_000 { tree.remove("device/\(index)/motion") }
        #expect(tree.matches("device/5/motion") == [-1])
    }

    @Test("costs no stack for filters of as many levels as fit")
    func deepFilters() {
        var tree = MQTTFilterTree<Int>()
        let deep = Array(repeating: "+", count: 32_767).joined(separator: "/")
        tree.insert(1, for: deep)
        tree.insert(2, for: deep + "/#")
        #expect(tree.matches(String(repeating: "/", count: 32_766)).sorted() == [1, 2])
        #expect(tree.matches(String(repeating: "/", count: 65_534)) == [2])
        tree.remove(deep + "/#")
        #expect(tree.remove(deep) == 1)
        #expect(tree.matches("a") == [])
    }

    @Test("tells filters apart that look alike")
    func byteExact() {
        var tree = MQTTFilterTree<Int>()
        tree.insert(1, for: "caf\u{E9}")
        tree.insert(2, for: "cafe\u{301}")
        #expect(tree.matches("caf\u{E9}") == [1])
        #expect(tree.matches("cafe\u{301}") == [2])
        tree["cafe\u{301}"] = nil
        #expect(tree.count == 1)
    }
}

extension SeededGenerator {
    fileprivate mutating func shortFilter() -> String {
        let levels = (0..<Int.random(in: 1...4, using: &self)).map { _ in
            ["a", "b", "", "+", "+", "$s", "longer level"].randomElement(using: &self)!
        }
        if chance(10) { return "#" }
        let filter = (levels + (chance(25) ? ["#"] : [])).joined(separator: "/")
        return filter.isEmpty ? "a" : filter
    }

    fileprivate mutating func shortTopic() -> String {
        let levels = (0..<Int.random(in: 1...5, using: &self)).map { _ in
            ["a", "b", "", "$s", "longer level"].randomElement(using: &self)!
        }
        let topic = levels.joined(separator: "/")
        return topic.isEmpty ? "b" : topic
    }
}
