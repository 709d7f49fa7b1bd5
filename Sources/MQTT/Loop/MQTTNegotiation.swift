import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

/// How a client gets accepted by a server: versions, redirection, and whether another attempt is worthwhile.
///
/// On the loop's thread.
final class MQTTNegotiation: @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.

    /// The client, which owns this object; set before anything else.
    unowned var core: MQTTClientCore!
    var settings: MQTTSettings { core.settings }
    /// Counts the connections that were opened.
    private(set) var connectionNumber = 0
    /// The versions that are left to try.
    private var versionsLeft: [MQTTVersion]
    /// Where servers referred the client to; nil as long as none did.
    let redirection = Lock<MQTTRedirection?>(nil)
    /// The callers that wait until a renewed authentication is complete.
    var reauthentications: [PendingCall<Result<Void, MQTTError>>] = []
    /// Responds to the server's last AUTH; ends with the connection.
    var authenticationTask: Task<Void, Never>?
    // Small fields are next to each other, because every idle client has this object.
    var blockedSession = MQTTBlockedSession()
    /// Whether a server has accepted a connection since the client last stopped.
    var wasAcceptedSinceStop = false
    /// How often servers have refused the client with `notAuthorized` since one accepted it.
    private var refusals: UInt8 = 0
    /// Whether the version was asked for once more, because the connection ended before CONNACK.
    private var hasRepeatedVersion = false
    /// Whether this connection was accepted.
    private(set) var isAccepted = false
    /// Whether CONNECT was sent on this connection and was not answered.
    private var awaitsConnack = false
    /// Whether this connection's server is silent, broke the protocol or sent the client away.
    private var serverFailed = false
    /// Whether the connection that closes has ended because of a request, which was given up.
    var endsForRequest = false
    /// Whether each SUBSCRIBE has one filter, since a server has not answered all filters of one that had more.
    private(set) var sendsSingleFilters = false
    /// Whether the last accepted connection just ended, soon and with no request unanswered.
    private var hasEndedSoon = false
    /// The place in the list of the server that is tried.
    private var triedServer: Int32 = 0
    /// Half a hash of the server that has accepted last; 0 if none has.
    private var acceptedServer: UInt32 = 0
    /// When the client last left a connection without an answer to CONNECT; `Int64.min` if it never did.
    private var unansweredConnect = Int64.min

    init(_ settings: MQTTSettings) {
        versionsLeft = settings.fallbackVersions
    }

    // MARK: Attempts

    func prepare(_ attempt: ConnectionAttempt) {
        let continues = attempt.continuesLast && attempt.server == Int(triedServer)
        triedServer = Int32(attempt.server)
        if !continues { hasRepeatedVersion = false }
        // Another server may accept a version that the last one refused. The same server may have refused none: a server
        // that is starting, or a proxy in front of it, closes connections whatever the version.
        if !continues, !wasEverAccepted, versionsLeft.count != settings.fallbackVersions.count {
            versionsLeft = settings.fallbackVersions
            use(settings.version)
        }
    }

    /// A stream is open, and CONNECT is about to be sent.
    func connectionOpened() {
        isAccepted = false
        awaitsConnack = true
        serverFailed = false
        connectionNumber += 1
        if acceptedServer != 0, acceptedServer != hashOfServer { core.link.perform { $0.engine.serverChanges() } }
    }

    /// Not 0.
    private var hashOfServer: UInt32 { UInt32(truncatingIfNeeded: core.opener.server?.endpoint.hashValue ?? 0) | 1 }

    /// Whether any server has accepted a connection.
    private var wasEverAccepted: Bool { acceptedServer != 0 }

    /// CONNECT was never sent, or CONNACK is of no use.
    func expectsNoConnack() { awaitsConnack = false }

    /// CONNACK with a failure.
    func refused(_ reason: MQTTReasonCode) {
        awaitsConnack = false
        if reason == .notAuthorized, refusals < .max { refusals += 1 }
    }

    /// CONNACK with success.
    func accepted(_ info: MQTTConnectionInfo) {
        isAccepted = true
        awaitsConnack = false
        wasAcceptedSinceStop = true
        refusals = 0
        acceptedServer = hashOfServer
        versionsLeft = []
        redirection.withLock { $0?.accepted(server: Int(triedServer)) }
        // 3.1 has no Session Present: the server resumes the session if this connection's CONNECT requested it.
        let wasClean = core.link.perform { $0.engine.cleanStart }
        blockedSession.isResumed = info.sessionPresent || info.version == .v3_1 && !wasClean
        // The new session has begun: later connections continue it, if the server keeps it at all.
        guard info.version.hasProperties, info.sessionExpiry > 0 else { return }
        core.link.perform { $0.engine.cleanStart = false }
    }

    /// What to add to the report that the server closed the connection without CONNACK: a server that does not know 5.0
    /// may do so [MQTT 5.0 3.1.2.2]. Empty with versions to fall back to, which are tried next.
    var hintAtVersion: String {
        guard settings.fallbackVersions.isEmpty,
            core.link.perform({ $0.engine.options.value.version }) == .v5_0
        else { return "" }
        return " If it does not support MQTT 5.0, set version to .v3_1_1, or fallbackVersions."
    }

    /// The server has accepted this connection, and it ends: what to add to the report.
    ///
    /// - Parameter isPlain: whether neither end has given a reason.
    func hintAtEnd(isPlain: Bool) -> String {
        let (now, hadEndedSoon) = (core.loop.now, hasEndedSoon)
        hasEndedSoon = false
        guard isPlain else { return "" }
        let (isHeldUp, silence, isAwaited) = core.link.perform {
            ($0.engine.isHeldUp(at: now), $0.engine.silence(at: now), $0.engine.endsWithoutAnswer > 0)
        }
        if isHeldUp { return " \(MQTTError.serverLostPatience)" }
        if silence >= Self.suspiciousSilence {
            return
                " Nothing had been sent or received for \(silence / 1_000_000_000) seconds: a proxy or load balancer may end connections that are idle for so long. Set keepAlive to a shorter time."
        }
        hasEndedSoon = !isAwaited && !core.supervisor.isStable(at: now)
        let id = core.clientIDTemplate
        guard hasEndedSoon, hadEndedSoon, !id.isEmpty, !id.utf8.contains(UInt8(ascii: "%")) else { return "" }
        return
            " It has done so twice soon after accepting it: if another client uses the client identifier '\(id)', the two end each other's connections. Give each client an identifier of its own."
    }

    /// The shortest time without traffic, in nanoseconds, after which usual proxies and load balancers end a connection.
    private static let suspiciousSilence: Int64 = 40_000_000_000

    /// A second CONNACK arrived, with a failure: why the server ends the connection.
    func ended(by connack: MQTTPacket.Connack) -> MQTTError {
        serverFailed = true
        return MQTTError(
            secondConnack: connack.reasonCode, properties: connack.properties,
            version: core.link.perform { $0.engine.version })
    }

    /// The connection broke the protocol or timed out: why.
    func failed(_ failure: MQTTConnectionFailure) -> MQTTError {
        if failure == .connectTimeout || failure == .authenticationTimeout, authenticationTask != nil {
            return MQTTError(
                .timedOut,
                "authentication.respond did not return in time: the server waits for this client's AUTH. Check what respond is waiting for."
            )
        }
        if failure == .connectTimeout, core.link.perform({ $0.engine.connectWaitsForStore }) {
            awaitsConnack = false
            return .connectWasHeld
        }
        serverFailed = true
        if case .connectTimeout = failure, core.opener.wasHurried {
            return MQTTError(.timedOut, "The server did not answer CONNECT " + StreamOpener.hurry)
        }
        let server = core.opener.server.map { "\($0)" } ?? "The server"
        let asksFor5 = core.link.perform { $0.engine.options.value.version == .v5_0 }
        guard isAccepted, case .violation(let violation) = failure else {
            return MQTTError(
                failure, isAnswerToConnect5: !isAccepted && asksFor5 && settings.fallbackVersions.isEmpty)
        }
        if let blocked = blockedSession.failed(
            violation, server: server, isShort: !core.supervisor.isStable(at: core.loop.now))
        {
            return blocked
        }
        let refused = blockedSession.refused
        if refused?.packet.type == .suback, violation.clause == MQTTEngine.clauseOfCodeCount {
            sendsSingleFilters = true
        }
        return MQTTError(violation, refused)
    }

    /// DISCONNECT arrived: why.
    func disconnected(_ packet: MQTTPacket.Disconnect) -> MQTTError {
        if !core.link.perform({ $0.engine.version.hasProperties }), !packet.reasonCode.isError {
            serverFailed = true
            return .disconnectedBefore5
        }
        // A server that is slow may read a CONNECT after the client has left it, and take that for another client.
        if packet.reasonCode == .sessionTakenOver,
            core.loop.now <= unansweredConnect.advanced(byNanoseconds: Self.lateness)
        {
            return MQTTError(
                .connectionLost,
                "A server reports that another client connected with the same client identifier. That is probably this client's own CONNECT, which was not answered in time, so that the client connects again. If it happens again, give each client an identifier of its own.",
                reasonCode: packet.reasonCode, properties: packet.properties)
        }
        serverFailed = true
        let now = core.loop.now
        let isHeldUp = packet.reasonCode == .keepAliveTimeout && core.link.perform { $0.engine.isHeldUp(at: now) }
        return MQTTError(
            disconnect: packet.reasonCode, properties: packet.properties,
            advice: isHeldUp
                ? MQTTError.serverLostPatience : adviceOnReference(packet.reasonCode, packet.properties))
    }

    /// For how long a CONNECT that was left without an answer may still be read, in nanoseconds.
    private static let lateness: Int64 = 120_000_000_000

    func connectionClosed() {
        // Before the connection counts as ended. One that ends with a redirection has counted it already.
        if core.supervisor.isStable(at: core.loop.now) {
            redirection.withLock { if $0?.next.isEmpty == true { $0?.count = 0 } }
        }
        if awaitsConnack { unansweredConnect = core.loop.now }
        awaitsConnack = false
        authenticationTask?.cancel()
        authenticationTask = nil
        blockedSession.connectionClosed(wasAccepted: isAccepted)
    }

    // MARK: After a failure

    /// Whether a server has just referred the client to another one, which is tried without a delay.
    private var hasNewServer: Bool {
        redirection.withLock { $0.map { $0.isFollowedAtOnce && !$0.next.isEmpty } ?? false }
    }

    /// What follows a failure.
    func verdict(on failure: MQTTError) -> ReconnectVerdict {
        // `begin` returns what CONNECT contains, and nothing for the handshakes below, which give no reason code.
        let beginsAnew = settings.authentication != nil && failure.reasonCode != nil
        let options = MQTTRetryOptions(
            hasNewServer: hasNewServer, hasOlderVersion: !isAccepted && !versionsLeft.isEmpty,
            hasCredentialsProvider: settings.credentials.isFresh || beginsAnew,
            hasAssignedIdentifier: core.clientIDTemplate.isEmpty && !core.name.isEmpty,
            mayBeAtLimit: wasAcceptedSinceStop && refusals < Self.maximumRefusals
                && !core.link.perform { $0.engine.version.hasProperties })
        let verdict = options.verdict(on: failure)
        return verdict == .wait && serverFailed ? .leaveServer : verdict
    }

    /// How often in a row a server of 3.1 or 3.1.1 may refuse a client that was accepted before: with the default delays
    /// that takes longer than a server needs to notice that the client's earlier connection is dead.
    private static let maximumRefusals: UInt8 = 10

    /// The client tries again at once: another server, without an identifier that the server has assigned and now refuses,
    /// or an older version. A connection that ends before CONNACK lowers the version the second time only: a server that is
    /// shutting down, or a proxy in front of it, ends connections whatever the version.
    func willRetry(after failure: MQTTError) {
        if hasNewServer { return }
        if failure.code == .refused, failure.reasonCode == .clientIdentifierNotValid {
            return core.link.perform { machine in
                machine.engine.clientID = ""
                // The session had that identifier.
                machine.engine.cleanStart = true
            }
        }
        guard !versionsLeft.isEmpty else { return }
        if failure.code == .connectionLost, !hasRepeatedVersion {
            hasRepeatedVersion = true
            return
        }
        let version = versionsLeft.removeFirst()
        use(version)
        core.news.tell(.versionChanged(version))
    }

    private func use(_ version: MQTTVersion) {
        let limit = settings.maximumInFlight(version)
        core.link.perform { machine in
            var configuration = machine.engine.configuration
            configuration.version = version
            configuration.maximumInFlight = limit
            machine.engine.configuration = configuration
        }
    }

    // MARK: Redirection

    /// What to do when CONNACK or DISCONNECT refers the client to another server; nil if it does not.
    func adviceOnReference(_ reason: MQTTReasonCode, _ properties: MQTTProperties) -> String? {
        guard reason == .useAnotherServer || reason == .serverMoved, let reference = properties.serverReference else {
            return nil
        }
        let name = "It refers clients to '\(OneLine.text(reference))'"
        guard settings.followsRedirects else {
            return "\(name): connect to that server, or set followsRedirects if you trust it with the credentials."
        }
        return core.opener.endpoints(inReference: reference).isEmpty
            ? "\(name), which is neither a host nor a URL with the scheme of the client's own: connect to it with its URL."
            : "\(name), which the client follows."
    }

    /// CONNACK or DISCONNECT refers the client to another server [MQTT 5.0 4.11].
    func noteRedirection(_ reason: MQTTReasonCode, _ properties: MQTTProperties) {
        guard reason == .useAnotherServer || reason == .serverMoved, settings.followsRedirects,
            let reference = properties.serverReference
        else { return }
        let endpoints = Array(core.opener.endpoints(inReference: reference).prefix(MQTTRedirection.limit))
        guard let first = endpoints.first else { return }
        let isPermanent = reason == .serverMoved
        let wasStable = core.supervisor.isStable(at: core.loop.now)
        redirection.withLock { known in
            let redirection = known ?? MQTTRedirection()
            known = redirection
            redirection.count = wasStable ? 1 : redirection.count + 1
            redirection.isFollowedAtOnce = redirection.count <= MQTTRedirection.limit
            redirection.next = endpoints
            redirection.isPermanent = isPermanent
        }
        core.news.tell(.redirected(to: first, isPermanent: isPermanent))
    }
}

