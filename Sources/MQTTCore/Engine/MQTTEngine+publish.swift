// Publishing: a message is checked and written at once, or put into the queue; the window or a new connection takes it
// from there. Each message, alone or of an array, goes through `publish`.

import MessagingWire

extension MQTTEngine {
    /// Publishes a message: at once if it may be, otherwise when a connection or the peer's window has room.
    ///
    /// Order is kept among messages of the same QoS, unless they pass what ends connections; a QoS 0 message may overtake
    /// queued messages of QoS 1 and 2, unless it waits in the queue behind another QoS 0 message. While the first subscriptions of a connection are not
    /// answered, messages of every QoS wait in the queue. The topic, payload and properties of QoS 1 and 2 are kept by
    /// reference until the acknowledgement. A topic alias is chosen by the engine. To peers that know no properties a
    /// server sends none.
    ///
    /// - Parameter token: the token in the message's ``MQTTPublishCompletion``.
    /// - Throws: before anything is written: ``MQTTUsageError/Code/notConnected`` (QoS 0 without a connection),
    ///   ``MQTTUsageError/Code/invalidTopic``, ``MQTTUsageError/Code/packetTooLarge``, ``MQTTUsageError/Code/qosNotSupported``,
    ///   ``MQTTUsageError/Code/retainNotAvailable``, ``MQTTUsageError/Code/queueFull``, ``MQTTUsageError/Code/largerThanQueue``, ``MQTTUsageError/Code/propertyNotAllowed``,
    ///   ``MQTTUsageError/Code/notInThisVersion``, ``MQTTUsageError/Code/noPacketIdentifier``.
    public mutating func publish(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = [], token: UInt64 = 0, at now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        defer { assert(checkInvariants()) }
        if !properties.isEmpty { try check(properties) }
        let head = PublishHead(topic: topic, flags: MQTTPublishFlags(qos, retain: retain))
        if messagesMayLeave { return try publishNow(head, payload, properties, token, now) }
        guard phase == .connected, !messagesWait else {
            return try queueForLater(head, payload, properties, token, now)
        }
        let turn = turnToPublish(head)
        // The pace has its deadline before the queue may refuse the message, whose publisher then waits for room.
        guard turn != .later, paceAllows(at: now) else {
            let outcome = try queueForLater(head, payload, properties, token, now)
            // It may be the only one that waits.
            if isCareful, !quarantine.isWaiting { paceDeadline = min(paceDeadline, now) }
            return outcome
        }
        let outcome = try publishNow(head, payload, properties, token, now)
        if turn == .alone, outcome == .written { sentAlone(head, at: now) }
        return outcome
    }

    /// Whether a message of QoS 0 leaves at once; otherwise it waits in the queue.
    package var sendsQoS0AtOnce: Bool { messagesMayLeave && session.window.queuedAtMostOnceCount == 0 }

    /// Writes a message, or puts it into the queue if it has to wait for the window or the store.
    @inline(__always)
    mutating func publishNow(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        var head = head
        try checkLimits(head.flags)
        if head.flags.isAtMostOnce {
            guard session.window.queuedAtMostOnceCount == 0 else {
                return try enqueue(head, payload, properties, token, now)
            }
            try encodePublish(head, payload, properties, at: now)
            keepAlive.sent(at: now)
            return .written
        }
        guard !options.value.persists, session.window.used < windowLimit, session.window.pending < 0,
            session.window.resend < 0
        else {
            return try enqueue(head, payload, properties, token, now)
        }
        guard let id = session.window.reserveID() else { throw .noPacketIdentifierIsFree }
        head.packetID = id
        do throws(MQTTUsageError) {
            try encodePublish(head, payload, properties, at: now)
        } catch {
            session.window.releaseID(id)
            throw error
        }
        // The calls below that take `now` only record it; none of them fails.
        if session.window.used == 0 { acknowledgementWait.restart(at: listening.time(at: now)) }
        session.window.recordSent(head, payload, properties, token: token, at: now)
        keepAlive.sent(at: now)
        return .written
    }

    /// How many messages may be unacknowledged: what the peer and we ourselves allow [MQTT 5.0 4.9.0-1], but for some packet
    /// identifiers that stay free for SUBSCRIBE and UNSUBSCRIBE.
    package var windowLimit: Int {
        Int(min(limits.receiveMaximum, min(max(1, options.value.maximumInFlight), 65_535 - 128)))
    }

