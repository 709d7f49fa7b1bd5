import MessagingWire

/// A number for each topic name, found by the bytes of the name. A name that is found here was checked when it was added.
///
/// A peer chooses the topics: the hash is seeded, a search ends after a few entries, and the owner empties the table when
/// it has reached its bound in bytes. A topic that is not in it only takes longer to find. An empty table has no memory.
package struct TopicTable: ~Copyable, Sendable {
    private struct Entry: Sendable {
        /// The half of the hash that the position was not taken from.
        var hash: UInt32 = 0
        var start: UInt32 = 0
        var count: UInt16 = 0
        /// 0 if the entry is not in use.
        var number: UInt16 = 0
    }

    /// A power of two, at most half of them in use. A name is in one of the places from that of its hash on.
    private var entries: [Entry] = []
    /// The bytes of all names.
    private var names: [UInt8] = []
    private let seed: UInt64
    /// The number of topics.
    package private(set) var count = 0

    /// How much memory the table may take, in bytes.
    package static let maximumBytes = 4 << 20
    private static let longestSearch = 32

    /// - Parameter seed: random, so that a peer cannot choose topics that collide.
    package init(seed: UInt64) { self.seed = seed }

    /// The memory that the table takes, in bytes.
    package var byteCount: Int { entries.count * MemoryLayout<Entry>.stride + names.count }

    /// Whether the bound is reached: time to empty the table.
    package var isFull: Bool { byteCount >= Self.maximumBytes }

    /// The number of a topic, or 0 if it is not in the table.
    @inline(__always)
    package func number(of topic: RawSpan) -> UInt16 {
        if entries.isEmpty { return 0 }
        let hash = topic.hashed(seed: seed)
        let mask = entries.count &- 1
        var place = Int(truncatingIfNeeded: hash >> 32) & mask
        for _ in 0..<Self.longestSearch {
            let entry = entries[place]
            if entry.number == 0 { return 0 }
            if entry.hash == UInt32(truncatingIfNeeded: hash), Int(entry.count) == topic.byteCount,
                // The bytes of an array of bytes: nothing to reinterpret.
                unsafe names.span.bytes.isEqual(at: Int(entry.start), to: topic)
            {
                return entry.number
            }
            place = (place &+ 1) & mask
        }
        return 0
    }

    /// Adds a topic that is not in the table.
    package mutating func insert(_ topic: RawSpan, number: UInt16) {
        // A packet has no room for a longer topic, and the router begins at 1.
        precondition(number != 0 && topic.byteCount <= UInt16.max)
        if count >= entries.count / 2 { grow() }
        let hash = topic.hashed(seed: seed)
        let entry = Entry(
            hash: UInt32(truncatingIfNeeded: hash), start: UInt32(names.count), count: UInt16(topic.byteCount),
            number: number)
        guard place(entry, at: Int(truncatingIfNeeded: hash >> 32)) else { return }
        topic.append(to: &names)
        count += 1
    }

    /// Forgets all topics. Takes time in proportion to how many there are.
    package mutating func removeAll(keepingCapacity: Bool = false) {
        // Emptying many entries for few topics would take longer than making few anew.
        if keepingCapacity, count >= entries.count / 8, !isFull {
            for place in entries.indices { entries[place].number = 0 }
            names.removeAll(keepingCapacity: true)
        } else {
            entries = []
            names = []
        }
        count = 0
    }

    /// Puts an entry at the first free place; returns false if all places that a search looks at are taken.
    private mutating func place(_ entry: Entry, at first: Int) -> Bool {
        let mask = entries.count - 1
        for distance in 0..<Self.longestSearch {
            let place = (first &+ distance) & mask
            guard entries[place].number == 0 else { continue }
            entries[place] = entry
            return true
        }
        return false
    }

    private mutating func grow() {
        let old = entries
        entries = Array(repeating: Entry(), count: max(16, old.count * 2))
        for entry in old where entry.number != 0 {
            let start = Int(entry.start)
            // The bytes of an array of bytes: nothing to reinterpret.
            let hash = unsafe names.span.bytes.extracting(start..<start + Int(entry.count)).hashed(seed: seed)
            if !place(entry, at: Int(truncatingIfNeeded: hash >> 32)) { count -= 1 }
        }
    }
}