// MARK: Authentication with several steps, and its renewal [MQTT 5.0 4.12]

extension MQTTNegotiation {
    func authenticationReceived(_ packet: MQTTPacket.Auth) {
        guard let authentication = settings.authentication else { return }
        if packet.reasonCode == .success {
            guard trusts(packet.properties) else { return }
            core.news.tell(.reauthenticated)
            return endReauthentications(.success(()))
        }
        let connection = connectionNumber
        let loop = core.loop
        loop.beginWork()
        // The engine accepts no other AUTH until this one is answered.
        authenticationTask = loop.startTask { [weak core] in
            await loop.asWork {
                let response: Result<[UInt8]?, any Error>
                do {
                    response = .success(try await authentication.respond(packet.properties.authenticationData))
                } catch {
                    response = .failure(error)
                }
                let client = core
                loop.execute {
                    loop.endWork()
                    client?.negotiation.respond(response, connection: connection)
                }
            }
        }
    }

    /// Whether the app trusts a server that has completed the authentication with these properties of CONNACK or AUTH. If it
    /// does not, the connection ends: nothing more leaves, and what has arrived meanwhile is not read.
    func trusts(_ properties: MQTTProperties) -> Bool {
        guard let verify = settings.authentication?.verify else { return true }
        do {
            try verify(properties.authenticationData)
            return true
        } catch {
            expectsNoConnack()
            core.connectionFailed(MQTTError(authentication: error))
            let now = core.loop.now
            core.link.perform { machine in
                try? machine.engine.disconnect(reason: .unspecifiedError, at: now)
                machine.asksToClose = true
            }
            core.link.dropConnection()
            return false
        }
    }

