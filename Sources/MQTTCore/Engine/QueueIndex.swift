import MessagingWire

/// Finds messages in the queue of a ``SendWindow``, however long it is: by token, by topic, and by expiry.
///
/// What is seldom asked for is made when it is first asked for, and forgotten with the queue's last message. Entries whose
/// message has left the queue are passed over: no other message has its sequence.
struct QueueIndex: Sendable {
    struct Entry: Sendable, Comparable {
        var time: Int64
        var sequence: UInt64
        var slot: Int32

        static func < (one: Entry, other: Entry) -> Bool { (one.time, one.sequence) < (other.time, other.sequence) }

        func isQueued(_ slots: [OutboundSlot]) -> Bool {
            slots[Int(slot)].isInQueue && slots[Int(slot)].sequence == sequence
        }
    }

    private(set) var tokens: [UInt64: Int32]?
    private(set) var topics: [ByteKey: Ring<Entry>]?
    /// How many entries `topics` has.
    private(set) var topicEntryCount = 0
    private(set) var expiries = Heap<Entry>()

    // MARK: The queue changes

    /// - Parameter count: how many messages the queue has with this one.
    mutating func append(_ index: Int32, _ slots: [OutboundSlot], count: Int) {
        let slot = slots[Int(index)]
        tokens?[slot.token] = index
        if topics != nil {
            topics?[ByteKey(slot.head.topic), default: Ring()].append(Self.entry(index, slot))
            topicEntryCount += 1
            if topicEntryCount > 2 * count + 64 { topics = nil }
        }
        expect(index, slots)
    }

    /// The message has an expiry if it is in the queue.
    mutating func expect(_ index: Int32, _ slots: [OutboundSlot]) {
        guard slots[Int(index)].expiry != .max else { return }
        expiries.insert(Self.entry(index, slots[Int(index)]))
        if expiries.count > 2 * slots.count + 64 { expiries = Heap(expiries.items.filter { $0.isQueued(slots) }) }
    }

    mutating func remove(_ index: Int32, _ slot: OutboundSlot, isLast: Bool) {
        if isLast {
            self = QueueIndex()
        } else if tokens?[slot.token] == index {
            // Messages that nobody can withdraw have one token in common.
            tokens?[slot.token] = nil
        }
    }

    /// Messages have come to the head of the queue.
    mutating func forgetPlaces() { (tokens, topics) = (nil, nil) }

    private static func entry(_ index: Int32, _ slot: OutboundSlot) -> Entry {
        Entry(time: slot.expiry, sequence: slot.sequence, slot: index)
    }

    // MARK: Messages are looked up

    mutating func message(_ token: UInt64, _ queue: SlotChain, _ slots: [OutboundSlot]) -> Int32? {
        if tokens == nil {
            tokens = [:]
            for index in queue.indices(slots) { tokens?[slots[Int(index)].token] = index }
        }
        return tokens?[token]
    }

    /// The oldest message to a topic that was never sent.
    mutating func first(to topic: String, _ queue: SlotChain, _ slots: [OutboundSlot]) -> Int32? {
        if topics == nil {
            (topics, topicEntryCount) = ([:], 0)
            for index in queue.indices(slots) where slots[Int(index)].kind == .queued {
                let slot = slots[Int(index)]
                topics?[ByteKey(slot.head.topic), default: Ring()].append(Self.entry(index, slot))
                topicEntryCount += 1
            }
        }
        let name = ByteKey(topic)
        while let entry = topics?[name]?.first {
            if entry.isQueued(slots) { return entry.slot }
            _ = topics?[name]?.popFirst()
            topicEntryCount -= 1
        }
        topics?[name] = nil
        return nil
    }

    /// The message of the queue that expires first.
    mutating func nextExpiry(_ slots: [OutboundSlot]) -> Entry? {
        while let first = expiries.first, !first.isQueued(slots) { _ = expiries.popFirst() }
        return expiries.first
    }
}
