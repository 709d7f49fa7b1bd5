// Opening and closing, on both sides; CONNECT and CONNACK of a client.

import MessagingWire

extension MQTTEngine {
    /// A connection to the peer is open. A client writes CONNECT; a server awaits it.
    ///
    /// - Parameter deadline: when CONNACK (client) or CONNECT (server) is late, for callers whose time for connecting
    ///   began before there was a connection. By default ``MQTTEngineConfiguration/connectTimeout`` from now on.
    /// - Throws: ``MQTTUsageError/Code/alreadyConnected``, or ``MQTTUsageError/Code/invalidConfiguration`` if the configuration
    ///   cannot be written in CONNECT.
    public mutating func connectionOpened(at now: Int64, deadline: Int64? = nil) throws(MQTTUsageError) {
        defer { assert(checkInvariants()) }
        guard phase == .closed else {
            throw .connectionIsOpen
        }
        output.removeAll(keepingCapacity: true)
        largePayload = nil
        outputEmptied()
        connectionEnd = .unrelated
        knowsQoS2IsMissing = false
        knowsReceiveMaximumIsExceeded = false
        limits = MQTTPeerLimits()
        version = options.value.version
        inboundAliases.reset(maximum: options.value.topicAliasMaximum)
        outboundAliases.reset(maximum: 0)
        acceptedPacketSize = min(Int(clamping: options.value.maximumPacketSize), MQTTPacket.largestSize)
        acceptedControlPacketSize = min(
            options.value.maximumControlPacketSize, UInt32(MQTTPacket.largestSize))
        grantedReceiveMaximum = max(1, options.value.receiveMaximum)
        opening.value = nil
        authentication = MQTTAuthenticationTurns()
        authenticationMethod.value = nil
        if options.value.role == .client { try writeConnect() }
        keepAlive.start(seconds: 0, pingTimeout: options.value.pingTimeout, isServer: isServer, at: now)
        connectDeadline = deadline ?? now.advanced(byNanoseconds: options.value.connectTimeout)
        connection &+= 1
        phase = .connecting
    }

    /// The connection is gone, for whatever reason. Requests without an answer fail; messages in flight stay for the
    /// next connection.
    public mutating func connectionClosed(at now: Int64, into effects: inout MQTTEffects) {
        defer { assert(checkInvariants()) }
        guard phase != .closed else { return }
        // CONNACK may have been on its way, also if it was not awaited any longer: then the server has a session that we began.
        if opening.value != nil && !isServer {
            session.isHeld = true
            session.doubt = .connectUnanswered
        }
        let (unanswered, lone) = (findUnanswered(), findLone())
        let verdict = isServer ? nil : judgeEnd(unanswered, isWritten: output.isEmpty, at: now)
        phase = .closed
        leaving.value = nil
        reconciling = .nothing
        output.removeAll(keepingCapacity: true)
        largePayload = nil
        outputEmptied()
        wasHeldUp = keepAlive.isHeldUp(at: now)
        keepAlive.stop(at: now)
        for id in filters.identifiers { session.window.releaseRequestID(id) }
        let failed = filters.connectionLost(refused: verdict == .refused ? lone?.request : nil)
        session.connectionClosed()
        noteAllFilters()
        if let verdict, let lone { report(verdict, on: lone, &effects) }
        // After what tells why.
        for var request in failed {
            request.time = listening.moment(of: request.time)
            effects.report(.requestFailed(request))
        }
        heldPackets = []
        opening.value = nil
        if sessionEndsWithConnection { session.isHeld = false }
        sessionEndsWithConnection = false
    }

    var isServer: Bool { options.value.role == .server }

    private mutating func writeConnect() throws(MQTTUsageError) {
        try configuration.checkConnect()
        var connect = MQTTPacket.Connect(
            version: version, clientID: clientID, cleanStart: cleanStart,
            keepAlive: options.value.keepAlive, userName: options.value.userName, password: options.value.password,
            will: options.value.will, properties: version.hasProperties ? connectProperties : [])
        if !version.hasProperties { connect.will?.properties = [] }
        var bytes: [UInt8] = []
        do throws(MQTTEncodingError) {
            try MQTTPacket.connect(connect).encode(into: &bytes, version: version)
        } catch {
            throw .connectCannotBeEncoded(error)
        }
        var opening = MQTTOpening()
        let outlives = version.hasProperties ? options.value.sessionExpiry != 0 : !cleanStart
        if options.value.persists && outlives && !session.isRecorded {
            establishedTicket = store(.established)
            session.isRecorded = true
            session.isNew = true
        }
        if options.value.persists && outlives && establishedTicket > persistedTicket {
            // The server may hold the session as soon as it has read CONNECT. If the process dies after that, its
            // successor must know of that session, or it takes Session Present for a mistake [MQTT 5.0 3.2.2-4].
            opening.heldConnect = bytes
            opening.heldConnectTicket = establishedTicket
        } else {
            output += bytes
        }
        opening.clientID = clientID
        opening.cleanStart = cleanStart
        opening.keepAlive = options.value.keepAlive
        self.opening.value = opening
        connectSessionExpiry = version.hasProperties ? options.value.sessionExpiry : 0
        authenticationMethod.value = version.hasProperties ? options.value.authenticationMethod : nil
        if authenticationMethod.value != nil { authentication.turn = .peers }
    }

