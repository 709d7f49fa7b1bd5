/// The packet identifiers 1…65,535 as a bit set: which are taken, and which to take next.
///
/// PUBLISH, SUBSCRIBE and UNSUBSCRIBE share one set [MQTT 5.0 2.2.1-3, 3.1.1 2.3.1-2]. An identifier is taken in
/// rotation, so that one just freed is not used again at once and a late acknowledgement does not match another message. The range
/// that is rotated through starts small and doubles when it is more than half full, which keeps the tables of a quiet
/// connection small and a search short.
struct PacketIDSet: Sendable {
    private(set) var words: [UInt64] = []
    private var cursor = 1
    /// The number of identifiers in use.
    private(set) var count = 0

    /// One more than the largest identifier that the current range can give.
    var span: Int { words.count * 64 }

    /// Takes an unused identifier, or nil when all 65,535 are in use.
    mutating func reserve() -> UInt16? {
        if count * 2 >= span { grow() }
        guard count < 65_535 else { return nil }
        // Bit 0 of word 0 is never free: identifier 0 is not one [MQTT 5.0 2.2.1-3].
        var word = cursor >> 6
        var free = ~words[word] & (~0 << UInt64(cursor & 63))
        while true {
            if word == 0 { free &= ~1 }
            if free != 0 { break }
            word = word + 1 == words.count ? 0 : word + 1
            free = ~words[word]
        }
        let bit = free.trailingZeroBitCount
        words[word] |= 1 << UInt64(bit)
        count += 1
        let id = word << 6 | bit
        cursor = id + 1 == span ? 1 : id + 1
        return UInt16(id)
    }

    /// Lets the rotation begin at an identifier that depends on the time, since an earlier process may have left messages of
    /// QoS 2 unfinished that this one does not know: a server would take new ones under their identifiers for repetitions.
    mutating func begin(at now: Int64) {
        let id = UInt16(1 + (now / 1000).magnitude % 8191)
        while span <= Int(id) { grow() }
        cursor = Int(id)
    }

    /// Takes one particular identifier, when a session is restored. False if it is 0 or already in use.
    mutating func insert(_ id: UInt16) -> Bool {
        while span <= Int(id) { grow() }
        guard id != 0, !contains(id) else { return false }
        words[Int(id) >> 6] |= 1 << UInt64(id & 63)
        count += 1
        return true
    }

    /// Gives an identifier back. Does nothing if it is not in use.
    mutating func release(_ id: UInt16) {
        guard contains(id) else { return }
        words[Int(id) >> 6] &= ~(1 << UInt64(id & 63))
        count -= 1
    }

    /// The identifiers in use, ascending.
    var all: [UInt16] {
        count == 0 ? [] : (0..<span).compactMap { contains(UInt16($0)) ? UInt16($0) : nil }
    }

    /// Whether an identifier is in use.
    func contains(_ id: UInt16) -> Bool {
        let word = Int(id) >> 6
        return word < words.count && words[word] & (1 << UInt64(id & 63)) != 0
    }

    private mutating func grow() {
        let target = words.isEmpty ? 1 : min(words.count * 2, 1024)
        while words.count < target { words.append(0) }
    }
}

/// A set of packet identifiers that takes the room of a reference while it is empty and at most 8 KiB.
struct PacketIDBits: Sendable {
    /// The number of identifiers in the set, and from the second word on the identifiers.
    private(set) var words: [UInt64] = []

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
