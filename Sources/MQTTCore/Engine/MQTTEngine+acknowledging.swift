// Our acknowledgements of messages that arrived.

extension MQTTEngine {
    /// Acknowledges one received message of QoS 1 or 2.
    ///
    /// PUBACK and PUBREC are written in the order of arrival, so that an answer given early waits for those before it
    /// [MQTT 5.0 4.6.0-2]. A token of an earlier connection does no harm.
    /// - Parameter reason: a code of PUBACK or PUBREC; sent in 5.0 only.
    public mutating func acknowledge(_ delivery: UInt64, reason: MQTTReasonCode = .success, at now: Int64) {
        defer { assert(checkInvariants()) }
        markAcknowledged(delivery, reason: reason, at: now)
        writeAnswers(at: now)
    }

    /// The same for one of many messages, whose acknowledgements ``writeAnswers(at:)`` writes together.
    package mutating func markAcknowledged(_ delivery: UInt64, reason: MQTTReasonCode = .success, at now: Int64) {
        if let entry = session.inbound.answer(delivery, reason: reason.rawValue) {
            if entry.isQoS2 { recordTaken(entry.packetID, delivery, isRefused: reason.isError) }
        } else if let id = session.inbound.removeCarried(delivery) {
            acknowledgeCarried(id, reason, at: now)
        }
    }

    /// Whether a received message of QoS 1 or 2 can still be acknowledged, and has not been. A QoS 1 message of an
    /// earlier connection cannot: the peer sends it again.
    package func awaitsAnswer(_ delivery: UInt64) -> Bool { session.inbound.awaitsAnswer(delivery) }

    /// The token of the first message of this connection whose acknowledgement has not been written; all before it have
    /// been acknowledged, except QoS 2 messages of earlier connections.
    package var firstUnacknowledged: UInt64 { session.inbound.base }

    /// Whether there are QoS 2 messages of earlier connections that have not been acknowledged.
    package var holdsEarlierMessages: Bool { !session.inbound.carried.isEmpty }

    /// Forgets a QoS 2 message of an earlier connection, with its packet identifier: no PUBREC was sent, so that the peer
    /// sends it again, and that is delivered. Only without a connection.
    package mutating func forget(_ delivery: UInt64) {
        guard phase == .closed, let id = session.inbound.removeCarried(delivery) else { return }
        session.received.remove(id)
    }

    /// Acknowledges messages that arrived one after the other.
    package mutating func acknowledge(_ deliveries: ClosedRange<UInt64>, at now: Int64) {
        defer { assert(checkInvariants()) }
        var taken: [(UInt64, UInt16)] = []
        session.inbound.answer(deliveries) { token, id in taken.append((token, id)) }
        for (token, id) in taken { recordTaken(id, token, isRefused: false) }
        writeAnswers(at: now)
    }

    /// Acknowledges every message up to and including a token with success.
    public mutating func acknowledgeAll(through delivery: UInt64, at now: Int64) {
        defer { assert(checkInvariants()) }
        for (token, id) in session.inbound.carried where token <= delivery {
            _ = session.inbound.removeCarried(token)
            acknowledgeCarried(id, .success, at: now)
        }
        var taken: [(UInt64, UInt16)] = []
        session.inbound.answerAll(through: delivery) { token, id in taken.append((token, id)) }
        for (token, id) in taken { recordTaken(id, token, isRefused: false) }
        writeAnswers(at: now)
    }

    /// The application took a QoS 2 message: it is not delivered again, which the store has to know before PUBREC.
    private mutating func recordTaken(_ id: UInt16, _ token: UInt64, isRefused: Bool) {
        guard session.answered.insert(id), !isRefused else { return }
        let ticket = store(.received(packetID: id))
        guard ticket != 0 else { return }
        receivedTicket = ticket
        session.inbound.hold(token, until: ticket)
    }

    /// A QoS 2 message of an earlier connection: its PUBREC leaves now if the peer repeated it, or when it does.
    private mutating func acknowledgeCarried(_ id: UInt16, _ reason: MQTTReasonCode, at now: Int64) {
        let token = session.inbound.unacknowledgedToken(of: id)
        if let token {
            _ = session.inbound.answer(token, reason: reason.rawValue)
        } else if reason.isError {
            session.refused[id] = reason.rawValue
        }
        recordTaken(id, token ?? 0, isRefused: reason.isError)
        writeAnswers(at: now)
    }

    /// Writes the acknowledgements that are at the head of the order.
    package mutating func writeAnswers(at now: Int64) {
        guard phase.isOpen else { return }
        while true {
            // Most are PUBACK without a reason.
            let before = output.count
            if session.inbound.writePubacks(into: &output, persistedThrough: persistedTicket) {
                countWritten(output.count - before, packets: (output.count - before) / 4)
                keepAlive.sent(at: now)
            }
            guard let entry = session.inbound.popAnswered(persistedThrough: persistedTicket) else { return }
            let reason = MQTTReasonCode(rawValue: entry.reason)
            writeAcknowledgement(entry.isQoS2 ? .pubrec : .puback, entry.packetID, reason, at: now)
            guard entry.isQoS2 else { continue }
            if reason.isError && version.hasProperties {
                // The peer may use the identifier for a new message [MQTT 5.0 4.3.3-9].
                session.received.remove(entry.packetID)
                session.answered.remove(entry.packetID)
            } else {
                session.awaitingRelease.insert(entry.packetID)
            }
        }
    }

    /// PUBREL arrived: always answered, also for an unknown identifier [MQTT 5.0 4.3.3-11].
    mutating func receivedPubrel(_ id: UInt16, at now: Int64) {
        var reason = MQTTReasonCode.packetIdentifierNotFound
        var ticket = receivedTicket
        // A PUBREL before our PUBREC, which permits it, does not match a message.
        if session.answered.contains(id) && session.inbound.unacknowledgedToken(of: id) == nil {
            session.received.remove(id)
            session.answered.remove(id)
            session.awaitingRelease.remove(id)
            reason = .success
            // Were PUBCOMP to leave before this is stored, a new message under the identifier could be lost.
            ticket = store(.receivedReleased(packetID: id))
            receivedTicket = ticket
        }
        writeOrHold(.pubcomp, id, reason, ticket, at: now)
    }
}
