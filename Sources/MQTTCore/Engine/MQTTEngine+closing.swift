// A graceful end: what the server waits for first, then DISCONNECT.

import MessagingWire

extension MQTTEngine {
    // MARK: Closing

    /// Writes DISCONNECT as the last packet [MQTT 5.0 3.14.4-1]. Close the connection once ``output`` is written.
    ///
    /// Before 5.0 the reason and the properties are not sent, and a server writes nothing at all.
    /// - Throws: ``MQTTUsageError/Code/notConnected``; ``MQTTUsageError/Code/propertyNotAllowed`` for a session expiry although
    ///   CONNECT had 0 [MQTT 5.0 3.14.2.2.2].
    public mutating func disconnect(
        reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard phase.isOpen else { throw .cannotSend("DISCONNECT", in: phase) }
        if version.hasProperties {
            try checkExpiry(properties)
            try checkReason(reason)
            try write(.disconnect(.init(reasonCode: reason, properties: properties)))
            if let expiry = properties.sessionExpiryInterval { sessionEndsWithConnection = expiry == 0 }
        } else if !isServer {
            try write(.disconnect(.init()))
        }
        keepAlive.sent(at: now)
        connectionEnd = .unrelated
        phase = .closing
    }

    /// Whether ``disconnect(reason:properties:at:)`` could send this on the open connection, for callers that check
    /// before they begin to close it.
    ///
    /// - Throws: as that does, and ``MQTTUsageError/Code/notInThisVersion`` for what would not be sent before 5.0.
    package func checkDisconnect(reason: MQTTReasonCode, properties: MQTTProperties) throws(MQTTUsageError) {
        guard phase.isOpen else { throw .cannotSend("DISCONNECT", in: phase) }
        guard version.hasProperties else {
            guard reason == .normalDisconnection, properties.isEmpty else {
                throw .disconnectHasNoReason(in: version)
            }
            return
        }
        try checkExpiry(properties)
        try checkReason(reason)
        var unsent: [UInt8] = []
        do throws(MQTTEncodingError) {
            try MQTTPacket.disconnect(.init(reasonCode: reason, properties: properties)).encode(
                into: &unsent, version: version,
                maximumPacketSize: acceptedByPeer)
        } catch {
            throw MQTTUsageError(error)
        }
    }

    /// A session that CONNECT let end with the connection is not revived by DISCONNECT [MQTT 5.0 3.14.2.2.2].
    private func checkExpiry(_ properties: MQTTProperties) throws(MQTTUsageError) {
        guard let expiry = properties.sessionExpiryInterval else { return }
        guard !isServer, expiry == 0 || connectSessionExpiry != 0 else {
            throw .cannotSetExpiry(expiry, isServer: isServer)
        }
    }

    /// Throws unless our side may send this code in DISCONNECT [MQTT-3.14.2-1].
    private func checkReason(_ reason: MQTTReasonCode) throws(MQTTUsageError) {
        guard !reason.isAllowed(in: .disconnect, from: options.value.role) else { return }
        throw .mustNotDisconnect(options.value.role, with: reason)
    }
}

extension MQTTEngine {
    /// Ends a client's connection gracefully: messages that waited for subscriptions leave, those of QoS 0 at the pace that
    /// is set, and QoS 2 exchanges are finished: of messages that were received and acknowledged by PUBREC, and of our own in
    /// a session that ends with the connection, which would otherwise be sent again under another identifier. Then DISCONNECT
    /// is written as by ``disconnect(reason:properties:at:)``. ``shouldClose`` is true once that has happened.
    ///
    /// A connection that ends already keeps its limit, and DISCONNECT gets the new reason and properties.
    /// - Parameter limit: how long all this may take, in nanoseconds.
    /// - Throws: as ``disconnect(reason:properties:at:)`` does, before anything changes.
    public mutating func leave(
        reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = [], within limit: Int64,
        at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard phase.isOpen else { throw .cannotSend("DISCONNECT", in: phase) }
        if version.hasProperties { try checkDisconnect(reason: reason, properties: properties) }
        connectionEnd = .unrelated
        reconciling = .nothing
        filters.nothingComesFirst()
        // Nothing more is asked for.
        filters.forgetChanges()
        pump(at: now, into: &effects)
        // It was leaving, and DISCONNECT has left.
        guard phase != .closing else { return }
        let deadline = leaving.value?.deadline ?? now.advanced(byNanoseconds: limit)
        leaving.value = MQTTLeaving(reason: reason, properties: properties, deadline: deadline)
        phase = .leaving
        leaveIfDone(at: now, into: &effects)
    }

    /// Writes DISCONNECT if nothing has to come before it any more, or the time for that is over.
    mutating func leaveIfDone(at now: Int64, into effects: inout MQTTEffects) {
        guard phase == .leaving, let leaving = leaving.value else { return }
        sendQueuedAtMostOnce(at: now, into: &effects)
        let isUnfinished =
            session.awaitingRelease.count > 0 || !heldPackets.isEmpty || session.inbound.hasAnsweredQoS2
            || (isPaced || isCareful) && session.window.queuedAtMostOnceCount > 0
            || sessionEndsWithConnection && session.window.awaitsExactlyOnce
        guard !isUnfinished || now >= leaving.deadline else { return }
        self.leaving.value = nil
        do throws(MQTTUsageError) {
            try disconnect(reason: leaving.reason, properties: leaving.properties, at: now)
        } catch {
            assert(false, "DISCONNECT cannot be written, which was checked when the connection began to end.")
        }
        phase = .closing
    }

    /// Messages of QoS 0 leave at the pace that is set: their publishers were told that they do. Messages of QoS 1 and
    /// 2 stay in the queue.
    private mutating func sendQueuedAtMostOnce(at now: Int64, into effects: inout MQTTEffects) {
        guard isPaced || isCareful, session.window.queuedAtMostOnceCount > 0 else { return }
        defer { reportRoom(&effects) }
        for index in session.window.queue.indices(session.window.slots)
        where session.window.slots[Int(index)].head.flags.isAtMostOnce {
            guard paceAllows(at: now) else { return }
            _ = sendQueued(index, at: now, into: &effects)
        }
    }
}

/// What a client sends in DISCONNECT once the exchanges before it are finished.
struct MQTTLeaving: Sendable {
    var reason: MQTTReasonCode
    var properties: MQTTProperties
    /// When DISCONNECT is written although exchanges are open.
    var deadline: Int64
}
