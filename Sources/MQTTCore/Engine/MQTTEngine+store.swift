import MessagingWire

// Records for a session store, and packets that are held until the records behind them are stored.

extension MQTTEngine {
    /// Packets that may wait for the session store before ``holdsTooManyPackets``. A peer can make more of them than it
    /// has packet identifiers, by repeating PUBREL.
    package static let maximumHeldPackets = 4096

    /// Whether to stop reading until the session store answers: received packets are answered, and the answers wait for
    /// the store.
    package var holdsTooManyPackets: Bool { heldPackets.count >= Self.maximumHeldPackets }

    /// Whether CONNECT waits for the session store, and has not been written.
    package var connectWaitsForStore: Bool { opening.value?.heldConnect.isEmpty == false }

    /// The records up to and including a ticket are stored: what waited for them is written.
    public mutating func persisted(through ticket: UInt64, at now: Int64, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        guard ticket > persistedTicket else { return }
        persistedTicket = min(ticket, lastTicket)
        if phase == .connecting, let opening = opening.value, opening.heldConnectTicket <= persistedTicket {
            output += opening.heldConnect
            self.opening.value?.heldConnect = []
        }
        guard phase.isOpen else { return }
        var written = 0
        while written < heldPackets.count, heldPackets[written].ticket <= persistedTicket {
            let held = heldPackets[written]
            writeAcknowledgement(held.type, held.packetID, held.reason, at: now)
            written += 1
        }
        heldPackets.removeFirst(written)
        writeAnswers(at: now)
        pump(at: now, into: &effects)
        leaveIfDone(at: now, into: &effects)
    }

    /// Adds a record of the caller: that a received message is retained, or no longer is.
    public mutating func note(_ record: MQTTStoreRecord) {
        store(record)
    }

    /// Acknowledges a received message once a record of it is stored, for a caller that retains the message itself.
    public mutating func acknowledge(_ delivery: UInt64, storing record: MQTTStoreRecord, at now: Int64) {
        let ticket = store(record)
        if ticket != 0 { session.inbound.hold(delivery, until: ticket) }
        acknowledge(delivery, at: now)
    }

    // MARK: Filters

    /// Continues with the filters of a log: a subscription that had ended is unsubscribed when the session continues, and the
    /// others are kept for whoever wants the same filter. Only without a connection.
    public mutating func restoreFilters(of image: MQTTSessionImage) {
        defer { assert(checkInvariants()) }
        guard phase == .closed, !isServer else { return }
        filters.reopened(image.filters, persistedTicket: persistedTicket)
        noteAllFilters()
    }

    /// Gives the store what the server may have of each filter, for the next process.
    mutating func noteAllFilters() {
        guard options.value.persists else { return }
        for key in filters.records.keys.sorted() { noteFilter(key) }
    }

    /// The same for one filter. Filters of a session that ends with its connection are noted only if they were before.
    mutating func noteFilter(_ key: ByteKey) {
        guard options.value.persists, let record = filters.records[key],
            sessionOutlivesConnection || record.noted != .nothing
        else { return }
        let note = record.note(isDue: phase == .connected && record.next(terms) == .subscribe)
        guard note != record.noted else { return }
        let ticket =
            switch note {
            case .nothing: store(.filterForgotten(key.text))
            case .wanted: store(.filterWanted(key.text))
            case .ended: store(.filterEnded(key.text))
            }
        filters.setNoted(note, of: key, ticket: ticket)
    }

    /// Adds a record if there is a store, and returns its ticket; 0 without a store.
    @inline(__always)
    @discardableResult
    mutating func store(_ record: @autoclosure () -> MQTTStoreRecord) -> UInt64 {
        guard options.value.persists else { return 0 }
        storeRecords.append(record())
        lastTicket += 1
        return lastTicket
    }

    /// Writes PUBREL or PUBCOMP when its ticket is done; they leave in the order in which they were due.
    mutating func writeOrHold(
        _ type: MQTTPacketType, _ id: UInt16, _ reason: MQTTReasonCode, _ ticket: UInt64, at now: Int64
    ) {
        if ticket <= persistedTicket && heldPackets.isEmpty {
            writeAcknowledgement(type, id, reason, at: now)
        } else {
            heldPackets.append(HeldPacket(type: type, packetID: id, reason: reason, ticket: ticket))
        }
    }

    mutating func writeAcknowledgement(
        _ type: MQTTPacketType, _ id: UInt16, _ reason: MQTTReasonCode, at now: Int64
    ) {
        let before = output.count
        MQTTPacket.Acknowledgement.encode(type, packetID: id, reasonCode: reason, into: &output, version: version)
        countWritten(output.count - before)
        keepAlive.sent(at: now)
    }

    /// A PUBREL or PUBCOMP that waits for its ticket.
    struct HeldPacket: Sendable {
        var type: MQTTPacketType
        var packetID: UInt16
        var reason: MQTTReasonCode
        var ticket: UInt64
    }
}
