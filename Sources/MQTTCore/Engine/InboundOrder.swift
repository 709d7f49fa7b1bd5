import MessagingWire

/// The QoS 1 and QoS 2 messages of this connection that are not acknowledged yet, in the order of their arrival.
///
/// Acknowledgements leave in that order whatever order the application gives them in [MQTT 5.0 4.6.0-2, 4.6.0-3], so
/// this is a ring: an answer marks an entry, and only marked entries at the head are taken out. Each entry has a token,
/// the number of its arrival over all connections, so that an answer finds its entry by subtraction and an answer that
/// belongs to an earlier connection is recognised.
struct InboundOrder: Sendable {
    struct Entry: Sendable {
        var packetID: UInt16
        var isQoS2: Bool
        /// A QoS 2 message that was delivered on an earlier connection: this entry's token was never reported.
        var isRepeat = false
        var isAnswered = false
        var reason: UInt8 = 0
        /// The answer may leave only when this ticket of the session store is done; 0 for none.
        var ticket: UInt64 = 0
    }

    private(set) var ring: [Entry] = []
    private(set) var head = 0
    /// The number of entries.
    private(set) var count = 0
    /// The token of the entry at the head; tokens start at 1, because 0 marks a message without acknowledgement.
    private(set) var base: UInt64 = 1
    /// Every entry up to this token counts as answered.
    private(set) var answeredThrough: UInt64 = 0
    /// The number of entries of QoS 2.
    private(set) var exactlyOnceCount = 0

    /// QoS 2 messages that the application holds from an earlier connection and has not answered: token to identifier.
    private(set) var carried: [UInt64: UInt16] = [:]

    /// Records an arrival and returns its token.
    mutating func append(_ entry: Entry) -> UInt64 {
        reserve(1)
        ring[(head + count) & (ring.count - 1)] = entry
        count += 1
        if entry.isQoS2 { exactlyOnceCount += 1 }
        return base + UInt64(count) - 1
    }

    /// Records the arrival of the QoS 1 messages among these; their tokens have been assigned already.
    mutating func append(_ messages: Span<MQTTMessageRecord>, count added: Int) {
        reserve(added)
        let mask = ring.count &- 1
        var end = head &+ count
        var entries = ring.mutableSpan
        for index in messages.indices where messages[index].delivery != 0 {
            entries[end & mask] = Entry(packetID: messages[index].packetID, isQoS2: false)
            end &+= 1
        }
        count = end &- head
    }

    /// Marks the entry of a token. Returns the entry, or nil if it is not of this connection or was answered before.
    mutating func answer(_ token: UInt64, reason: UInt8) -> Entry? {
        guard token > answeredThrough, let position = position(of: token), !ring[position].isAnswered else {
            return nil
        }
        ring[position].isAnswered = true
        ring[position].reason = reason
        return ring[position]
    }

    /// Sets the ticket that the answer of a token waits for.
    mutating func hold(_ token: UInt64, until ticket: UInt64) {
        if let position = position(of: token) { ring[position].ticket = ticket }
    }

    /// Marks all entries up to a token as answered with success; `body` gets the tokens and identifiers of
    /// the QoS 2 messages among them.
    mutating func answerAll(through token: UInt64, _ body: (UInt64, UInt16) -> Void) {
        var next = max(base, answeredThrough + 1)
        while next <= token, let position = position(of: next) {
            if ring[position].isQoS2, !ring[position].isAnswered { body(next, ring[position].packetID) }
            next += 1
        }
        answeredThrough = max(answeredThrough, min(token, base + UInt64(count) - 1))
    }

    /// The same for consecutive tokens, except those of messages that were delivered on an earlier connection.
    mutating func answer(_ tokens: ClosedRange<UInt64>, _ body: (UInt64, UInt16) -> Void) {
        let (head, base, mask) = (head, base, ring.count &- 1)
        let known = tokens.clamped(to: base...max(base, nextToken &- 1))
        guard count > 0, tokens.overlaps(known) else { return }
        if exactlyOnceCount == 0, known.lowerBound <= max(base, answeredThrough &+ 1) {
            // All before them are answered, and none of them needs more than that.
            answeredThrough = max(answeredThrough, known.upperBound)
            return
        }
        var entries = ring.mutableSpan
        for token in known {
            let position = (head &+ Int(truncatingIfNeeded: token &- base)) & mask
            if entries[position].isRepeat { continue }
            entries[position].isAnswered = true
            if entries[position].isQoS2 { body(token, entries[position].packetID) }
        }
    }

    /// Whether a message has no answer yet: one of this connection, or one of QoS 2 of an earlier connection.
    func awaitsAnswer(_ token: UInt64) -> Bool {
        guard let position = position(of: token) else { return carried[token] != nil }
        return token > answeredThrough && !ring[position].isAnswered
    }

    /// Whether an entry is answered behind another one that is not.
    var holdsAnswered: Bool {
        guard count > 0, answeredThrough < base, !ring[head].isAnswered else { return false }
        return (1..<count).contains { ring[(head + $0) & (ring.count - 1)].isAnswered }
    }

