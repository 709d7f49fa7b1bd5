// What is always true of a send window; in debug builds only. Loops over numbers, because a sequence costs more in such a build
// than what it is asked for, and mutating, because the compiler copies a value of this size for a call that only reads it.

import MessagingWire

extension SendWindow {
    /// Stops the process where the window contradicts itself.
    ///
    /// - Parameters:
    ///   - isOpen: whether the session continues on a connection.
    ///   - passes: whether messages may pass others on it.
    mutating func checkInvariants(isOpen: Bool, passes: Bool) {
        checkPositions()
        if pace.isDue(for: slots.count) {
            checkInFlight(isOpen: isOpen, passes: passes)
            checkQueue()
            checkFree()
            index.checkInvariants(queue, slots)
        }
        if pace.isDue(for: slotOfID.count) { checkIdentifiers() }
        if pace.isDue(for: ids.span / 64) { ids.checkInvariants() }
    }

    /// What is gone with a connection.
    mutating func checkWithoutConnection() {
        assert(usedCount == 0, "A connection that has ended takes places of the window.")
        assert(resend < 0, "A message is sent again without a connection.")
    }

    /// What is in flight on a connection is no more than its peer allows.
    mutating func check(receiveMaximum: UInt16) {
        assert(
            Int(usedCount) - received.count <= Int(receiveMaximum),
            "More messages are in flight than Receive Maximum allows.")
    }

    /// Messages may leave: while nothing is in flight and identifiers are free, nothing else would ever send what waits.
    mutating func checkNothingWaits() {
        guard usedCount == 0, ids.count < 32_768 else { return }
        assert(resend < 0, "A message that is to be sent again waits for nothing.")
        assert(queue.first < 0, "A message in the queue waits for nothing.")
    }

    /// What needs no look at all slots.
    private mutating func checkPositions() {
        assert(usedCount >= 0, "The window has given back more places than were taken.")
        let inFlight = published.count + received.count
        assert(Int(usedCount) <= inFlight, "More places of the window are taken than messages are in flight.")
        assert(ids.count >= inFlight, "An identifier in use counts as free.")
        assert(pending < 0 || slots[Int(pending)].isInQueue, "What is sent next is not in the queue.")
        assert(resend < 0 || slots[Int(resend)].kind == .published, "What is sent again next is not in flight.")
        assert(resend < 0 || slots[Int(resend)].connection != connection, "What is sent again next was sent already.")
        assert(firstNew < 0 || slots[Int(firstNew)].isInQueue, "The first new message is not in the queue.")
        assert(unidentified < 0 || slots[Int(unidentified)].isInQueue, "What lacks an identifier is not in the queue.")
    }

    /// The messages in flight. On a connection those that were published are sent, up to what is sent again next.
    private mutating func checkInFlight(isOpen: Bool, passes: Bool) {
        var (walk, places, waits) = (ChainWalk(published), 0, false)
        while let slot = walk.next(slots) {
            checkInFlight(slot, at: walk.place, .published)
            let isSent = slot.connection == connection
            if isSent { places += 1 }
            guard isOpen, !passes else { continue }
            if walk.place == resend { waits = true }
            // What is published behind the last of them waits in the queue.
            assert(!waits || !isSent, "A message has overtaken those that are sent again.")
            assert(waits || isSent, "A message in flight is not sent again.")
        }
        assert(!isOpen || passes || waits == (resend >= 0), "What is sent again next is not in flight.")
        walk = ChainWalk(received)
        while let slot = walk.next(slots) {
            checkInFlight(slot, at: walk.place, .received)
            assert(slot.head.flags.isExactlyOnce, "PUBCOMP is awaited below QoS 2.")
            if slot.connection == connection { places += 1 }
        }
        assert(Int(usedCount) == places, "Other places of the window are taken than messages hold on this connection.")
    }

    private mutating func checkInFlight(_ slot: OutboundSlot, at place: Int32, _ kind: OutboundSlot.Kind) {
        assert(slot.kind == kind, "A slot is in the chain of another kind.")
        assert(slot.sequence <= lastSequence, "A message has a number that was not given.")
        assert(!slot.head.flags.isAtMostOnce, "A message of QoS 0 is in flight.")
        assert(slot.head.packetID != 0, "A message in flight has no identifier.")
        checkIdentifier(of: slot, at: place)
    }

