import MessagingWire

/// The subscriptions of one connection, found by the bytes of their id in a MESSAGE without building a string.
///
/// Ids are our own, so a peer cannot choose them to collide. The last hit is compared first; after it comes an
/// open-addressing table with linear probing.
struct SubscriptionTable {
    struct Entry {
        /// As on the wire: escaped for the version of the connection.
        var id: [UInt8]
        var destination: String
        var ackMode: STOMPAckMode
        /// Whether the next message has to be noted: those of mode `auto` only until the first one.
        private(set) var notesMessages: Bool
        var token: UInt64
        /// Whether answers to its messages are expected.
        let isAcknowledged: Bool
        /// The number of the receipt of SUBSCRIBE, until a message has proved that SUBSCRIBE was accepted; 0 for none.
        private(set) var receipt: UInt64
        /// Messages of mode `auto` are not counted.
        var unanswered: UnansweredMessages

        init(
            id: [UInt8], destination: String, ackMode: STOMPAckMode, token: UInt64, receipt: UInt64 = 0,
            isAnswered: Bool = true
        ) {
            (self.id, self.destination, self.ackMode, self.token) = (id, destination, ackMode, token)
            self.receipt = receipt
            isAcknowledged = isAnswered && ackMode != .auto
            notesMessages = ackMode != .auto || receipt != 0
            unanswered = UnansweredMessages(ackMode)
        }

        /// A message that names the subscription arrived. Returns the number of the receipt that it makes needless, or 0.
        mutating func noteMessage() -> UInt64 {
            if ackMode != .auto { unanswered.received() }
            defer { (receipt, notesMessages) = (0, ackMode != .auto) }
            return receipt
        }
    }

    private(set) var entries: [Entry] = []
    /// Indices into `entries`, -1 where free; a power of two, at most half full.
    private(set) var slots: [Int32] = []
    private var lastHit = 0

    mutating func removeAll() {
        entries = []
        slots = []
        lastHit = 0
    }

    /// The index of the subscription whose id is the bytes `start..<end`.
    mutating func index(of bytes: RawSpan, _ start: Int, _ end: Int) -> Int? {
        let count = end &- start
        if lastHit < entries.count, isEntry(lastHit, bytes, start, count) { return lastHit }
        guard !slots.isEmpty else { return nil }
        var slot = Self.hash(bytes, start, end) & (slots.count &- 1)
        while slots[slot] >= 0 {
            let index = Int(slots[slot])
            if isEntry(index, bytes, start, count) {
                lastHit = index
                return index
            }
            slot = (slot &+ 1) & (slots.count &- 1)
        }
        return nil
    }

    // UInt8 has no padding, so all bytes are initialised.
    mutating func index(of id: [UInt8]) -> Int? { index(of: unsafe id.span.bytes, 0, id.count) }

    mutating func insert(_ entry: Entry) {
        entries.append(entry)
        if entries.count * 2 > slots.count {
            slots = [Int32](repeating: -1, count: max(8, slots.count * 2))
            for index in entries.indices { place(index) }
        } else {
            place(entries.count - 1)
        }
    }

    /// A message that names an entry arrived. Returns the number of the receipt that it makes needless, or 0.
    mutating func noteMessage(at index: Int) -> UInt64 { entries[index].noteMessage() }

    /// A message arrived for an entry, which it does not name. Returns the entry's token.
    mutating func received(at index: Int) -> UInt64 {
        if entries[index].ackMode != .auto { entries[index].unanswered.received() }
        return entries[index].token
    }

    /// A message of an entry is answered, in mode `client` with those before it unless it is `alone`.
    mutating func answer(_ number: UInt64, at index: Int, alone: Bool, in transaction: UInt32?) {
        entries[index].unanswered.answer(number, alone: alone, in: transaction)
    }

    /// The transaction of these answers was committed, or aborted so that they do not count.
    mutating func transactionEnded(_ transaction: UInt32, _ answers: [STOMPMessageNumber], isAborted: Bool) {
        guard !answers.isEmpty else { return }
        let ended = Dictionary(grouping: answers) { $0.subscription }
        for index in entries.indices {
            guard let own = ended[entries[index].token] else { continue }
            entries[index].unanswered.transactionEnded(transaction, own, isAborted: isAborted)
        }
    }

    /// Takes an entry out; the last one moves into its place.
    mutating func remove(at index: Int) -> Entry {
        vacate(slot(of: index))
        let last = entries.count - 1
        if index != last {
            let moved = slot(of: last)
            slots[moved] = Int32(index)
        }
        entries.swapAt(index, last)
        lastHit = 0
        return entries.removeLast()
    }

    @inline(__always)
    private func isEntry(_ index: Int, _ bytes: RawSpan, _ start: Int, _ count: Int) -> Bool {
        let id = entries[index].id
        // UInt8 has no padding, so all bytes are initialised.
        return id.count == count && bytes.isEqual(start, count, to: unsafe id.span.bytes, at: 0)
    }

    private mutating func place(_ index: Int) {
        let id = entries[index].id
        // UInt8 has no padding, so all bytes are initialised.
        var slot = Self.hash(unsafe id.span.bytes, 0, id.count) & (slots.count - 1)
        while slots[slot] >= 0 { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = Int32(index)
    }

    private func slot(of index: Int) -> Int {
        let id = entries[index].id
        // UInt8 has no padding, so all bytes are initialised.
        var slot = Self.hash(unsafe id.span.bytes, 0, id.count) & (slots.count - 1)
        while slots[slot] != Int32(index) { slot = (slot + 1) & (slots.count - 1) }
        return slot
    }

    /// Frees a slot and moves back what had been pushed beyond it, so that no gap cuts a probe short.
    private mutating func vacate(_ freed: Int) {
        let mask = slots.count - 1
        var gap = freed
        var next = (gap + 1) & mask
        while slots[next] >= 0 {
            let id = entries[Int(slots[next])].id
            // UInt8 has no padding, so all bytes are initialised.
            let home = Self.hash(unsafe id.span.bytes, 0, id.count) & mask
            if (next - home) & mask >= (next - gap) & mask {
                slots[gap] = slots[next]
                gap = next
            }
            next = (next + 1) & mask
        }
        slots[gap] = -1
    }

    private static func hash(_ bytes: RawSpan, _ start: Int, _ end: Int) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        var offset = start
        while end &- offset >= 8 {
            hash = (hash ^ bytes.word(at: offset)) &* 0x9E37_79B9_7F4A_7C15
            hash ^= hash >> 29
            offset &+= 8
        }
        while offset < end {
            hash = (hash ^ UInt64(bytes.byte(at: offset))) &* 0x100_0000_01B3
            offset &+= 1
        }
        hash = (hash ^ (hash >> 32)) &* 0x9E37_79B9_7F4A_7C15
        return Int(truncatingIfNeeded: (hash ^ (hash >> 29)) & 0x7FFF_FFFF)
    }
}
