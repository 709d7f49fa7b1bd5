// Messages that arrive, and our acknowledgements of them.

extension MQTTEngine {
    /// PUBLISH arrived, whole.
    @inline(__always)
    mutating func receivedPublish(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int, _ now: Int64, _ effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        if phase != .connected {
            try requireAccepted(.publish)
            // Not acknowledged either: a server that keeps the session sends QoS 1 and 2 again on the next connection.
            if phase == .leaving { return }
        }
        let view = try MQTTPublishView.parse(header, in: bytes, at: offset, version: version)
        let index: Int
        do throws(MQTTProtocolError) {
            if view.propertiesCount == 0 && view.topicCount > 0 {
                index = try topics.index(of: bytes.extracting(view.topicRange))
            } else {
                index = try resolveTopic(view, bytes)
            }
        } catch {
            return try drop(view, bytes, because: error, at: now, into: &effects)
        }
        if isServer { try checkAgainstOurLimits(view) }
        var delivery: UInt64 = 0
        if view.flags & 0b0110 != 0 {
            guard let token = try recordArrival(view, at: now) else { return }
            delivery = token
        }
        effects.messages.append(
            MQTTMessageRecord(
                delivery: delivery, topic: UInt32(truncatingIfNeeded: index),
                propertiesStart: UInt32(truncatingIfNeeded: view.propertiesStart),
                payloadStart: UInt32(truncatingIfNeeded: view.payloadStart),
                payloadCount: UInt32(truncatingIfNeeded: view.payloadCount), packetID: view.packetID,
                flags: view.flags))
    }

    /// The topic of a message with properties, which may hold an alias.
    private mutating func resolveTopic(_ view: MQTTPublishView, _ bytes: RawSpan) throws(MQTTProtocolError) -> Int {
        var scan = MQTTPublishScan()
        if view.propertiesCount > 0 {
            if view.propertiesCount > Int(acceptedControlPacketSize) { throw tooManyProperties(view) }
            scan = try view.scanProperties(in: bytes)
        }
        if isServer && scan.subscriptionIdentifierCount > 0 {
            throw .protocolError("a client sent a subscription identifier", "MQTT-3.3.4-6")
        }
        let alias = Int(scan.topicAlias)
        guard alias != 0 else { return try topics.index(of: bytes.extracting(view.topicRange)) }
        guard alias <= inboundAliases.maximum else {
            throw MQTTProtocolError(
                .topicAliasInvalid, "topic alias \(alias), above the maximum of \(inboundAliases.maximum)",
                clause: "MQTT-3.3.2-9")
        }
        if view.topicCount > 0 {
            let index = try topics.index(of: bytes.extracting(view.topicRange))
            inboundAliases.set(alias, index: index, in: topics)
            return index
        }
        guard let index = try inboundAliases.index(of: alias, in: &topics) else {
            throw .protocolError("topic alias \(alias) was never given a topic", "MQTT 5.0 3.3.2.3.4")
        }
        return index
    }

    private func tooManyProperties(_ view: MQTTPublishView) -> MQTTProtocolError {
        MQTTProtocolError(
            .packetTooLarge,
            "PUBLISH with \(view.propertiesCount) bytes of properties, above the limit of \(acceptedControlPacketSize) "
                + "bytes; raise maximumControlPacketSize to accept it",
            clause: "MQTT 5.0 4.13")
    }

    private func checkAgainstOurLimits(_ view: MQTTPublishView) throws(MQTTProtocolError) {
        if view.flags & 1 != 0 && !configuration.retainAvailable {
            throw MQTTProtocolError(
                .retainNotSupported, "a retained message, which CONNACK ruled out", clause: "MQTT-3.2.2-14")
        }
        if view.flags >> 1 & 0b11 > configuration.maximumQoS.rawValue {
            throw MQTTProtocolError(
                .qosNotSupported, "QoS \(view.flags >> 1 & 0b11), above \(configuration.maximumQoS)",
                clause: "MQTT-3.2.2-11")
        }
    }

