// Messages that leave.

extension MQTTEngine {
    /// Publishes a message: at once if it may be, otherwise when a connection or the peer's window has room.
    ///
    /// Order is kept among messages of the same QoS; a QoS 0 message may overtake queued ones of QoS 1 and 2. While the
    /// first subscriptions of a connection are not answered, messages of every QoS wait in the queue.
    /// The topic, payload and properties of QoS 1 and 2 are kept by reference until the acknowledgement. A topic alias
    /// is chosen by the engine. To peers that know no properties a server sends none.
    ///
    /// - Parameter token: given back in ``MQTTPublishCompletion``.
    /// - Throws: before anything is written: ``MQTTUsageError/Code/notConnected`` (QoS 0 without a connection),
    ///   ``MQTTUsageError/Code/invalidTopic``, ``MQTTUsageError/Code/packetTooLarge``, ``MQTTUsageError/Code/qosNotSupported``,
    ///   ``MQTTUsageError/Code/retainNotAvailable``, ``MQTTUsageError/Code/queueFull``, ``MQTTUsageError/Code/propertyNotAllowed``,
    ///   ``MQTTUsageError/Code/notInThisVersion``, ``MQTTUsageError/Code/noPacketIdentifier``.
    public mutating func publish(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = [], token: UInt64 = 0, at now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        if !properties.isEmpty { try check(properties) }
        guard messagesMayLeave else {
            return try queueForLater(topic, payload, qos, retain, properties, token, now)
        }
        try checkLimits(qos, retain)
        if qos == .atMostOnce {
            try encodePublish(topic, payload, retain ? 1 : 0, 0, properties)
            keepAlive.sent(at: now)
            return .written
        }
        let flags = qos.rawValue << 1 | (retain ? 1 : 0)
        guard !configuration.persists, session.window.used < windowLimit, session.window.queue.count == 0,
            session.window.resend < 0
        else {
            return try enqueue(topic, payload, flags, properties, token, now)
        }
        guard let id = session.window.reserveID() else {
            throw MQTTUsageError(
                .noPacketIdentifier, "all 65,535 packet identifiers are in use: wait for acknowledgements")
        }
        do throws(MQTTUsageError) {
            try encodePublish(topic, payload, flags, id, properties)
        } catch {
            session.window.releaseID(id)
            throw error
        }
        session.window.recordSent(
            id, topic: topic, payload: payload, flags: flags, properties: properties, token: token, at: now)
        keepAlive.sent(at: now)
        return .written
    }

    /// How many messages may be unacknowledged: what the peer and we ourselves allow [MQTT 5.0 4.9.0-1].
    public var windowLimit: Int { Int(min(limits.receiveMaximum, max(1, configuration.maximumInFlight))) }

    // MARK: Checks

    @inline(__always)
    private func checkLimits(_ qos: QoS, _ retain: Bool) throws(MQTTUsageError) {
        if qos > limits.maximumQoS {
            throw MQTTUsageError(
                .qosNotSupported, "\(qos) is above the peer's maximum, \(limits.maximumQoS): publish with that or less")
        }
        if retain && !limits.retainAvailable {
            throw MQTTUsageError(.retainNotAvailable, "the peer keeps no retained messages: publish with retain off")
        }
    }

    private func check(_ properties: MQTTProperties) throws(MQTTUsageError) {
        if !isServer && !version.hasProperties {
            throw MQTTUsageError(
                .notInThisVersion, "MQTT \(version) has no properties: leave them out, or connect with 5.0")
        }
        for property in properties.list {
            if property.identifier == .topicAlias {
                throw MQTTUsageError(
                    .propertyNotAllowed,
                    "topic aliases are given by the engine: leave it out and set outboundTopicAliasMaximum")
            }
            if property.identifier == .subscriptionIdentifier && !isServer {
                throw MQTTUsageError(
                    .propertyNotAllowed, "a client sends no subscription identifier in PUBLISH [MQTT-3.3.4-6]")
            }
        }
    }

    /// Checks what cannot wait until the message is written: it may be a long time until then.
    private func checkWhole(
        _ topic: String, _ payload: [UInt8], _ qos: UInt8, _ properties: MQTTProperties
    ) throws(MQTTUsageError) {
        let size: Int
        do throws(MQTTEncodingError) {
            // Without a connection the version is not settled: 5.0 has the largest packets.
            size = try MQTTPacket.Publish.encodedCount(
                version: phase == .connected ? version : .v5_0, topic: topic, payloadCount: payload.count,
                hasPacketID: qos != 0, properties: properties)
        } catch {
            throw MQTTUsageError(error)
        }
        let limit = min(phase == .connected ? Int(limits.maximumPacketSize) : .max, MQTTFrameHeader.largestPacket)
        if size > limit {
            throw MQTTUsageError(
                .packetTooLarge, "a PUBLISH of \(size) bytes, above the maximum packet size of \(limit): split it")
        }
    }

    // MARK: Queueing

    /// There is no connection, or its subscriptions come first.
    private mutating func queueForLater(
        _ topic: String, _ payload: [UInt8], _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties,
        _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        if phase == .connected {
            try checkLimits(qos, retain)
        } else if qos == .atMostOnce && !configuration.queuesQoS0WhileDisconnected {
            throw MQTTUsageError(
                .notConnected, "a QoS 0 message needs an accepted connection, and there is none")
        }
        return try enqueue(topic, payload, qos.rawValue << 1 | (retain ? 1 : 0), properties, token, now)
    }

