import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization
import Transport

/// How a client gets accepted by a server: versions, redirection, and whether another attempt is worthwhile.
///
/// On the loop's thread.
final class MQTTNegotiation: @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.

    /// The client, which owns this object; set before anything else.
    unowned var core: MQTTClientCore!
    var settings: MQTTSettings { core.settings }
    /// Counts the authentications that have ended, with CONNACK or with their connection.
    private(set) var authenticationNumber = 0
    /// The versions that are left to try.
    private var versionsLeft: [MQTTVersion]
    /// Where servers referred the client to; nil as long as none did.
    let redirection = Lock<MQTTRedirection?>(nil)
    /// The callers that wait until a renewed authentication is complete.
    var reauthentications: [PendingCall<Result<Void, MQTTError>>] = []
    /// Responds to the server's last AUTH.
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
    /// Whether the connection that closes has ended because of a request, which has failed.
    var endsForRequest = false
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
        // Another server may accept a version that the last one refused. Even the same server may not have refused a
        // version: a server that is starting, or a proxy in front of it, closes connections whatever the version.
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
        if acceptedServer != 0, acceptedServer != hashOfServer { core.link.perform { $0.engine.serverChanges() } }
    }

    /// A hash of the server, which is never 0.
    private var hashOfServer: UInt32 { UInt32(truncatingIfNeeded: core.opener.server?.endpoint.hashValue ?? 0) | 1 }

    /// Whether any server has accepted a connection.
    var wasEverAccepted: Bool { acceptedServer != 0 }

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
        // The server may not have waited for the last response.
        endAuthentication()
        wasAcceptedSinceStop = true
        refusals = 0
        acceptedServer = hashOfServer
        versionsLeft = []
        redirection.withLock { $0?.accepted(server: Int(triedServer)) }
        blockedSession.isResumed = info.continuesSession
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
        return MQTTError.hintAtOlderServer
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
        if silence >= Self.suspiciousSilence { return MQTTError.hint(atSilence: silence) }
        hasEndedSoon = !isAwaited && !core.supervisor.isStable(at: now)
        let id = core.clientIDTemplate
        guard hasEndedSoon, hadEndedSoon, !id.isEmpty, !id.utf8.contains(UInt8(ascii: "%")) else { return "" }
        return MQTTError.hint(atSharedIdentifier: id)
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
            return .respondIsLate
        }
        if failure == .connectTimeout, core.link.perform({ $0.engine.connectWaitsForStore }) {
            awaitsConnack = false
            return .connectWasHeld
        }
        serverFailed = true
        if case .connectTimeout = failure, core.opener.wasHurried {
            return .hurriedConnectIsUnanswered
        }
        let asksFor5 = core.link.perform { $0.engine.options.value.version == .v5_0 }
        guard isAccepted, case .violation(let violation) = failure else {
            return MQTTError(
                failure, isAnswerToConnect5: !isAccepted && asksFor5 && settings.fallbackVersions.isEmpty)
        }
        if let blocked = blockedSession.failed(
            violation, server: core.opener.server, isShort: !core.supervisor.isStable(at: core.loop.now))
        {
            return blocked
        }
        return MQTTError(violation, blockedSession.refused)
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
            return .takenOverByOwnConnect(packet)
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
        // Before the connection counts as ended. A connection that ends with a redirection has counted it already.
        if core.supervisor.isStable(at: core.loop.now) {
            redirection.withLock { if let known = $0, known.next == nil { known.count = 0 } }
        }
        if awaitsConnack { unansweredConnect = core.loop.now }
        awaitsConnack = false
        endAuthentication()
        blockedSession.connectionClosed(wasAccepted: isAccepted)
    }

    /// The server waits for no response any more.
    private func endAuthentication() {
        authenticationNumber += 1
        authenticationTask?.cancel()
        authenticationTask = nil
    }

    // MARK: After a failure

    /// Whether a server has just referred the client to another one, which is tried without a delay.
    private var hasNewServer: Bool {
        redirection.withLock { $0?.isFollowedAtOnce ?? false }
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
        guard settings.followsRedirects else { return MQTTError.advice(onUnfollowedReference: reference) }
        return core.opener.endpoint(inReference: reference) == nil
            ? MQTTError.advice(onUnusableReference: reference) : MQTTError.remark(onFollowedReference: reference)
    }

    /// CONNACK or DISCONNECT refers the client to another server [MQTT 5.0 4.11].
    func noteRedirection(_ reason: MQTTReasonCode, _ properties: MQTTProperties) {
        guard reason == .useAnotherServer || reason == .serverMoved, settings.followsRedirects,
            let endpoint = properties.serverReference.flatMap(core.opener.endpoint(inReference:))
        else { return }
        let isPermanent = reason == .serverMoved
        let wasStable = core.supervisor.isStable(at: core.loop.now)
        redirection.withLock { known in
            let redirection = known ?? MQTTRedirection()
            known = redirection
            redirection.count = wasStable ? 1 : redirection.count + 1
            redirection.next = .init(endpoint: endpoint, isPermanent: isPermanent)
        }
        core.news.tell(.redirected(to: endpoint, isPermanent: isPermanent))
    }
}