    /// Records a message of QoS 1 or 2 and returns its token, or nil if it was delivered before.
    mutating func recordArrival(_ view: MQTTPublishView, at now: Int64) throws(MQTTProtocolError) -> UInt64? {
        let id = view.packetID
        let isQoS2 = view.flags & 0b0100 != 0
        let isKnown = isQoS2 && session.received.contains(id)
        let granted = version.hasProperties ? Int(grantedReceiveMaximum) : 65_535
        if !isKnown && session.inbound.count + session.awaitingRelease.count >= granted {
            throw MQTTProtocolError(
                .receiveMaximumExceeded,
                "more than \(granted) messages of QoS 1 and 2 before one was acknowledged", clause: "MQTT-3.3.4-9")
        }
        var entry = InboundOrder.Entry(
            packetID: id, isQoS2: isQoS2, isRepeat: false, isAnswered: false, reason: 0, ticket: 0)
        guard isKnown else {
            if isQoS2 { session.received.insert(id) }
            return session.inbound.append(entry)
        }
        // A QoS 2 message is delivered once until PUBREL [MQTT 5.0 4.3.3-10]. Its PUBREC is due again, unless the
        // application has not given the first one yet.
        if session.inbound.unansweredToken(of: id) != nil { return nil }
        entry.isRepeat = true
        entry.isAnswered = session.answered.contains(id)
        if let reason = session.refused.removeValue(forKey: id) { entry.reason = reason }
        guard session.inbound.count < 65_535 else { return nil }
        _ = session.inbound.append(entry)
        writeAnswers(at: now)
        return nil
    }

    // MARK: Acknowledging

    /// Acknowledges one received message of QoS 1 or 2.
    ///
    /// PUBACK and PUBREC are written in the order of arrival, so that an answer given early waits for those before it
    /// [MQTT 5.0 4.6.0-2]. A token of an earlier connection does no harm.
    /// - Parameter reason: a code of PUBACK or PUBREC; only 5.0 says it to the peer.
    public mutating func acknowledge(_ delivery: UInt64, reason: MQTTReasonCode = .success, at now: Int64) {
        if let entry = session.inbound.answer(delivery, reason: reason.rawValue) {
            if entry.isQoS2 { recordTaken(entry.packetID, delivery, isRefused: reason.isError) }
            writeAnswers(at: now)
        } else if let id = session.inbound.removeCarried(delivery) {
            acknowledgeCarried(id, reason, at: now)
        }
    }

    /// Acknowledges every message up to and including a token with success.
    public mutating func acknowledgeAll(through delivery: UInt64, at now: Int64) {
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
        if ticket != 0 { session.inbound.hold(token, until: ticket) }
    }

    /// A QoS 2 message of an earlier connection: its PUBREC leaves now if the peer repeated it, or when it does.
    private mutating func acknowledgeCarried(_ id: UInt16, _ reason: MQTTReasonCode, at now: Int64) {
        let token = session.inbound.unansweredToken(of: id)
        if let token {
            _ = session.inbound.answer(token, reason: reason.rawValue)
        } else if reason.isError {
            session.refused[id] = reason.rawValue
        }
        recordTaken(id, token ?? 0, isRefused: reason.isError)
        writeAnswers(at: now)
    }

    /// Writes the acknowledgements that are at the head of the order.
    mutating func writeAnswers(at now: Int64) {
        guard phase == .connected || phase == .leaving else { return }
        while let entry = session.inbound.popAnswered(persistedThrough: persistedTicket) {
            let reason = MQTTReasonCode(rawValue: entry.reason)
            MQTTPacket.Acknowledgement.encode(
                entry.isQoS2 ? .pubrec : .puback, packetID: entry.packetID, reasonCode: reason, into: &output,
                version: version)
            keepAlive.sent(at: now)
            guard entry.isQoS2 else { continue }
            if reason.isError && version.hasProperties {
                // The identifier is new again [MQTT 5.0 4.3.3-9].
                session.received.remove(entry.packetID)
                session.answered.remove(entry.packetID)
            } else {
                session.awaitingRelease.insert(entry.packetID)
            }
        }
    }

    /// PUBREL arrived: always answered, also for an identifier that nobody knows [MQTT 5.0 4.3.3-11].
    mutating func receivedPubrel(_ id: UInt16, at now: Int64) {
        var reason = MQTTReasonCode.packetIdentifierNotFound
        var ticket: UInt64 = 0
        // Without our PUBREC, which tells the peer that it may release, this is about nothing that we know.
        if session.answered.contains(id) && session.inbound.unansweredToken(of: id) == nil {
            session.received.remove(id)
            session.answered.remove(id)
            session.awaitingRelease.remove(id)
            reason = .success
            // Were PUBCOMP to leave before this is stored, a new message under the identifier could be lost.
            ticket = store(.receivedReleased(packetID: id))
        }
        writeOrHold(.pubcomp, id, reason, ticket, at: now)
    }
}
