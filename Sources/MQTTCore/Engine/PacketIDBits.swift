/// A set of packet identifiers that takes the room of a reference while it is empty and at most 8 KiB.
struct PacketIDBits: Sendable {
    /// The number of identifiers in the set, and from the second word on the identifiers.
    private var words: [UInt64] = []

    /// The number of identifiers in the set.
    var count: Int { words.isEmpty ? 0 : Int(words[0]) }

    func contains(_ id: UInt16) -> Bool {
        let word = 1 + Int(id) >> 6
        return word < words.count && words[word] & (1 << UInt64(id & 63)) != 0
    }

    /// Adds an identifier. False if it was there.
    @discardableResult
    mutating func insert(_ id: UInt16) -> Bool {
        guard !contains(id) else { return false }
        while words.count <= 1 + Int(id) >> 6 { words.append(0) }
        words[1 + Int(id) >> 6] |= 1 << UInt64(id & 63)
        words[0] += 1
        return true
    }

    /// Removes an identifier. False if it was not there.
    @discardableResult
    mutating func remove(_ id: UInt16) -> Bool {
        guard contains(id) else { return false }
        words[1 + Int(id) >> 6] &= ~(1 << UInt64(id & 63))
        words[0] -= 1
        return true
    }

    /// All identifiers, ascending.
    var all: [UInt16] {
        (0..<max(0, words.count - 1) * 64).compactMap { contains(UInt16($0)) ? UInt16($0) : nil }
    }

    /// Removes all and gives the memory back.
    mutating func removeAll() {
        words = []
    }
}
