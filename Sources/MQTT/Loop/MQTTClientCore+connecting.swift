import MQTTCore
import Messaging
import Synchronization
import Transport

/// Where a server sent its client.
final class MQTTRedirection {
    /// For the next connection only (Use Another Server).
    var next: Endpoint?
    /// From now on (Server Moved), by the place in the list of the server that said so.
    var permanent: [Int: Endpoint] = [:]
    /// The reference that has just come is not followed yet.
    var isNew = false
    /// In a row, without a stable connection between them: two servers may send us to each other for ever.
    var count = 0

    /// How many redirects in a row are followed at once; those after them wait as for a lost connection.
    static let limit = 8
}

extension MQTTClientCore {
    func openStream(_ attempt: ConnectionAttempt) async throws(MQTTError) -> OpenedStream {
        do throws(MQTTUsageError) {
            try link.perform { machine throws(MQTTUsageError) in
                try machine.engine.configuration.checkConnectProperties()
            }
        } catch {
            throw MQTTError(error)
        }
        try await prepareStore()
        let other = redirection.withLock { redirection in
            defer { redirection?.next = nil }
            return redirection?.next ?? redirection?.permanent[attempt.server]
        }
        let server: BrokerURL
        do throws(TransportError) {
            server = try opener.choose(attempt.server, redirectedTo: other)
        } catch {
            throw MQTTError(connecting: error)
        }
        news.tell(.connecting(to: server))
        try await prepareCredentials(attempt, server)
        do throws(TransportError) {
            return try await opener.open(server, isRedirected: other != nil, deadline: attempt.deadline)
        } catch {
            throw MQTTError(connecting: error)
        }
    }

    private func prepareCredentials(_ attempt: ConnectionAttempt, _ server: BrokerURL) async throws(MQTTError) {
        do {
            let credentials = try await credentialsSource.credentials(for: attempt, at: server, on: loop)
            link.perform { $0.engine.configuration.use(credentials) }
        } catch {
            throw MQTTError(credentials: error)
        }
        do {
            if let authentication = configuration.authentication {
                let late = MQTTError(
                    .timedOut,
                    "The authentication's begin did not return within connectTimeout. Let it return sooner, or raise it."
                )
                let data = try await TimedCall.run(until: attempt.deadline, on: loop, late: late) {
                    try await authentication.begin()
                }
                link.perform { machine in
                    let isUsed = machine.engine.configuration.version.hasProperties
                    machine.engine.configuration.authenticationData = isUsed ? data : nil
                }
            }
        } catch let error as MQTTError where error.code == .timedOut {
            throw error
        } catch {
            throw MQTTError(.badCredentials, "the authentication failed: \(error)", underlying: error)
        }
    }

    func prepare(_ attempt: ConnectionAttempt) {
        connectDeadline = attempt.deadline
        guard attempt.server != triedServer else { return }
        triedServer = attempt.server
        // What one server refused says nothing of the next.
        if !wasEverAccepted, versionsLeft.count != configuration.fallbackVersions.count {
            versionsLeft = configuration.fallbackVersions
            use(configuration.version)
        }
    }

    /// What follows a failure; falls back to an older version if that is the reason to retry.
    func verdict(on failure: MQTTError, wasConnected: Bool) -> ReconnectVerdict {
        if !wasConnected, let server = opener.server { news.tell(.attemptFailed(server, failure)) }
        let hasNewServer = redirection.withLock { redirection in
            defer { redirection?.isNew = false }
            return redirection?.isNew ?? false
        }
        let options = MQTTRetryOptions(
            hasNewServer: hasNewServer, hasOlderVersion: !heldConnack && !versionsLeft.isEmpty,
            hasCredentialsProvider: credentialsSource.isFresh)
        let verdict = options.verdict(on: failure)
        if verdict == .retryNow, !hasNewServer {
            let version = versionsLeft.removeFirst()
            use(version)
            news.tell(.versionChanged(version))
        }
        return verdict
    }

