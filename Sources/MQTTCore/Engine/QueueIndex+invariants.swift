// What is always true of the index of a queue; in debug builds only.

import MessagingWire

extension QueueIndex {
    /// Stops the process where the index leads elsewhere than to the messages of the queue.
    func checkInvariants(_ queue: SlotChain, _ slots: [OutboundSlot]) {
        if let tokens { check(tokens, slots) }
        if let topics { check(topics, queue, slots) }
        if expiries.count + queue.count > 0 { checkExpiries(queue, slots) }
    }

    private func check(_ tokens: [UInt64: Int32], _ slots: [OutboundSlot]) {
        for (token, index) in tokens {
            let slot = slots[Int(index)]
            assert(slot.isInQueue, "A token leads to a message outside the queue.")
            assert(slot.token == token, "A token leads to a message with another one.")
        }
    }

    /// Each topic leads to all messages of it that were never sent, the oldest first.
    private func check(_ topics: [ByteKey: Ring<Entry>], _ queue: SlotChain, _ slots: [OutboundSlot]) {
        var (entries, queued) = (0, 0)
        for ring in topics.values {
            var last: UInt64 = 0
            for position in 0..<ring.count {
                let entry = ring[position]
                entries += 1
                guard entry.isQueued(slots) else { continue }
                queued += 1
                assert(slots[Int(entry.slot)].kind == .queued, "A topic leads to a message that was sent.")
                assert(entry.sequence > last, "A topic leads to a later message first.")
                last = entry.sequence
            }
        }
        assert(topicEntryCount == entries, "The topics lead to another number of messages than is counted.")
        let unsent = queue.indices(slots).count { slots[Int($0)].kind == .queued }
        assert(queued == unsent, "A message that was never sent is not found by its topic.")
    }

    private func checkExpiries(_ queue: SlotChain, _ slots: [OutboundSlot]) {
        var found: Set<UInt64> = []
        var place = 0
        while place < expiries.count {
            let entry = expiries.items[place]
            assert(place == 0 || !(entry < expiries.items[(place - 1) / 2]), "What expires first is not found first.")
            if entry.isQueued(slots) {
                found.insert(entry.sequence)
                assert(entry.time == slots[Int(entry.slot)].expiry, "A message expires at another time than expected.")
            }
            place += 1
        }
        var index = queue.first
        while index >= 0 {
            let slot = slots[Int(index)]
            assert(slot.expiry == .max || found.contains(slot.sequence), "A message expires that is not expected to.")
            index = slot.next
        }
    }
}
