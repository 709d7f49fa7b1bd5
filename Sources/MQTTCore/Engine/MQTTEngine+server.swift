// The server's side: CONNECT and the answers to requests.

import MessagingWire

extension MQTTEngine {
    mutating func receivedConnect(
        _ connect: MQTTPacket.Connect, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        version = connect.version
        // From here on a violation is answered with CONNACK.
        phase = .deciding
        connectDeadline = .max
        if connect.clientID.isEmpty && version < .v5_0 && !connect.cleanStart {
            throw .noClientIdentifier(clause: "MQTT-3.1.3-8")
        }
        try adoptCommonLimits(connect.properties)
        authenticationMethod.value = connect.properties.authenticationMethod
        if authenticationMethod.value != nil {
            authentication.begin(until: listening.time(at: now).advanced(byNanoseconds: options.value.connectTimeout))
        }
        connectSessionExpiry = connect.properties.sessionExpiryInterval ?? 0
        sessionEndsWithConnection = version.hasProperties ? connectSessionExpiry == 0 : connect.cleanStart
        opening.value = MQTTOpening(
            clientID: connect.clientID, cleanStart: connect.cleanStart, keepAlive: connect.keepAlive)
        effects.report(.connectReceived(connect))
    }

    /// Puts a session in place of the engine's own, which is returned. Only without an accepted connection: a server
    /// does it between ``MQTTEngineEvent/Kind/connectReceived(_:)`` and
    /// ``acceptConnection(sessionPresent:properties:at:into:)``.
    public mutating func replaceSession(_ session: MQTTSession) throws(MQTTUsageError) -> MQTTSession {
        defer { assert(checkInvariants()) }
        guard phase != .connected else {
            throw .sessionToReplaceIsInUse
        }
        let old = self.session
        self.session = session
        self.session.connectionClosed()
        return old
    }

    /// Writes CONNACK with success, and then what a resumed session has to send again.
    ///
    /// Receive Maximum, Maximum Packet Size, Topic Alias Maximum, Maximum QoS and Retain Available are taken from the
    /// configuration; `properties` adds others (Assigned Client Identifier, Server Keep Alive, …).
    /// - Parameter sessionPresent: whether the session in this engine is the client's and is resumed; see
    ///   ``replaceSession(_:)``. False forgets it.
    public mutating func acceptConnection(
        sessionPresent: Bool, properties: MQTTProperties = [], at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard isServer else { throw .isSentByServers("CONNACK") }
        guard phase == .deciding else { throw .cannotSend("CONNACK", in: phase) }
        let opening = opening.value ?? MQTTOpening()
        // [MQTT-3.2.2-2]
        if sessionPresent && opening.cleanStart { throw .sessionPresentAfterCleanStart }
        var all: MQTTProperties = []
        if version.hasProperties { all = connackProperties(properties) }
        try write(.connack(.init(sessionPresent: sessionPresent && version != .v3_1, properties: all)))
        if let expiry = properties.sessionExpiryInterval { sessionEndsWithConnection = expiry == 0 }
        connectDeadline = .max
        authentication = MQTTAuthenticationTurns()
        keepAlive.start(
            seconds: properties.serverKeepAlive ?? opening.keepAlive, pingTimeout: options.value.pingTimeout,
            isServer: true, at: now)
        keepAlive.sent(at: now)
        phase = .connected
        self.opening.value = nil
        for _ in 0..<opening.deferredPings { writePong(at: now) }
        if sessionPresent { resumeSession(at: now) } else { startAfresh(into: &effects) }
        session.isHeld = true
        pump(at: now, into: &effects)
    }

    /// The previous session is not this client's. Packets that arrived right after CONNECT belong to the new one.
    private mutating func startAfresh(into effects: inout MQTTEffects) {
        let arrived = session.inbound
        discardAll(into: &effects)
        session.inbound = arrived
        session.inbound.removeAllCarried()
        arrived.forEachUnacknowledgedQoS2 { _, entry in session.received.insert(entry.packetID) }
    }

    private func connackProperties(_ added: MQTTProperties) -> MQTTProperties {
        var properties = added
        if grantedReceiveMaximum != 65_535 { properties.receiveMaximum = grantedReceiveMaximum }
        if acceptedPacketSize != MQTTPacket.largestSize {
            properties.maximumPacketSize = UInt32(acceptedPacketSize)
        }
        if options.value.topicAliasMaximum != 0 { properties.topicAliasMaximum = options.value.topicAliasMaximum }
        if options.value.maximumQoS != .exactlyOnce { properties.maximumQoS = options.value.maximumQoS }
        if !options.value.retainAvailable { properties.retainAvailable = false }
        if let method = authenticationMethod.value { properties.authenticationMethod = method }
        return properties
    }

    /// Writes CONNACK with a failure as the last packet. Close the connection once ``output`` is written.
    ///
    /// A code that 3.1 and 3.1.1 do not have closes without CONNACK [MQTT 3.1.1 3.2.2-6].
    public mutating func refuseConnection(
        _ reason: MQTTReasonCode, properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard isServer else { throw .isSentByServers("CONNACK") }
        guard phase == .deciding else { throw .cannotSend("CONNACK", in: phase) }
        guard reason.isError else { throw .isNotRefusal(reason) }
        writeRefusal(reason, properties)
        phase = .closing
    }

    mutating func writeRefusal(_ reason: MQTTReasonCode, _ properties: MQTTProperties = []) {
        if version.hasProperties {
            // If the properties do not fit the client, the code alone does.
            do throws(MQTTUsageError) {
                try write(.connack(.init(reasonCode: reason, properties: properties)))
            } catch {
                try? write(.connack(.init(reasonCode: reason)))
            }
        } else if reason.connectReturnCode != nil {
            try? write(.connack(.init(reasonCode: reason)))
        }
    }

    /// Writes SUBACK: a code for each filter, in their order [MQTT 5.0 3.9.3-1].
    public mutating func acknowledgeSubscribe(
        _ packetID: UInt16, codes: [MQTTReasonCode], properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTUsageError) {
        try checkAnswer("SUBACK")
        try write(.suback(.init(packetID: packetID, reasonCodes: codes, properties: allowed(properties))))
        keepAlive.sent(at: now)
    }

    /// Writes UNSUBACK: a code for each filter, in their order; before 5.0 the codes are not sent.
    public mutating func acknowledgeUnsubscribe(
        _ packetID: UInt16, codes: [MQTTReasonCode], properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTUsageError) {
        try checkAnswer("UNSUBACK")
        let said = version.hasProperties ? codes : []
        try write(.unsuback(.init(packetID: packetID, reasonCodes: said, properties: allowed(properties))))
        keepAlive.sent(at: now)
    }

    private func checkAnswer(_ packet: String) throws(MQTTUsageError) {
        guard isServer else { throw .isSentByServers(packet) }
        guard phase == .connected else { throw .cannotSend(packet, in: phase) }
    }

    private func allowed(_ properties: MQTTProperties) -> MQTTProperties {
        version.hasProperties ? properties : []
    }
}