    private func use(_ version: MQTTVersion) {
        let limit = configuration.inFlightLimit(version)
        link.perform { machine in
            machine.engine.configuration.version = version
            machine.engine.configuration.maximumInFlight = limit
        }
    }

    /// The connection under way does not ask for 5.0.
    var triesOlderVersion: Bool { link.perform { $0.engine.configuration.version != .v5_0 } }

    /// CONNACK came: what was tried to get here counts no more.
    func wasAccepted(_ info: MQTTConnectionInfo) {
        heldConnack = true
        wasEverAccepted = true
        versionsLeft = []
        // The session has begun: from now on this client goes on with it, if the server keeps it at all.
        let goesOn = info.version.hasProperties && info.sessionExpiry > 0
        let clientID = info.clientID
        link.perform { machine in
            if goesOn { machine.engine.configuration.cleanStart = false }
        }
        persistence.withLock { $0.journal }?.begin(clientID: clientID)
    }

    // MARK: Redirection

    /// The server names another one with its refusal or its farewell [MQTT 5.0 4.11].
    func noteRedirection(_ reason: MQTTReasonCode, _ properties: MQTTProperties) {
        guard reason == .useAnotherServer || reason == .serverMoved, configuration.followsRedirects,
            let reference = properties.serverReference,
            let endpoint = opener.endpoints(inReference: reference).first
        else { return }
        let isPermanent = reason == .serverMoved
        let wasStable = supervisor.isStable(at: MonotonicClock.now)
        redirection.withLock { known in
            let redirection = known ?? MQTTRedirection()
            known = redirection
            redirection.count = wasStable ? 1 : redirection.count + 1
            redirection.isNew = redirection.count <= MQTTRedirection.limit
            redirection.next = endpoint
            if isPermanent { redirection.permanent[triedServer] = endpoint }
        }
        news.tell(.redirected(to: endpoint, isPermanent: isPermanent))
    }

    // MARK: Authentication

    func authenticationReceived(_ packet: MQTTPacket.Auth) {
        guard let authentication = configuration.authentication else { return }
        if packet.reasonCode == .success {
            news.tell(.reauthenticated)
            let calls = reauthentications
            reauthentications = []
            for call in calls { call.end(.success(())) }
            return
        }
        let connection = connectionNumber
        // The engine takes no other AUTH until this one is answered.
        authenticationTask = Task { [weak self] in
            let answer: Result<[UInt8]?, any Error>
            do {
                answer = .success(try await authentication.respond(packet.properties.authenticationData))
            } catch {
                answer = .failure(error)
            }
            guard let self else { return }
            loop.execute { self.answerAuthentication(answer, connection: connection) }
        }
    }

    private func answerAuthentication(_ answer: Result<[UInt8]?, any Error>, connection: Int) {
        // An answer that took longer than its connection lived is nobody's.
        guard connection == connectionNumber, authenticationTask != nil else { return }
        authenticationTask = nil
        switch answer {
        case .success(let data):
            let now = MonotonicClock.now
            // A failure means that the connection is ending.
            link.perform { try? $0.engine.authenticate(data: data, at: now) }
        case .failure(let error):
            connectionFailed(MQTTError(.badCredentials, "the authentication failed: \(error)", underlying: error))
            link.dropConnection()
        }
    }

    /// Begins a renewal, whose end is the call's; on the loop's thread.
    func beginReauthentication(data: [UInt8]?, _ call: PendingCall<Result<Void, MQTTError>>) {
        if call.isOver { return }
        let now = MonotonicClock.now
        let refusal = link.perform { machine -> MQTTUsageError? in
            do throws(MQTTUsageError) {
                try machine.engine.authenticate(reason: .reauthenticate, data: data, at: now)
                return nil
            } catch {
                return error
            }
        }
        if let refusal {
            call.end(.failure(explain(refusal)))
        } else {
            reauthentications.append(call)
        }
    }

    func failReauthentications(_ failure: MQTTError) {
        let calls = reauthentications
        reauthentications = []
        for call in calls { call.end(.failure(failure)) }
    }
}
