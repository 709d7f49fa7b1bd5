// A session that continues, that the peer has lost, and that is discarded.
// Packets are held until the records behind them are stored.

extension MQTTEngine {

    /// The session is resumed: PUBREL in the order of PUBREC, then PUBLISH in its original order, as the window allows
    /// [MQTT 5.0 4.4.0-1, 4.6.0-1]. PUBREL does not wait for the window [MQTT 5.0 4.9.0-3].
    mutating func resumeSession(at now: Int64) {
        session.window.resume()
        for index in session.window.received.indices(session.window.slots) {
            writePubrel(index, at: now)
        }
    }

    /// The peer has no session: what was received is forgotten, what was sent is sent anew or fails
    /// [MQTT 5.0 3.2.2-5].
    ///
    /// - Parameter wasHeld: false if no server can have had the session: messages that were stored with an identifier before
    ///   the first connection have never been sent, and nothing was lost.
    mutating func sessionWasLost(wasHeld: Bool = true, into effects: inout MQTTEffects) {
        let releasesRetired = session.window.releaseRetiredIDs()
        if session.received.count > 0 || releasesRetired { store(.receivedForgotten) }
        session.forgetReceived()
        guard session.window.hasProtocolState else { return }
        defer { expectExpiry() }
        guard wasHeld else { return session.window.requeueAll(wereSent: false) }
        var duplicates: [UInt64] = []
        let indices = session.window.inFlight
        for index in indices where session.window.slots[Int(index)].head.flags.isExactlyOnce {
            duplicates.append(session.window.slots[Int(index)].token)
        }
        if options.value.republishesAfterSessionLoss {
            session.window.requeueAll(wereSent: true)
            effects.report(.sessionLost(republished: indices.count, possibleDuplicates: duplicates))
        } else {
            for index in indices { complete(index, .sessionLost, .success, -1, &effects) }
            effects.report(.sessionLost(republished: 0, possibleDuplicates: []))
        }
    }

    /// Forgets the session and every message in flight or queued, each with a completion
    /// ``MQTTPublishCompletion/Outcome/discarded``. Only without a connection; the server keeps its side until a
    /// connection with Clean Start.
    public mutating func discardSession(into effects: inout MQTTEffects) throws(MQTTUsageError) {
        guard phase == .closed else {
            throw MQTTUsageError(
                .alreadyConnected,
                "A session cannot be discarded while a connection is open. Close the connection first.")
        }
        discardAll(into: &effects)
    }

    /// Continues with a session that was restored from a store. Only without a connection.
    package mutating func restore(_ session: MQTTSession) {
        let old = self.session
        self.session = session
        // The store holds all of it.
        (establishedTicket, receivedTicket) = (0, 0)
        // The tokens of deliveries continue, so that one of before is not taken for a new one.
        self.session.inbound = old.inbound
        self.session.inbound.removeAllCarried()
        // A store does not hold messages of QoS 0.
        for index in old.window.queue.indices(old.window.slots) {
            let slot = old.window.slots[Int(index)]
            guard slot.head.flags.isAtMostOnce else { continue }
            _ = self.session.window.enqueue(slot.head, slot.payload, slot.properties, token: slot.token, at: slot.time)
        }
        expectExpiry()
    }

    mutating func discardAll(into effects: inout MQTTEffects) {
        let window = session.window
        for index in window.inFlight + window.queue.indices(window.slots) {
            effects.completions.append(
                MQTTPublishCompletion(
                    token: window.slots[Int(index)].token, outcome: .discarded, reason: .success))
        }
        store(.discarded)
        session.reset()
        refusals.finish()
        reportRoom(&effects)
    }
}

extension MQTTEngine {
    /// The ticket of the newest record; right after a publish, the ticket with which that message is stored.
    public var lastTicket: UInt64 { storedTicket }

    /// Packets that may wait for the session store before ``holdsTooManyPackets``. A peer can make more of them than it
    /// has packet identifiers, by repeating PUBREL.
    package static let maximumHeldPackets = 4096

    /// Whether to stop reading until the session store answers: received packets are answered, and the answers wait for
    /// the store.
    package var holdsTooManyPackets: Bool { heldPackets.count >= Self.maximumHeldPackets }

    /// The records up to and including a ticket are stored: what waited for them is written.
    public mutating func persisted(through ticket: UInt64, at now: Int64, into effects: inout MQTTEffects) {
        guard ticket > persistedTicket else { return }
        persistedTicket = min(ticket, storedTicket)
        if phase == .connecting, let opening = opening.value, opening.heldConnectTicket <= persistedTicket {
            output += opening.heldConnect
            self.opening.value?.heldConnect = []
        }
        guard phase == .connected || phase == .leaving else { return }
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

    /// Adds a record if there is a store, and returns its ticket; 0 without a store.
    @inline(__always)
    @discardableResult
    mutating func store(_ record: @autoclosure () -> MQTTStoreRecord) -> UInt64 {
        guard options.value.persists else { return 0 }
        storeRecords.append(record())
        storedTicket += 1
        return storedTicket
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
        MQTTPacket.Acknowledgement.encode(type, packetID: id, reasonCode: reason, into: &output, version: version)
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