    /// The token of the next arrival.
    var nextToken: UInt64 { base + UInt64(count) }

    /// Takes the entries at the head out that PUBACK without a reason answers, and appends these packets. Returns false
    /// if there are none.
    mutating func writePubacks(into output: inout [UInt8], persistedThrough ticket: UInt64) -> Bool {
        var hasWritten = false
        while count > 0 {
            let answered = Int(clamping: answeredThrough &- min(answeredThrough, base &- 1))
            let most = min(count, 512)
            // Without an answer for the first one, no room is taken for the packets.
            guard Self.takesPuback(ring[head], isAnswered: answered > 0, persistedThrough: ticket) else { break }
            hasWritten = true
            var written = 0
            output.append(addingCapacity: most * 4) { output in
                let entries = ring.span
                var offset = 0
                while offset < most {
                    let entry = entries[(head &+ offset) & (entries.count &- 1)]
                    guard Self.takesPuback(entry, isAnswered: offset < answered, persistedThrough: ticket) else {
                        break
                    }
                    output.append(uint32: 0x4002_0000 | UInt32(entry.packetID))
                    offset &+= 1
                }
                written = offset
            }
            head = (head &+ written) & (ring.count - 1)
            count -= written
            base += UInt64(written)
        }
        return hasWritten
    }

    /// Whether PUBACK without a reason code answers an entry now.
    @inline(__always)
    private static func takesPuback(_ entry: Entry, isAnswered: Bool, persistedThrough ticket: UInt64) -> Bool {
        !entry.isQoS2 && entry.reason == 0 && entry.ticket <= ticket && (entry.isAnswered || isAnswered)
    }

    /// Takes the entry at the head out if it is answered and its ticket is done.
    mutating func popAnswered(persistedThrough: UInt64) -> Entry? {
        guard count > 0 else { return nil }
        let entry = ring[head]
        guard entry.isAnswered || base <= answeredThrough, entry.ticket <= persistedThrough else { return nil }
        head = (head + 1) & (ring.count - 1)
        count -= 1
        base += 1
        if entry.isQoS2 { exactlyOnceCount -= 1 }
        return entry
    }

    /// Whether the PUBREC of a QoS 2 message waits for nothing but the session store.
    var hasAnsweredQoS2: Bool {
        for offset in 0..<count {
            let entry = ring[(head + offset) & (ring.count - 1)]
            guard entry.isAnswered || base + UInt64(offset) <= answeredThrough else { return false }
            if entry.isQoS2 { return true }
        }
        return false
    }

    /// Whether a QoS 2 message with this packet identifier has come on this connection and has no PUBREC yet.
    func holds(_ packetID: UInt16) -> Bool {
        (0..<count).contains { offset in
            let entry = ring[(head + offset) & (ring.count - 1)]
            return entry.isQoS2 && entry.packetID == packetID
        }
    }

    /// The QoS 2 entries that are in the ring, oldest first, with their tokens.
    func forEachUnacknowledgedQoS2(_ body: (UInt64, Entry) -> Void) {
        for offset in 0..<count {
            let entry = ring[(head + offset) & (ring.count - 1)]
            let token = base + UInt64(offset)
            if entry.isQoS2, !entry.isAnswered, token > answeredThrough { body(token, entry) }
        }
    }

    /// The token of the unacknowledged entry of a packet identifier; a search, for the rare answer that comes from an
    /// earlier connection.
    func unacknowledgedToken(of packetID: UInt16) -> UInt64? {
        var found: UInt64?
        forEachUnacknowledgedQoS2 { token, entry in if entry.packetID == packetID { found = token } }
        return found
    }

    /// Forgets the entries: the peer sends again what it has no acknowledgement for. QoS 2 messages that the application
    /// still holds are carried over, because they are not delivered a second time.
    mutating func connectionClosed() {
        var kept: [(UInt64, UInt16)] = []
        forEachUnacknowledgedQoS2 { token, entry in if !entry.isRepeat { kept.append((token, entry.packetID)) } }
        for (token, id) in kept { carried[token] = id }
        base += UInt64(count)
        count = 0
        exactlyOnceCount = 0
        head = 0
        ring = []
    }

    /// Takes a message of an earlier connection out of those carried over.
    mutating func removeCarried(_ token: UInt64) -> UInt16? {
        carried.removeValue(forKey: token)
    }

    /// Forgets what was carried over: the session is gone.
    mutating func removeAllCarried() {
        carried.removeAll()
    }

    private func position(of token: UInt64) -> Int? {
        guard token >= base, token - base < UInt64(count) else { return nil }
        return (head + Int(token - base)) & (ring.count - 1)
    }

    /// Makes room for more entries.
    private mutating func reserve(_ added: Int) {
        if added > ring.count - count { grow(to: count + added) }
    }

    private mutating func grow(to minimum: Int) {
        var larger = Array(repeating: Entry(packetID: 0, isQoS2: false), count: max(8, ring.count * 2))
        while larger.count < minimum { larger += larger }
        for offset in 0..<count { larger[offset] = ring[(head + offset) & (ring.count - 1)] }
        ring = larger
        head = 0
    }
}
