// A graceful end: what the server waits for first, then DISCONNECT.

import Wire

/// What a client says in DISCONNECT once the exchanges before it are finished.
struct MQTTLeaving: Sendable {
    var reason: MQTTReasonCode
    var properties: MQTTProperties
    /// When DISCONNECT is written although exchanges are open.
    var deadline: Int64
}

extension MQTTEngine {
    /// Ends a client's connection gracefully: messages that waited for subscriptions leave, QoS 2 messages that were
    /// received and acknowledged by PUBREC are finished (PUBREL, PUBCOMP), and then DISCONNECT is written as by
    /// ``disconnect(reason:properties:at:)``. ``MQTTEffects/shouldClose`` says when that has happened.
    ///
    /// - Parameter limit: how long the exchanges may take, in nanoseconds.
    /// - Throws: as ``disconnect(reason:properties:at:)`` does, before anything changes.
    public mutating func leave(
        reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = [], within limit: Int64,
        at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTUsageError) {
        guard phase == .connected else { throw notConnected("DISCONNECT") }
        if version.hasProperties { try checkDisconnect(reason: reason, properties: properties) }
        subscribingStage = .done
        pump(at: now, into: &effects)
        leaving.value = MQTTLeaving(
            reason: reason, properties: properties, deadline: now.advanced(byNanoseconds: limit))
        phase = .leaving
        leaveIfDone(at: now, into: &effects)
    }

    /// Writes DISCONNECT if nothing has to come before it any more, or the time for that is over.
    mutating func leaveIfDone(at now: Int64, into effects: inout MQTTEffects) {
        guard phase == .leaving, let leaving = leaving.value else { return }
        let isOpen =
            session.awaitingRelease.count > 0 || !heldPackets.isEmpty || session.inbound.hasAnsweredQoS2
        guard !isOpen || now >= leaving.deadline else { return }
        self.leaving.value = nil
        // It was checked when the connection began to end.
        try? disconnect(reason: leaving.reason, properties: leaving.properties, at: now)
        beginClosing(&effects)
    }
}
