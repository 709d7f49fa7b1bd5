/// Finds what a mistyped word was meant to be.
enum Suggestion {
    /// The candidate that is a few slips away at most, or that starts with what was typed; nil when none is near.
    static func closest(to typed: String, among candidates: [String]) -> String? {
        let typed = Array(typed.utf8.prefix(64))
        if typed.count >= 4, let longer = candidates.first(where: { $0.utf8.starts(with: typed) }) {
            return longer
        }
        let ranked = candidates.map { (name: $0, distance: distance(typed, Array($0.utf8))) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(2, best.name.utf8.count / 4) ? best.name : nil
    }

    /// Insertions, deletions, replacements and swaps of neighbours that turn `left` into `right`.
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, byte) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (byte == other ? 0 : 1))
                if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