    private func respond(_ response: Result<[UInt8]?, any Error>, connection: Int) {
        // Ignore a response that arrives after its connection has closed.
        guard connection == connectionNumber, authenticationTask != nil else { return }
        authenticationTask = nil
        switch response {
        case .success(let data):
            let now = core.loop.now
            // A failure means that the connection is ending.
            core.link.perform { try? $0.engine.authenticate(data: data, at: now) }
        case .failure(let error):
            core.connectionFailed(MQTTError(authentication: error))
            core.link.dropConnection()
        }
    }

    /// Begins a renewal; the call ends when it is complete.
    func beginReauthentication(data: [UInt8]?, _ call: PendingCall<Result<Void, MQTTError>>) {
        if call.isOver { return }
        let now = core.loop.now
        do throws(MQTTUsageError) {
            try core.link.perform { machine throws(MQTTUsageError) in
                try machine.engine.authenticate(reason: .reauthenticate, data: data, at: now)
            }
            reauthentications.append(call)
            limit(call)
        } catch {
            call.end(.failure(core.explain(error)))
        }
    }

    /// Ends a call that waits for longer than ``MQTTConfiguration/connectTimeout`` because nothing is read. While the client
    /// reads, the engine notices what is late.
    private func limit(_ call: PendingCall<Result<Void, MQTTError>>) {
        let alarm = LoopAlarm(loop: core.loop) { [weak core] _ in
            guard let core, !call.isOver else { return }
            guard let reason = core.link.pauseReason else { return core.negotiation.limit(call) }
            call.end(
                .failure(
                    MQTTError(
                        .timedOut,
                        "The client read no answer to AUTH within connectTimeout, \(reason) The authentication may still be completed."
                    )))
        }
        alarm.set(core.loop.now.advanced(byNanoseconds: settings.engineOptions.value.connectTimeout))
    }