    private var connectProperties: MQTTProperties {
        var properties = options.value.connectProperties
        properties.sessionExpiryInterval = options.value.sessionExpiry == 0 ? nil : options.value.sessionExpiry
        properties.receiveMaximum = grantedReceiveMaximum == 65_535 ? nil : grantedReceiveMaximum
        properties.maximumPacketSize =
            acceptedPacketSize == MQTTPacket.largestSize ? nil : UInt32(acceptedPacketSize)
        properties.topicAliasMaximum = options.value.topicAliasMaximum == 0 ? nil : options.value.topicAliasMaximum
        properties.authenticationMethod = options.value.authenticationMethod
        properties.authenticationData = options.value.authenticationData
        return properties
    }

    // MARK: CONNACK

    mutating func receivedConnack(
        _ connack: MQTTPacket.Connack, at now: Int64, into effects: inout MQTTEffects
    ) throws(MQTTProtocolError) {
        let opening = opening.value ?? MQTTOpening()
        guard connack.reasonCode == .success else {
            self.opening.value = nil
            effects.report(.connectionRefused(connack))
            phase = .closing
            return
        }
        if let method = connack.properties.authenticationMethod, !isOurMethod(method) {
            throw .otherAuthenticationMethod(in: .connack, clause: "MQTT-4.12.0-5")
        }
        let (sessionPresent, continuesSession) = try judgeSession(connack, opening)
        try adoptLimits(connack.properties)
        accept(
            connack.properties, opening, sessionPresent: sessionPresent, continuesSession: continuesSession, at: now,
            into: &effects)
    }

    /// Whether the server has our session, as it reports, and whether the session continues.
    private mutating func judgeSession(
        _ connack: MQTTPacket.Connack, _ opening: MQTTOpening
    ) throws(MQTTProtocolError) -> (sessionPresent: Bool, continuesSession: Bool) {
        // A client of 3.1.1 may proceed without the session that it did not ask for (3.2.2.2).
        let sessionPresent = connack.sessionPresent && (version == .v5_0 || !opening.cleanStart)
        if sessionPresent {
            if opening.cleanStart {
                throw .sessionPresentAfterCleanStart(clause: "MQTT-3.2.2-2")
            }
            if version == .v5_0 && !session.isHeld && !options.value.acceptsUnknownSession {
                self.opening.value = nil
                throw .sessionPresentWithoutSession(clause: "MQTT-3.2.2-4")
            }
        }
        // 3.1 has no Session Present: there the server resumes the session if CONNECT requested it.
        return (sessionPresent, continuesSession: version == .v3_1 ? !opening.cleanStart : sessionPresent)
    }

    /// The server has accepted the client: the connection begins, and what waits leaves.
    private mutating func accept(
        _ properties: MQTTProperties, _ opening: MQTTOpening, sessionPresent: Bool, continuesSession: Bool,
        at now: Int64, into effects: inout MQTTEffects
    ) {
        let clientID = properties.assignedClientIdentifier ?? opening.clientID
        if properties.assignedClientIdentifier != nil { self.clientID = clientID }
        let sessionExpiry = properties.sessionExpiryInterval ?? connectSessionExpiry
        sessionEndsWithConnection = version.hasProperties ? sessionExpiry == 0 : opening.cleanStart
        let doubt = session.doubt
        let isUnknown = doubt == .connectUnanswered || doubt == .otherServer || version == .v3_1
        let mayBeAnother = continuesSession && isUnknown
        if mayBeAnother { session.doubt = .mayBeAnother }
        if continuesSession && !session.isHeld && options.value.acceptsUnknownSession {
            session.window.ids.begin(at: now)
        }
        session.isHeld = true
        self.opening.value = nil
        connectDeadline = .max
        authentication = MQTTAuthenticationTurns()
        let seconds = properties.serverKeepAlive ?? opening.keepAlive
        keepAlive.start(seconds: seconds, pingTimeout: options.value.pingTimeout, isServer: false, at: now)
        acknowledgementWait.start(timeout: options.value.acknowledgementTimeout, at: listening.time(at: now))
        phase = .connected
        connectionEnd = .closed
        // What is wanted precedes the messages of the connection. A caller that reacts to refusals asks for it itself.
        sessionBegan(continues: continuesSession, isInDoubt: mayBeAnother)
        beginCarefully(at: now)
        if options.value.subscribesAgainAfterRefusals { reconciling = .answers } else { expectAnswers() }
        effects.report(
            .connected(
                MQTTConnectionInfo(
                    version: version, sessionPresent: sessionPresent, clientID: clientID,
                    keepAlive: seconds, sessionExpiry: sessionExpiry, limits: limits, properties: properties,
                    sessionMayBeAnother: mayBeAnother, continuesSession: continuesSession)))
        beginSession(continues: continuesSession, at: now, into: &effects)
        pump(at: now, into: &effects)
    }

