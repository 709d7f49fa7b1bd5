import MQTTCore
import Testing

@Suite("Overlapping topic filters")
struct FilterOverlapTests {
    /// All names of up to `depth` levels that are made of these levels.
    private func names(of levels: [String], depth: Int) -> [String] {
        var all: [String] = []
        var last = [""]
        for level in 1...depth {
            last = last.flatMap { name in levels.map { level == 1 ? $0 : name + "/" + $0 } }
            all += last
        }
        return all
    }

    @Test func `two filters overlap exactly if a topic name exists that both match`() {
        let filters = names(of: ["a", "", "$x", "+", "#"], depth: 3).filter { MQTTTopicFilter.isValid($0) }
        // One level more than the filters, and one that is in none of them.
        let topics = names(of: ["a", "b", "", "$x"], depth: 4).filter { MQTTTopicName.isValid($0) }
        let matches = filters.map { filter in
            Set(topics.indices.filter { MQTTTopicFilter.matches(filter, topic: topics[$0]) })
        }
        var overlapping = 0
        for (first, filter) in filters.enumerated() {
            for (second, other) in filters.enumerated() {
                let expected = !matches[first].isDisjoint(with: matches[second])
                if MQTTTopicFilter.overlap(filter, other) != expected {
                    Issue.record("'\(filter)' and '\(other)': expected \(expected)")
                }
                overlapping += expected ? 1 : 0
            }
        }
        #expect(overlapping > filters.count && overlapping < filters.count * filters.count)
    }

    /// The tree may find more, since it knows nothing of names that begin with $ and of the name that would be empty.
    @Test func `a tree finds the filters that overlap without looking at all others`() {
        let filters = names(of: ["a", "b", "", "$x", "+", "#"], depth: 3).filter { MQTTTopicFilter.isValid($0) }
        var tree = MQTTFilterTree<String>()
        for filter in filters { tree.insert(filter, for: filter) }
        for filter in filters {
            var near: [String] = []
            tree.forEachNear(filter) { near.append($0) }
            #expect(Set(near).count == near.count, "'\(filter)' found a filter twice")
            let expected = filters.filter { MQTTTopicFilter.overlap(filter, $0) }
            #expect(near.filter { MQTTTopicFilter.overlap(filter, $0) }.sorted() == expected.sorted(), "'\(filter)'")
        }
        var near: [String] = []
        tree.forEachNear("a/b/a") { near.append($0) }
        #expect(near.count < 20)
        var deep: [String] = []
        let path = Array(repeating: "+", count: 30_000).joined(separator: "/")
        tree.insert(path, for: path)
        tree.forEachNear(path) { deep.append($0) }
        #expect(deep.contains(path))
    }
}
