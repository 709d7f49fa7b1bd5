// A session that continues, that the peer has lost, and that is discarded.

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
        session.doubt = .none
        guard session.window.hasProtocolState else { return }
        defer { expectExpiry() }
        guard wasHeld else { return session.window.requeueAll(wereSent: false) }
        var duplicates: [UInt64] = []
        let indices = session.window.inFlight
        for index in indices where session.window.slots[Int(index)].head.flags.isExactlyOnce {
            duplicates.append(session.window.slots[Int(index)].token)
        }
        if options.value.republishesAfterSessionLoss {
            // They get new identifiers when they are sent. If the process ended before that, the next process would
            // send PUBREL alone, which the new session confirms without having the message.
            for index in session.window.received.indices(session.window.slots) {
                let slot = session.window.slots[Int(index)]
                store(.identified(sequence: slot.sequence, packetID: slot.head.packetID))
            }
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
        defer { assert(checkInvariants()) }
        guard phase == .closed else {
            throw .sessionToDiscardIsInUse
        }
        discardAll(into: &effects)
    }

    /// Continues with a session that was restored from a store. Only without a connection.
    package mutating func restore(_ session: MQTTSession) {
        defer { assert(checkInvariants()) }
        let old = self.session
        self.session = session
        // The store holds all of it.
        (establishedTicket, receivedTicket) = (0, 0)
        // Delivery tokens keep counting, so that an old token cannot be mistaken for a new one.
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
        quarantine = Quarantine()
        filters.storeWasEmptied()
        filters.sessionIsAbsent()
        reportRoom(&effects)
    }
}