    func endReauthentications(_ result: Result<Void, MQTTError>) {
        let calls = reauthentications
        reauthentications = []
        for call in calls { call.end(result) }
    }
}

/// What the client could change about its next attempt, and what therefore follows a failure. A value without side effects;
/// any thread may use it.
struct MQTTRetryOptions {
    /// The server has just referred the client to another one, which has not been tried.
    var hasNewServer = false
    /// The server has not accepted this version, and an older one is left to try.
    var hasOlderVersion = false
    /// The application provides credentials for each attempt.
    var hasCredentialsProvider = false
    /// The client identifier is one that a server has assigned: another one can be had.
    var hasAssignedIdentifier = false
    /// A server has accepted the client, and `notAuthorized` may mean a limit that passes: before 5.0 there is no other code
    /// for it.
    var mayBeAtLimit = false

    func verdict(on failure: MQTTError) -> ReconnectVerdict {
        if failure.code == .storeFailed { return .giveUp }
        if hasNewServer { return .retryNow }
        if hasOlderVersion, mayMeanOtherVersion(failure) { return .retryNow }
        switch failure.code {
        case .badCredentials where mayBeAtLimit && failure.reasonCode == .notAuthorized:
            return hasCredentialsProvider ? .askForCredentialsOrWait : .wait
        case .badCredentials:
            let concernsCredentials =
                failure.reasonCode == .badUserNameOrPassword || failure.reasonCode == .notAuthorized
            return failure.verdict(hasCredentialsProvider: hasCredentialsProvider && concernsCredentials)
        case .takenOver, .sessionBlocked:
            return .giveUp
        case .refused where hasAssignedIdentifier && failure.reasonCode == .clientIdentifierNotValid:
            return .retryNow
        case .refused:
            let isFinal = failure.reasonCode == .clientIdentifierNotValid || failure.reasonCode == .banned
            return isFinal ? .giveUp : .wait
        default:
            return failure.verdict(hasCredentialsProvider: hasCredentialsProvider)
        }
    }

