import MQTTCore
import Synchronization
import Transport

extension MQTTClientHandler {
    /// Decides about CONNECT: who is it, may he, and which session is his.
    func connect(_ connect: MQTTPacket.Connect) {
        let faults = hub.currentFaults
        if faults.ignoresConnect { return }
        if faults.refusesConnections { return refuse(.serverUnavailable, "this broker refuses connections on purpose") }
        if connect.properties.authenticationMethod != nil {
            return refuse(.badAuthenticationMethod, "this broker knows no enhanced authentication")
        }
        guard hub.admits(user: connect.userName, password: connect.password) else {
            // Nobody's word was wrong if none was given.
            return refuse(
                connect.userName == nil ? .notAuthorized : .badUserNameOrPassword, "bad user name or password")
        }
        var properties = MQTTProperties()
        var clientID = connect.clientID
        if clientID.isEmpty {
            // 3.1 has no such thing, and later versions only without a session to come back to [MQTT-3.1.3-7].
            guard connect.version != .v3_1, connect.cleanStart || connect.version.hasProperties else {
                return refuse(.clientIdentifierNotValid, "a client identifier is required")
            }
            clientID = "loopback-\(id)"
            properties.assignedClientIdentifier = clientID
        }
        takeOver(clientID)
        var expiry = connect.properties.sessionExpiryInterval ?? 0
        if !connect.version.hasProperties { expiry = connect.cleanStart ? 0 : .max }
        let opened = hub.route(at: now) { router, effects in
            router.openSession(
                clientID: clientID, connection: id, cleanStart: connect.cleanStart, expiry: expiry, will: connect.will,
                at: now, into: &effects)
        }
        guard let opened else {
            return refuse(.quotaExceeded, "\(hub.options.limits.maximumSessions) sessions are kept already")
        }
        link.perform { $0.accept(opened, properties: properties, at: now) }
    }

    /// Ends another connection of the same client [MQTT-3.1.4-3].
    private func takeOver(_ clientID: String) {
        let other = hub.state.withLock { state in
            state.router.connection(of: clientID).flatMap { state.connections[$0] }
        }
        guard case .mqtt(let link, _)? = other else { return }
        MQTTClientHandler(hub: hub, id: id, link: link, now: now).ended(sendsWill: true, telling: .sessionTakenOver)
    }

    private func refuse(_ reason: MQTTReasonCode, _ words: String) {
        link.perform { $0.refuse(reason, reasonString: words, at: now) }
    }
}
