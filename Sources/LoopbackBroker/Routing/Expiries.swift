/// The keys of things that expire, the one that expires first at the top of a binary heap.
///
/// Nothing is taken out before its time: a key may outlive what it names, whose owner makes the heap anew when it holds
/// many of these.
struct Expiries<Key: Sendable>: Sendable {
    private var entries: [(expiry: Int64, key: Key)] = []

    var count: Int { entries.count }

    /// Adds a key, unless `expiry` is `.max`, which is never.
    mutating func insert(_ key: Key, expiry: Int64) {
        guard expiry != .max else { return }
        var index = entries.count
        entries.append((expiry, key))
        while index > 0, entries[index].expiry < entries[(index - 1) / 2].expiry {
            entries.swapAt(index, (index - 1) / 2)
            index = (index - 1) / 2
        }
    }

    /// Takes out a key whose time has come.
    mutating func popExpired(at now: Int64) -> Key? {
        guard let first = entries.first, first.expiry <= now else { return nil }
        let last = entries.removeLast()
        guard !entries.isEmpty else { return first.key }
        entries[0] = last
        var index = 0
        while true {
            let children = (2 * index + 1..<2 * index + 3).clamped(to: entries.indices)
            guard let child = children.min(by: { entries[$0].expiry < entries[$1].expiry }),
                entries[child].expiry < entries[index].expiry
            else { return first.key }
            entries.swapAt(index, child)
            index = child
        }
    }
}