    // MARK: Checks

    @inline(__always)
    private func checkLimits(_ flags: MQTTPublishFlags) throws(MQTTUsageError) {
        if flags.qos > limits.maximumQoS {
            throw .qosAboveMaximum(flags.qos, maximum: limits.maximumQoS)
        }
        if flags.isRetained && !limits.retainAvailable {
            throw .retainIsNotAvailable()
        }
    }

    private func check(_ properties: MQTTProperties) throws(MQTTUsageError) {
        // Before 5.0 the expiry counts while the message waits here, and is not sent.
        if !isServer && !version.hasProperties && !properties.isExpiryAlone {
            throw .propertiesAreNotInThisVersion(version)
        }
        if properties.contains(.topicAlias) {
            throw .topicAliasIsAssigned
        }
        if !isServer && properties.contains(.subscriptionIdentifier) {
            throw .subscriptionIdentifierFromClient
        }
    }

    /// Checks what cannot wait until the message is written, which may be much later.
    private func checkAll(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties
    ) throws(MQTTUsageError) {
        let size: Int
        do throws(MQTTEncodingError) {
            // Without a connection the version is not known yet: 5.0 has the largest packets.
            size = try MQTTPacket.Publish.encodedCount(
                head, properties, payloadCount: payload.count, version: phase == .connected ? version : .v5_0)
        } catch {
            throw MQTTUsageError(error)
        }
        let limit = phase == .connected ? acceptedByPeer : MQTTPacket.largestSize
        if size > limit {
            throw MQTTUsageError(.packetTooLarge(.publish, size, limit))
        }
    }

    /// The largest packet that the peer accepts, in bytes.
    var acceptedByPeer: Int { min(Int(clamping: limits.maximumPacketSize), MQTTPacket.largestSize) }

    // MARK: Queueing

    /// There is no connection, or its subscriptions come first.
    mutating func queueForLater(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        if phase == .connected {
            try checkLimits(head.flags)
        } else if head.flags.isAtMostOnce && !options.value.queuesQoS0WhileDisconnected {
            throw .qos0NeedsConnection
        }
        return try enqueue(head, payload, properties, token, now)
    }

    private mutating func enqueue(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, _ token: UInt64, _ now: Int64
    ) throws(MQTTUsageError) -> MQTTPublishOutcome {
        try checkAll(head, payload, properties)
        try checkRoom(for: OutboundSlot.queuedBytes(head, payload, properties))
        let index = session.window.enqueue(head, payload, properties, token: token, at: now)
        if !properties.isEmpty { expectExpiry(session.window.slots[Int(index)].expiry) }
        if options.value.persists && !head.flags.isAtMostOnce {
            // The identifier is part of the same record: one wait for the store, not two. Identifiers are not given to
            // a long queue, so that some are left for SUBSCRIBE, nor without a connection: the next process takes a message
            // that has one for sent, and must not give it up when it has expired [MQTT-4.4.0-1].
            if phase == .connected, session.window.identifiedCount < 32_768,
                session.window.firstUnidentified() == index
            {
                _ = session.window.identify(index)
            }
            let slot = session.window.slots[Int(index)]
            let record = slot.record(wallClockOffset: options.value.wallClockOffset)
            session.window.hold(index, until: store(record))
        }
        return .queued
    }

    private mutating func checkRoom(for size: Int) throws(MQTTUsageError) {
        // No room that others leave would ever be enough.
        if size > options.value.maximumQueuedBytes {
            throw .largerThanQueue(size, maximum: options.value.maximumQueuedBytes)
        }
        if session.window.queue.count >= options.value.maximumQueuedMessages {
            owesRoom = true
            throw .queueIsFull(messages: session.window.queue.count)
        }
        if session.window.queuedBytes + size > options.value.maximumQueuedBytes {
            owesRoom = true
            throw .queueIsFull(
                bytes: session.window.queuedBytes, adding: size, maximum: options.value.maximumQueuedBytes)
        }
    }