    /// Old servers reject an unknown version in different ways: some close the connection, some send a reply that MQTT 5.0
    /// forbids.
    private func mayMeanOtherVersion(_ failure: MQTTError) -> Bool {
        switch failure.code {
        case .unsupportedVersion, .protocolError: true
        case .connectionLost: failure.reasonCode == nil
        default: false
        }
    }
}

/// Where servers referred the client to.
final class MQTTRedirection {
    /// The servers of the last reference that were not tried: they are tried one after the other, for the next connection only
    /// (Use Another Server).
    var next: [Endpoint] = []
    /// The one of them that is tried.
    private var followed: Endpoint?
    /// From now on (Server Moved), by the place in the list of the server that moved: the one that has accepted.
    var permanent: [Int: Endpoint] = [:]
    /// Whether the last reference is for good.
    var isPermanent = false
    /// Whether the servers of the last reference are tried without a delay.
    var isFollowedAtOnce = false
    /// Redirections in a row without a stable connection between them: two servers may refer to each other for ever.
    var count = 0

    /// The number of redirections in a row that are followed at once; later ones wait as for a lost connection. As many
    /// servers of one reference are tried.
    static let limit = 8

    /// Where the next attempt leads to, for a server of the list; nil for that server itself.
    func takeNext(server: Int) -> Endpoint? {
        followed = next.isEmpty ? nil : next.removeFirst()
        return followed ?? permanent[server]
    }

