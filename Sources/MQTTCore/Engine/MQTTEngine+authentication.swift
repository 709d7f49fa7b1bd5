// Enhanced authentication [MQTT 5.0 4.12]: the engine keeps the rules, the caller knows the method.

extension MQTTEngine {
    /// Writes AUTH with the method of the connection, in answer to
    /// ``MQTTEngineEvent/Kind/authenticationReceived(_:)``; 5.0 only [MQTT 5.0 4.12].
    ///
    /// - Parameter reason: `continueAuthentication`; `reauthenticate` for a client that starts it anew once connected;
    ///   `success` for a server that ends a re-authentication.
    /// - Throws: ``MQTTMisuse/Code/notInThisVersion``; ``MQTTMisuse/Code/notConnected``;
    ///   ``MQTTMisuse/Code/answerMismatch`` if CONNECT named no method [MQTT 5.0 4.12.0-7], or for a reason that this
    ///   side may not give now.
    public mutating func authenticate(
        reason: MQTTReasonCode = .continueAuthentication, data: [UInt8]?, properties: MQTTProperties = [],
        at now: Int64
    ) throws(MQTTMisuse) {
        guard version.hasProperties else {
            throw MQTTMisuse(.notInThisVersion, "MQTT \(version) has no AUTH: connect with 5.0")
        }
        guard phase == .connected || phase == (isServer ? .deciding : .connecting) else {
            throw notConnected("AUTH")
        }
        guard let method = authenticationMethod.value else {
            throw MQTTMisuse(.answerMismatch, "CONNECT named no authentication method: set authenticationMethod")
        }
        let mayBeSaid =
            reason == .continueAuthentication
            || phase == .connected && reason == (isServer ? .success : .reauthenticate)
        guard mayBeSaid else {
            throw MQTTMisuse(.answerMismatch, "\(reason) cannot be said in AUTH by this side now")
        }
        var all = properties
        all.authenticationMethod = method
        all.authenticationData = data
        try write(.auth(.init(reasonCode: reason, properties: all)))
        keepAlive.sent(at: now)
        authenticationDeadline = reason == .success ? .max : now.adding(configuration.requestTimeout)
    }

    mutating func receivedAuth(
        _ auth: MQTTPacket.Auth, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTViolation) {
        guard version.hasProperties else { throw .protocolError("AUTH before MQTT 5.0", "MQTT 3.1.1 2.2.1") }
        if isServer { try requireAccepted(.auth) }
        guard authenticationMethod.value != nil else {
            throw .protocolError("AUTH although CONNECT named no authentication method", "MQTT-4.12.0-7")
        }
        guard let method = auth.properties.authenticationMethod, isOurMethod(method) else {
            throw .protocolError("AUTH with another authentication method than CONNECT", "MQTT-4.12.0-5")
        }
        // Before CONNACK there is only the next step. A re-authentication is a client's to begin
        // [MQTT 5.0 3.15.2.1]; a server goes on with 0x18.
        if !isServer && auth.reasonCode == .reauthenticate {
            throw .protocolError("AUTH with re-authenticate from a server", "MQTT 5.0 3.15.2.1")
        }
        if phase != .connected && auth.reasonCode != .continueAuthentication {
            throw .protocolError("AUTH with \(auth.reasonCode) before CONNACK", "MQTT-4.12.0-2")
        }
        if isServer && auth.reasonCode == .success {
            throw .protocolError("AUTH with success from a client", "MQTT 5.0 3.15.2.1")
        }
        authenticationDeadline = .max
        // While the client has to think, CONNACK cannot come: its time starts anew.
        if phase == .connecting { connectDeadline = now.adding(configuration.connectTimeout) }
        effects.report(.authenticationReceived(auth))
    }
}
