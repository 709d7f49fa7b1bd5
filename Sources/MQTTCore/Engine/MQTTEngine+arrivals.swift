// Messages that arrive, until they are delivered or dropped.

import Wire

/// The packet that broke the protocol; equal for a repetition of it under another identifier or with DUP.
public struct MQTTRefusedPacket: Sendable {
    /// The type of the packet.
    public var type: MQTTPacketType
    /// The topic of PUBLISH, with what is not UTF-8 replaced; empty for other packets, and for one that is too large and whose
    /// topic has not arrived. Not compared, since the fingerprint covers it.
    public var topic: String
    /// A hash of what it holds beside its packet identifier; of a packet that is too large, its size.
    public var fingerprint: UInt64
    /// Whether ``MQTTEngineConfiguration/dropsInvalidMessages`` would have dropped it instead of ending the connection.
    public var isDroppable = false
    /// The token of the SUBSCRIBE that it answers; nil if it answers none. Not compared.
    public var request: UInt64?
}

extension MQTTRefusedPacket: Hashable {
    public static func == (one: Self, other: Self) -> Bool {
        one.type == other.type && one.fingerprint == other.fingerprint
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combine(type)
        hasher.combine(fingerprint)
    }
}

extension MQTTPacketType {
    /// Whether a packet of this type begins with a packet identifier. PUBLISH has its topic before that.
    fileprivate var beginsWithID: Bool {
        switch self {
        case .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .suback, .unsubscribe, .unsuback: true
        case .connect, .connack, .publish, .pingreq, .pingresp, .disconnect, .auth: false
        }
    }
}

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
            if view.propertiesCount > Int(acceptedControlPacketSize) { throw tooManyProperties(view) }
            scan = try view.scanProperties(in: bytes)
        }
        if isServer && scan.subscriptionIdentifierCount > 0 {
            throw .protocolError("A client sent a subscription identifier.", "MQTT-3.3.4-6")
        }
        let alias = Int(scan.topicAlias)
        if view.topicCount > 0 || alias == 0 { try MQTTTopicName.validate(bytes, view.topicRange) }
        let topic = InboundAliases.Topic(start: view.topicStart, count: view.topicCount)
        guard alias != 0 else { return topic }
        guard alias <= inboundAliases.maximum else {
            throw MQTTProtocolError(
                .topicAliasInvalid, "The topic alias is \(alias); the maximum is \(inboundAliases.maximum).",
                clause: "MQTT-3.3.2-9")
        }
        if view.topicCount > 0 {
            inboundAliases.set(alias, bytes.extracting(view.topicRange))
            return topic
        }
        guard let known = inboundAliases.topic(of: alias, in: &effects.aliasTopics) else {
            throw .protocolError(
                "The topic alias \(alias) has no topic yet.", MQTTProtocolError.clauseOfUnknownAlias)
        }
        return known
    }

    private func tooManyProperties(_ view: MQTTPublishView) -> MQTTProtocolError {
        MQTTProtocolError(
            .packetTooLarge,
            "PUBLISH has \(view.propertiesCount) bytes of properties; the limit is \(acceptedControlPacketSize) bytes. "
                + "Raise maximumControlPacketSize to accept it.",
            clause: "MQTT 5.0 4.13")
    }

    private func checkAgainstOurLimits(_ view: MQTTPublishView) throws(MQTTProtocolError) {
        if view.flags.isRetained && !options.value.retainAvailable {
            throw MQTTProtocolError(
                .retainNotSupported, "A message is retained, which CONNACK did not allow.", clause: "MQTT-3.2.2-14")
        }
        if view.flags.qos > options.value.maximumQoS {
            throw MQTTProtocolError(
                .qosNotSupported,
                "A message has \(view.flags.qos), above the maximum \(options.value.maximumQoS) of CONNACK.",
                clause: "MQTT-3.2.2-11")
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
            throw MQTTProtocolError(
                .receiveMaximumExceeded,
                "More than \(inboundMaximum) messages of QoS 1 and 2 arrived before one was acknowledged.",
                clause: "MQTT-3.3.4-9")
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

}

extension MQTTEngine {
    /// A message was not accepted. With ``MQTTEngineConfiguration/dropsInvalidMessages`` one that is whole, and whose topic is
    /// known to be invalid, or whose properties are, is acknowledged and dropped; everything else ends the connection.
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
        // wrong topic. Where it cannot be found, all are forgotten.
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
    private func isDroppable(_ view: MQTTPublishView, _ bytes: RawSpan, _ violation: MQTTProtocolError) -> Bool {
        guard violation.reasonCode != .packetTooLarge else { return false }
        guard let alias = view.alias(in: bytes) else { return view.topicCount > 0 }
        if alias == 0 { return true }
        return alias <= inboundAliases.maximum
            && (view.topicCount > 0 || inboundAliases.name(of: UInt16(truncatingIfNeeded: alias)) != nil)
    }

    /// What stands at `offset`, where a packet broke the protocol; nil if it is not whole, unless it is too large.
    func refusedPacket(
        _ bytes: RawSpan, at offset: Int, because violation: MQTTProtocolError
    ) -> MQTTRefusedPacket? {
        guard
            let header = try? MQTTFrameHeader.parse(
                bytes, at: offset, maximumPacketSize: MQTTPacket.largestSize, version: version, from: .server)
        else { return nil }
        let limit = header.type == .publish ? Int.max : Int(acceptedControlPacketSize)
        if header.packetCount > min(limit, acceptedPacketSize) { return tooLarge(header, bytes, at: offset) }
        guard bytes.byteCount - offset >= header.packetCount else { return nil }
        let body = header.bodyRange(in: bytes, at: offset)
        guard header.type == .publish, body.count >= 2 else {
            let hasID = body.count >= 2 && header.type.beginsWithID
            let rest = body.lowerBound + (hasID ? 2 : 0)..<body.upperBound
            let id = hasID ? bytes.bigEndian(UInt16.self, at: body.lowerBound) : 0
            return MQTTRefusedPacket(
                type: header.type, topic: "", fingerprint: bytes.extracting(rest).hashed,
                request: header.type == .suback ? subscribeToken(of: id) : nil)
        }
        let topicStart = body.lowerBound + 2
        let topic =
            topicStart..<min(topicStart + Int(bytes.bigEndian(UInt16.self, at: body.lowerBound)), body.upperBound)
        let idCount = header.publishFlags.isAtMostOnce ? 0 : 2
        let rest = min(topic.upperBound + idCount, body.upperBound)..<body.upperBound
        return MQTTRefusedPacket(
            type: .publish, topic: Self.text(bytes, topic),
            fingerprint: bytes.extracting(topic).hashed &* 31 ^ bytes.extracting(rest).hashed,
            isDroppable: isDroppable(header, bytes, at: offset, violation))
    }

    /// A packet that is known by its size alone, because how much of it has arrived differs from connection to connection.
    private func tooLarge(_ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int) -> MQTTRefusedPacket {
        var packet = MQTTRefusedPacket(type: header.type, topic: "", fingerprint: UInt64(header.packetCount))
        let start = offset + header.headerCount + 2
        guard header.bodyCount >= 2, start <= bytes.byteCount else { return packet }
        // The length of the topic, or the packet identifier.
        let number = bytes.bigEndian(UInt16.self, at: start - 2)
        let end = start + Int(number)
        if header.type == .publish, end <= bytes.byteCount { packet.topic = Self.text(bytes, start..<end) }
        if header.type == .suback { packet.request = subscribeToken(of: number) }
        return packet
    }

    private func isDroppable(
        _ header: MQTTFrameHeader, _ bytes: RawSpan, at offset: Int, _ violation: MQTTProtocolError
    ) -> Bool {
        // What breaks off inside its fields is not a message that could be dropped.
        guard let view = try? MQTTPublishView.parse(header, in: bytes, at: offset, version: version),
            violation.reasonCode != .receiveMaximumExceeded
        else { return false }
        return isDroppable(view, bytes, violation)
    }

    private static func text(_ bytes: RawSpan, _ range: Range<Int>) -> String {
        // Safe: the buffer is used inside the closure only.
        unsafe bytes.extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}