    private mutating func checkQueue() {
        var (walk, bytes, atMostOnce, identified) = (ChainWalk(queue), 0, 0, 0)
        var (isNew, isUnidentified) = (false, false)
        while let slot = walk.next(slots) {
            if walk.place == firstNew { isNew = true }
            if walk.place == unidentified { isUnidentified = true }
            assert(slot.isInQueue, "A slot is in the chain of another kind.")
            assert(slot.sequence <= lastSequence, "A message has a number that was not given.")
            assert(isNew || slot.kind == .requeued, "A message that was never sent is before the first one of these.")
            checkIdentifier(of: slot, at: walk.place)
            bytes += slot.queuedBytes
            if slot.head.flags.isAtMostOnce {
                atMostOnce += 1
                assert(slot.kind == .queued, "A message of QoS 0 was sent in a session that was lost.")
                assert(slot.head.packetID == 0, "A message of QoS 0 has an identifier.")
            } else if !isUnidentified {
                assert(slot.head.packetID != 0, "A message was passed over and has no identifier.")
            }
            if slot.head.packetID != 0 { identified += 1 }
        }
        assert(queuedBytes == bytes, "The queue has another number of bytes than it counts.")
        assert(queuedAtMostOnceCount == atMostOnce, "The queue has another number of QoS 0 messages than it counts.")
        assert(identifiedCount == identified, "Another number of queued messages has an identifier than is counted.")
    }

    /// What is in no chain is free.
    private mutating func checkFree() {
        let chained = published.count + received.count + queue.count
        assert(chained + free.count == slots.count, "A slot is neither free nor in a chain, or is both.")
        var place = 0
        while place < free.count {
            let slot = slots[Int(free[place])]
            assert(slot.kind == .free, "A slot is free and in use.")
            assert(slot.head.packetID == 0, "A free slot has an identifier.")
            assert(slot.payload.isEmpty, "A free slot keeps a payload.")
            place += 1
        }
    }

    private mutating func checkIdentifier(of slot: OutboundSlot, at place: Int32) {
        let id = Int(slot.head.packetID)
        guard id != 0 else { return }
        assert(id < slotOfID.count && slotOfID[id] == place, "The identifier of a slot leads to another one.")
        assert(ids.contains(slot.head.packetID), "The identifier of a slot counts as free.")
    }

    /// Each identifier leads to the slot that has it; the reverse is checked with the chains.
    private mutating func checkIdentifiers() {
        var id = 0
        while id < slotOfID.count {
            let slot = slotOfID[id]
            assert(slot < 0 || slots[Int(slot)].head.packetID == id, "An identifier leads to another slot.")
            id += 1
        }
    }
}

/// Follows a chain from its first slot to its last, and sees that it leads the same way back.
private struct ChainWalk {
    private let chain: SlotChain
    /// The slot that ``next(_:)`` has returned.
    private(set) var place: Int32 = -1
    private var following: Int32
    private var count = 0

    init(_ chain: SlotChain) { (self.chain, following) = (chain, chain.first) }

    mutating func next(_ slots: [OutboundSlot]) -> OutboundSlot? {
        guard following >= 0, count <= slots.count else {
            assert(chain.last == place, "A chain ends elsewhere than it notes.")
            assert(chain.count == count, "A chain has another number of slots than it counts.")
            return nil
        }
        let slot = slots[Int(following)]
        assert(slot.previous == place, "A chain does not lead back the way that it came.")
        (place, following, count) = (following, slot.next, count + 1)
        return slot
    }
}

extension PacketIDSet {
    fileprivate mutating func checkInvariants() {
        var (word, taken) = (0, 0)
        while word < words.count {
            taken += words[word].nonzeroBitCount
            word += 1
        }
        assert(taken == count, "Another number of identifiers is taken than is counted.")
        assert(words.isEmpty || words[0] & 1 == 0, "Identifier 0 is taken.")
    }
}

extension PacketIDBits {
    /// Stops the process where the set has another number of identifiers than it counts.
    mutating func checkInvariants() {
        guard !words.isEmpty else { return }
        var (word, found) = (1, 0)
        while word < words.count {
            found += words[word].nonzeroBitCount
            word += 1
        }
        assert(found == words[0], "A set has another number of identifiers than it counts.")
    }
}
