// Messages that arrive, until they are delivered or dropped.

import MessagingWire

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
        let topic: InboundAliases.Topic
        do throws(MQTTProtocolError) {
            topic = try resolveTopic(view, bytes, &effects)
        } catch {
            return try drop(view, bytes, because: error, at: now, into: &effects)
        }
        if isServer { try checkAgainstOurLimits(view) }
        var delivery: UInt64 = 0
        if !view.flags.isAtMostOnce {
            guard let token = try recordArrival(view, at: now) else { return }
            delivery = token
        }
        effects.messages.append(
            MQTTMessageRecord(
                delivery: delivery, topicStart: UInt32(truncatingIfNeeded: topic.start),
                topicCount: UInt16(truncatingIfNeeded: topic.count),
                propertiesStart: UInt32(truncatingIfNeeded: view.propertiesStart),
                payloadStart: UInt32(truncatingIfNeeded: view.payloadStart),
                payloadCount: UInt32(truncatingIfNeeded: view.payloadCount), packetID: view.packetID,
                flags: view.flags, topicForm: topic.isAliased ? .alias : .name))
        effects.topicChanges += 1
        if delivery != 0 {
            effects.add(delivery..<delivery + 1)
            checkReceiveMaximum(&effects)
        }
        effects.messageBytes += header.packetCount
    }

    /// Checks the properties of a message, and where its topic is: an alias may stand for it.
    private mutating func resolveTopic(
        _ view: MQTTPublishView, _ bytes: RawSpan, _ effects: inout MQTTEffects
    ) throws(MQTTProtocolError) -> InboundAliases.Topic {
        var scan = MQTTPublishScan()
        if view.propertiesCount == 0 {
            try view.requireTopic(version)
        } else {
            if view.propertiesCount > Int(acceptedControlPacketSize) {
                throw .tooManyPropertyBytes(
                    view.propertiesCount, limit: acceptedControlPacketSize, clause: "MQTT 5.0 4.13")
            }
            scan = try view.scanProperties(in: bytes)
        }
        if isServer && scan.subscriptionIdentifierCount > 0 {
            throw .subscriptionIdentifierFromClient(clause: "MQTT-3.3.4-6")
        }
        let alias = Int(scan.topicAlias)
        if view.topicCount > 0 || alias == 0 { try MQTTTopicName.validate(bytes, view.topicRange) }
        let topic = InboundAliases.Topic(start: view.topicStart, count: view.topicCount)
        guard alias != 0 else { return topic }
        guard alias <= inboundAliases.maximum else {
            throw .topicAliasTooLarge(alias, maximum: inboundAliases.maximum, clause: "MQTT-3.3.2-9")
        }
        if view.topicCount > 0 {
            inboundAliases.set(alias, bytes.extracting(view.topicRange))
            return topic
        }
        guard let known = inboundAliases.topic(of: alias, in: &effects.aliasTopics) else {
            throw .topicAliasWithoutTopic(alias, clause: MQTTProtocolError.clauseOfUnknownAlias)
        }
        return known
    }

    private func checkAgainstOurLimits(_ view: MQTTPublishView) throws(MQTTProtocolError) {
        if view.flags.isRetained && !options.value.retainAvailable {
            throw .retainIsNotAvailable(clause: "MQTT-3.2.2-14")
        }
        if view.flags.qos > options.value.maximumQoS {
            throw .qosAboveMaximum(view.flags.qos, maximum: options.value.maximumQoS, clause: "MQTT-3.2.2-11")
        }
    }

    /// How many messages of QoS 1 and 2 may be unacknowledged on this connection. A server has to treat more than its
    /// Receive Maximum as an error [MQTT-3.3.4-9, MQTT-4.13.1-1]. A client accepts as many as packet identifiers can name,
    /// because servers exceed it after a resumed session and under load, and would do so on each connection again.
    private var inboundMaximum: Int {
        version.hasProperties && (isServer || options.value.enforcesReceiveMaximum)
            ? Int(grantedReceiveMaximum) : 65_535
    }

    /// How many there are.
    private var inboundCount: Int { session.inbound.count + session.awaitingRelease.count }

    /// How many more there may be.
    var inboundRoom: Int { inboundMaximum - inboundCount }

    /// Whether the server may send no more messages of QoS 1 and 2 before some are acknowledged. Before 5.0 it is not known.
    package var isReceiveMaximumReached: Bool { inboundCount >= Int(grantedReceiveMaximum) && version.hasProperties }

    /// Whether a message that is not acknowledged keeps the acknowledgements of later ones back, or may keep the server from
    /// sending: before 5.0 nobody knows how many it sends.
    package var holdsOthersUp: Bool {
        !version.hasProperties || isReceiveMaximumReached || session.inbound.holdsAnswered
    }

    /// Whether at most half of them are not acknowledged.
    package var hasHalfOfReceiveMaximum: Bool { inboundCount <= Int(grantedReceiveMaximum) / 2 }

    /// Messages of QoS 1 or 2 have arrived: reports the first time on a connection that they are more than Receive Maximum
    /// allows.
    @inline(__always)
    mutating func checkReceiveMaximum(_ effects: inout MQTTEffects) {
        if inboundCount > Int(grantedReceiveMaximum) { reportExcess(&effects) }
    }

    @inline(never)
    private mutating func reportExcess(_ effects: inout MQTTEffects) {
        guard version.hasProperties, !knowsReceiveMaximumIsExceeded else { return }
        knowsReceiveMaximumIsExceeded = true
        effects.report(.receiveMaximumExceeded(grantedReceiveMaximum))
    }

    /// Records a message of QoS 1 or 2 and returns its token, or nil if it was delivered before.
    mutating func recordArrival(_ view: MQTTPublishView, at now: Int64) throws(MQTTProtocolError) -> UInt64? {
        let id = view.packetID
        let isQoS2 = view.flags.isExactlyOnce
        var isKnown = isQoS2 && session.received.contains(id)
        if isKnown, session.doubt == .mayBeAnother, !view.flags.isDuplicate, session.cameEarlier(id) {
            // The session is another: its own repetitions would have DUP set [MQTT-3.3.1-1].
            for id in session.forgetEarlierReceived() { receivedTicket = store(.receivedReleased(packetID: id)) }
            session.doubt = .none
            isKnown = false
        }
        if !isKnown && inboundRoom <= 0 {
            throw .receiveMaximumExceeded(inboundMaximum, clause: "MQTT-3.3.4-9")
        }
        var entry = InboundOrder.Entry(packetID: id, isQoS2: isQoS2)
        guard isKnown else {
            if isQoS2 { session.received.insert(id) }
            return session.inbound.append(entry)
        }
        // A QoS 2 message is delivered once until PUBREL [MQTT 5.0 4.3.3-10]. Its PUBREC is due again, unless the
        // application has not given the first one yet.
        if session.inbound.unacknowledgedToken(of: id) != nil { return nil }
        entry.isRepeat = true
        entry.isAnswered = session.answered.contains(id)
        entry.ticket = receivedTicket
        if let reason = session.refused.removeValue(forKey: id) { entry.reason = reason }
        guard session.inbound.count < 65_535 else { return nil }
        _ = session.inbound.append(entry)
        writeAnswers(at: now)
        return nil
    }

    /// A message was not accepted. With ``MQTTEngineConfiguration/dropsInvalidMessages`` a message that is whole, and
    /// whose topic or properties are known to be invalid, is acknowledged and dropped; any other violation ends the
    /// connection.
    @inline(never)
    mutating func drop(
        _ view: MQTTPublishView, _ bytes: RawSpan, because violation: MQTTProtocolError, at now: Int64,
        into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard options.value.dropsInvalidMessages, !isServer, isDroppable(view, bytes, violation) else {
            throw violation
        }
        var hasTopic = (try? MQTTTopicName.validate(bytes, view.topicRange)) != nil
        var topic = Self.text(bytes, view.topicRange)
        // An alias that the message sets stands for its topic from now on: with the one before, later messages would have a
        // wrong topic. If the alias cannot be found, all aliases are forgotten.
        switch view.alias(in: bytes) {
        case nil: inboundAliases.reset(maximum: UInt16(truncatingIfNeeded: inboundAliases.maximum))
        case 0?: break
        case let alias? where view.topicCount == 0:
            topic = inboundAliases.name(of: UInt16(truncatingIfNeeded: alias)) ?? ""
            hasTopic = !topic.isEmpty
        case let alias? where hasTopic: inboundAliases.set(alias, bytes.extracting(view.topicRange))
        case let alias?: inboundAliases.remove(alias)
        }
        if !view.flags.isAtMostOnce {
            guard let delivery = try recordArrival(view, at: now) else { return }
            let reason = hasTopic ? MQTTReasonCode.unspecifiedError : .topicNameInvalid
            acknowledge(delivery, reason: version.hasProperties ? reason : .success, at: now)
        }
        effects.report(.invalidMessageDropped(topic: topic, violation))
    }

    /// Whether a message that breaks the protocol so can be dropped without harm to those that follow: not for its size, which
    /// an option allows, and not for its topic alias, on which the two ends no longer agree.
    func isDroppable(_ view: MQTTPublishView, _ bytes: RawSpan, _ violation: MQTTProtocolError) -> Bool {
        guard violation.reasonCode != .packetTooLarge else { return false }
        guard let alias = view.alias(in: bytes) else { return view.topicCount > 0 }
        if alias == 0 { return true }
        return alias <= inboundAliases.maximum
            && (view.topicCount > 0 || inboundAliases.name(of: UInt16(truncatingIfNeeded: alias)) != nil)
    }

    /// Text for people, with what is not UTF-8 replaced.
    static func text(_ bytes: RawSpan, _ range: Range<Int>) -> String {
        // Safe: the buffer is used inside the closure only.
        unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