    /// A server has accepted the connection.
    func accepted(server: Int) {
        if isPermanent, let followed { permanent[server] = followed }
        next = []
        followed = nil
    }
}

/// Recognises a packet that breaks the protocol and comes again on each connection, because the server resumes a session
/// that has it, or sends it again for each subscription. On the loop's thread only.
struct MQTTBlockedSession {
    /// Connections in a row that such a packet may end.
    static let maximumRepetitions = 3

    /// A packet that broke the protocol.
    struct Refused {
        let packet: MQTTRefusedPacket
        /// The filters of the SUBSCRIBE that it answers.
        let filters: [String]
    }

    /// Made for the first such packet; few clients ever receive one.
    private final class Record {
        /// The packet that broke the protocol on this connection.
        var refused: Refused?
        var last: (packet: MQTTRefusedPacket, violation: MQTTProtocolError)?
        var repetitions = 0
    }

    private var record: Record?
    /// Whether the open connection resumed a session.
    var isResumed = false

    /// The packet that broke the protocol on this connection.
    var refused: Refused? { record?.refused }

    mutating func refused(_ packet: MQTTRefusedPacket, filters: [String]) {
        let record = record ?? Record()
        record.refused = Refused(packet: packet, filters: filters)
        self.record = record
    }

    /// The server broke the protocol on a connection that it had accepted. Returns the error that ends the attempts, if the
    /// same packet has ended enough connections.
    ///
    /// - Parameters:
    ///   - server: the server's name for the error.
    ///   - isShort: whether the connection ends soon. Without a session only such ends count: a message that is published
    ///     from time to time ends one connection each time, and those between are of use.
    func failed(_ violation: MQTTProtocolError, server: String, isShort: Bool) -> MQTTError? {
        guard let record, let refused = record.refused else { return nil }
        guard isResumed || isShort else {
            record.repetitions = 0
            return nil
        }
        let isSame = record.last.map { $0.packet == refused.packet && $0.violation == violation } ?? false
        record.repetitions = isSame ? record.repetitions + 1 : 1
        record.last = (refused.packet, violation)
        guard record.repetitions >= Self.maximumRepetitions else { return nil }
        record.repetitions = 0
        return MQTTError(violation, refused, repeatedBy: server, isResumed: isResumed)
    }

    /// The connection has closed. If the server had accepted it and it ended for another reason, the count starts again.
    mutating func connectionClosed(wasAccepted: Bool) {
        if wasAccepted, record?.refused == nil { record = nil }
        isResumed = false
        record?.refused = nil
    }
}
