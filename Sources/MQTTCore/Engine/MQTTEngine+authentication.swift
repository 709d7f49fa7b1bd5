// Enhanced authentication [MQTT 5.0 4.12]: the engine keeps the rules, the caller knows the method.

import MessagingWire

extension MQTTEngine {
    /// Writes AUTH with the method of the connection, in answer to
    /// ``MQTTEngineEvent/Kind/authenticationReceived(_:)``; 5.0 only [MQTT 5.0 4.12].
    ///
    /// - Parameter reason: `continueAuthentication`; `reauthenticate` for a client that starts it anew once connected;
    ///   `success` for a server that ends a re-authentication.
    /// - Throws: ``MQTTUsageError/Code/notInThisVersion``; ``MQTTUsageError/Code/notConnected``;
    ///   ``MQTTUsageError/Code/answerMismatch`` if CONNECT named no method [MQTT 5.0 4.12.0-7], or for a reason that this
    ///   side may not give now.
    public mutating func authenticate(
        reason: MQTTReasonCode = .continueAuthentication, data: [UInt8]?, properties: MQTTProperties = [],
        at now: Int64
    ) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard version.hasProperties else {
            throw .authIsNotInThisVersion(version)
        }
        guard phase == .connected || phase == (isServer ? .deciding : .connecting) else {
            throw .cannotSend("AUTH", in: phase)
        }
        guard let method = authenticationMethod.value else {
            throw .authWithoutMethod
        }
        switch reason {
        case .continueAuthentication where authentication.turn == .ours: break
        case .reauthenticate where !isServer && phase == .connected && authentication.turn == .none:
            authentication.limit = listening.time(at: now).advanced(byNanoseconds: options.value.connectTimeout)
        case .success where isServer && phase == .connected && authentication.turn == .ours: break
        default:
            throw .cannotSendAuth(reason, awaitsAnswer: authentication.turn == .peers)
        }
        var all = properties
        all.authenticationMethod = method
        all.authenticationData = data
        try write(.auth(.init(reasonCode: reason, properties: all)))
        keepAlive.sent(at: now)
        if reason == .success {
            authentication = MQTTAuthenticationTurns()
        } else {
            authentication.turn = .peers
            authentication.deadline = min(
                listening.time(at: now).advanced(byNanoseconds: options.value.requestTimeout), authentication.limit)
        }
    }

    /// Whether the peer waits for our AUTH.
    package var owesAuthentication: Bool { authentication.turn == .ours }

    mutating func receivedAuth(
        _ auth: MQTTPacket.Auth, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        guard version.hasProperties else { throw .authIsNotInThisVersion(clause: "MQTT 3.1.1 2.2.1") }
        if isServer { try requireAccepted(.auth) }
        guard authenticationMethod.value != nil else {
            throw .authWithoutMethod(clause: "MQTT-4.12.0-7")
        }
        guard let method = auth.properties.authenticationMethod, isOurMethod(method) else {
            throw .otherAuthenticationMethod(in: .auth, clause: "MQTT-4.12.0-5")
        }
        // A client that waits for its last acknowledgements before DISCONNECT is still connected.
        let isConnected = phase.isOpen
        // One step at a time: the side that began it, or answered, waits for the other [MQTT 5.0 4.12].
        switch (auth.reasonCode, authentication.turn) {
        case (_, .ours):
            throw .secondAuth(clause: "MQTT 5.0 4.12")
        case (.continueAuthentication, .peers):
            authentication.turn = .ours
            authentication.deadline = authentication.limit
        case (.success, .peers) where isConnected:
            authentication = MQTTAuthenticationTurns()
        case (.reauthenticate, .none) where isConnected:
            authentication.begin(until: listening.time(at: now).advanced(byNanoseconds: options.value.connectTimeout))
        case (.success, _) where !isConnected:
            throw .authBeforeConnack(auth.reasonCode, clause: "MQTT-4.12.0-2")
        default:
            throw .authDoesNotFollow(auth.reasonCode, clause: "MQTT 5.0 4.12")
        }
        effects.report(.authenticationReceived(auth))
    }
}

/// Whose turn it is in an enhanced authentication, and until when.
struct MQTTAuthenticationTurns: Sendable, Equatable {
    enum Turn: UInt8 {
        /// No authentication is under way.
        case none
        /// Our next AUTH is awaited.
        case ours
        /// The peer's next AUTH is awaited, or its CONNACK.
        case peers
    }

    var turn = Turn.none
    /// When the step that is awaited is late, a time of the listening clock; `Int64.max` for never.
    var deadline = Int64.max
    /// When the whole exchange has to be over, however many steps it has.
    var limit = Int64.max

    /// The peer has sent the first step.
    mutating func begin(until limit: Int64) {
        self = MQTTAuthenticationTurns(turn: .ours, deadline: limit, limit: limit)
    }
}