    /// Takes the oldest message that was never sent out of the queue and returns its token; nil if there is no such message. For
    /// callers whose policy is to drop the oldest when the queue is full.
    ///
    /// - Parameter topic: the topic of the message; nil for any.
    public mutating func dropOldestQueued(to topic: String? = nil) -> UInt64? {
        defer { assert(checkInvariants()) }
        guard let index = session.window.firstUnsent(to: topic) else { return nil }
        assert(session.window.slots[Int(index)].kind == .queued, "A full queue drops a message that was sent.")
        let token = session.window.slots[Int(index)].token
        dropQueued(at: index)
        return token
    }

    /// Takes a message that was never sent out of the queue, or ends one that others pass, without a completion. Returns false, and
    /// has no effects, if it was sent otherwise, or nothing is known of it.
    package mutating func withdraw(_ token: UInt64, into effects: inout MQTTEffects) -> Bool {
        defer { assert(checkInvariants()) }
        if let index = session.window.unsent(token) {
            dropQueued(at: index)
        } else if !withdrawPassed(where: { $0 == token }) {
            return false
        }
        reportRoom(&effects)
        return true
    }

    /// The tokens of the messages in the queue, in their order.
    package var queuedTokens: [UInt64] {
        session.window.queue.indices(session.window.slots).map { session.window.slots[Int($0)].token }
    }

    /// Takes messages whose token meets the condition out of the queue; they end without a completion. For callers that
    /// have told their publishers of a failure. Messages in flight belong to the session.
    package mutating func dropQueued(where isDropped: (UInt64) -> Bool, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        for index in session.window.queue.indices(session.window.slots) {
            guard isDropped(session.window.slots[Int(index)].token) else { continue }
            dropQueued(at: index)
        }
        reportRoom(&effects)
    }

    mutating func dropQueued(at index: Int32) {
        let slot = session.window.slots[Int(index)]
        // A message of QoS 0 is in no store.
        if !slot.head.flags.isAtMostOnce { store(.finished(sequence: slot.sequence)) }
        session.window.dropQueued(index)
    }

    // MARK: Writing

    /// Appends PUBLISH, with a topic alias if the peer allows aliases.
    mutating func encodePublish(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties, at now: Int64
    ) throws(MQTTUsageError) {
        let before = outputCount
        do throws(MQTTEncodingError) {
            if outboundAliases.maximum > 0 {
                try encodeWithAlias(head, payload, properties)
            } else {
                try encode(head, payload, properties)
            }
            publishesWritten &+= 1
            guard !messagesMayLeave else { return }
            addToPace(head.topic.utf8.count + payload.count, at: now)
            countWritten(outputCount - before, isAtMostOnce: head.flags.isAtMostOnce)
        } catch {
            throw MQTTUsageError(error)
        }
    }

    private mutating func encodeWithAlias(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties
    ) throws(MQTTEncodingError) {
        // An empty topic stands for one that the peer knows by its alias.
        if head.topic.isEmpty { throw .topicName(head.topic) }
        let bytes = Array(head.topic.utf8)
        // The bytes of an array of bytes: nothing to reinterpret.
        let choice = unsafe outboundAliases.choose(bytes.span.bytes)
        var short = head
        short.alias = choice.alias
        if choice.isKnown {
            short.topic = ""
            return try encode(short, payload, properties)
        }
        do throws(MQTTEncodingError) {
            try encode(short, payload, properties)
        } catch {
            outboundAliases.withdrawLast()
            guard error.code == .packetTooLarge else { throw error }
            // The packet may fit without the three bytes of the alias.
            try encode(head, payload, properties)
        }
    }

    private mutating func encode(
        _ head: PublishHead, _ payload: [UInt8], _ properties: MQTTProperties
    ) throws(MQTTEncodingError) {
        let leavesOut = payload.count >= leastPayloadLeftOut && largePayload == nil
        let before = output.count
        // The bytes of an array of bytes: nothing to reinterpret.
        try unsafe MQTTPacket.Publish.encode(
            head, version.hasProperties ? properties : MQTTProperties(), payload: payload.span.bytes,
            leavesPayloadOut: leavesOut, into: &output, version: version, maximumPacketSize: acceptedByPeer)
        publishBytes &+= output.count &- before
        guard leavesOut else { return }
        publishBytes &+= payload.count
        largePayload = LargePayload(payload, at: output.count)
    }
}