    private mutating func enqueue(
        _ topic: String, _ payload: [UInt8], _ flags: UInt8, _ properties: MQTTProperties, _ token: UInt64,
        _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        try checkWhole(topic, payload, flags >> 1 & 0b11, properties)
        let size = topic.utf8.count + payload.count
        if session.window.queue.count >= configuration.maximumQueuedMessages {
            owesRoom = true
            throw MQTTUsageError(
                .queueFull,
                "the queue holds \(session.window.queue.count) messages, its limit: wait for room or drop the oldest")
        }
        if session.window.queuedBytes + size > configuration.maximumQueuedBytes {
            owesRoom = true
            throw MQTTUsageError(
                .queueFull,
                "\(size) bytes more than the \(session.window.queuedBytes) in the queue exceed its limit of "
                    + "\(configuration.maximumQueuedBytes): wait for room or drop the oldest")
        }
        let index = session.window.enqueue(
            topic: topic, payload: payload, flags: flags, properties: properties, token: token, ticket: 0, at: now)
        if configuration.persists && flags & 0b0110 != 0 {
            // The identifier goes into the same record: one wait for the store, not two. A long queue leaves identifiers
            // to those that subscribe.
            if session.window.identifiedCount < 32_768, session.window.firstUnidentified() == index {
                _ = session.window.identifyFirst()
            }
            let slot = session.window.slots[Int(index)]
            let record = slot.record(wallClockOffset: configuration.wallClockOffset)
            session.window.hold(index, until: store(record))
        }
        return .queued
    }

    /// Takes the oldest message that was never sent out of the queue and returns its token; nil if there is none. For
    /// callers whose policy is to drop the oldest when the queue is full.
    public mutating func dropOldestQueued() -> UInt64? {
        let index = session.window.queue.first
        guard index >= 0 else { return nil }
        let slot = session.window.slots[Int(index)]
        store(.finished(sequence: slot.sequence))
        session.window.dropQueued(index)
        return slot.token
    }

    /// The tokens of the messages in the queue, in their order.
    public var queuedTokens: [UInt64] {
        session.window.queue.indices(session.window.slots).map { session.window.slots[Int($0)].token }
    }

    /// Takes messages whose token meets the condition out of the queue; they end without a completion. For callers that
    /// have told their publishers of a failure. Messages in flight belong to the session.
    public mutating func dropQueued(where isDropped: (UInt64) -> Bool, into effects: inout MQTTEffects) {
        for index in session.window.queue.indices(session.window.slots) {
            guard isDropped(session.window.slots[Int(index)].token) else { continue }
            let sequence = session.window.slots[Int(index)].sequence
            store(.finished(sequence: sequence))
            session.window.dropQueued(index)
        }
        reportRoom(&effects)
    }

    // MARK: Writing

    /// Appends PUBLISH, with a topic alias if the peer takes them.
    mutating func encodePublish(
        _ topic: String, _ payload: [UInt8], _ flags: UInt8, _ id: UInt16, _ properties: MQTTProperties
    ) throws(MQTTUsageError) {
        do throws(MQTTEncodingError) {
            if outboundAliases.maximum > 0 {
                try encodeWithAlias(topic, payload, flags, id, properties)
            } else {
                try encode(topic, payload, flags, id, properties, alias: 0)
            }
        } catch {
            throw MQTTUsageError(error)
        }
    }

    private mutating func encodeWithAlias(
        _ topic: String, _ payload: [UInt8], _ flags: UInt8, _ id: UInt16, _ properties: MQTTProperties
    ) throws(MQTTEncodingError) {
        let bytes = Array(topic.utf8)
        // The bytes of an array of bytes: nothing to reinterpret.
        let choice = unsafe outboundAliases.choose(bytes.span.bytes)
        if choice.isKnown { return try encode("", payload, flags, id, properties, alias: choice.alias) }
        do throws(MQTTEncodingError) {
            try encode(topic, payload, flags, id, properties, alias: choice.alias)
        } catch {
            outboundAliases.withdrawLast()
            guard error.code == .packetTooLarge else { throw error }
            // The three bytes of the alias may be the ones too many.
            try encode(topic, payload, flags, id, properties, alias: 0)
        }
    }

    private mutating func encode(
        _ topic: String, _ payload: [UInt8], _ flags: UInt8, _ id: UInt16, _ properties: MQTTProperties, alias: UInt16
    ) throws(MQTTEncodingError) {
        // The bytes of an array of bytes: nothing to reinterpret.
        try unsafe MQTTPacket.Publish.encode(
            into: &output, version: version, topic: topic, payload: payload.span.bytes,
            qos: QoS(rawValue: flags >> 1 & 0b11) ?? .atMostOnce, retain: flags & 1 != 0, isDuplicate: flags & 8 != 0,
            packetID: id, properties: version.hasProperties ? properties : [], topicAlias: alias,
            maximumPacketSize: min(Int(limits.maximumPacketSize), MQTTFrameHeader.largestPacket))
    }
}
