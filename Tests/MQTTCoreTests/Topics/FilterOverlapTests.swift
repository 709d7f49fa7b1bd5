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
}