    /// Which of the wanted filters the server has.
    private mutating func sessionBegan(continues: Bool, isInDoubt: Bool) {
        guard !filters.isEmpty else { return }
        guard continues else { return filters.sessionIsAbsent() }
        filters.sessionContinues(
            isInDoubt: isInDoubt || options.value.resubscribesWithSessionPresent,
            // Before 5.0 the server does not report what it allows, and would repeat its retained messages for nothing.
            allowed: version.hasProperties ? limits.maximumQoS : nil)
    }

    private mutating func beginSession(continues: Bool, at now: Int64, into effects: inout MQTTEffects) {
        // Messages that were sent on an earlier connection may have arrived, even if its session has ended with it.
        let wasHeld = !session.isNew || session.window.hasSent
        session.isNew = false
        if continues { return resumeSession(at: now) }
        let doubt = session.doubt
        sessionWasLost(wasHeld: wasHeld, into: &effects)
        // The CONNECT that had no answer may be read yet.
        if doubt == .connectUnanswered { session.doubt = doubt }
    }

    /// The next CONNECT goes to another server than the last, which may hold a session of its own. Only without a connection.
    package mutating func serverChanges() {
        if session.doubt != .connectUnanswered { session.doubt = .otherServer }
    }

    /// What the server accepts, from CONNACK.
    private mutating func adoptLimits(_ properties: MQTTProperties) throws(MQTTProtocolError) {
        try adoptCommonLimits(properties)
        limits.maximumQoS = properties.maximumQoS ?? .exactlyOnce
        limits.retainAvailable = properties.retainAvailable ?? true
        limits.wildcardSubscriptionAvailable = properties.wildcardSubscriptionAvailable ?? true
        limits.subscriptionIdentifiersAvailable = properties.subscriptionIdentifierAvailable ?? true
        limits.sharedSubscriptionAvailable = properties.sharedSubscriptionAvailable ?? true
    }

    /// The limits that CONNECT and CONNACK have in common.
    mutating func adoptCommonLimits(_ properties: MQTTProperties) throws(MQTTProtocolError) {
        if let maximum = properties.receiveMaximum {
            guard maximum > 0 else { throw .receiveMaximumIsZero(clause: "MQTT 5.0 3.1.2.11.3") }
            limits.receiveMaximum = maximum
        }
        if let size = properties.maximumPacketSize {
            guard size > 0 else { throw .maximumPacketSizeIsZero(clause: "MQTT 5.0 3.1.2.11.4") }
            limits.maximumPacketSize = size
        }
        limits.topicAliasMaximum = properties.topicAliasMaximum ?? 0
        outboundAliases.reset(maximum: min(limits.topicAliasMaximum, options.value.outboundTopicAliasMaximum))
    }

    /// Whether CONNECT had an authentication method.
    package var authenticates: Bool { authenticationMethod.value != nil }

    func isOurMethod(_ method: String) -> Bool {
        authenticationMethod.value.map { $0.hasSameBytes(as: method) } ?? false
    }
}

/// What an engine has to know between CONNECT and CONNACK, and not after that.
struct MQTTOpening: Sendable {
    /// The identifier in CONNECT, or the identifier that the server assigned.
    var clientID = ""
    /// Whether CONNECT had Clean Start set.
    var cleanStart = false
    var keepAlive: UInt16 = 0
    /// PINGREQ that came before a server had answered CONNECT.
    var deferredPings = 0
    /// CONNECT, which waits until the store has the record that the server may hold our session, and the ticket of that
    /// record.
    var heldConnect: [UInt8] = []
    var heldConnectTicket: UInt64 = 0
}
