import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// The parts of a client, and how they are connected: the link drives the engine, the supervisor opens connections, and
/// what happens is passed on to ``MQTTNegotiation``, ``MQTTSubscriptions`` and ``MQTTPersistence``.
///
/// The constants may be used on any thread. Methods are called on the loop's thread, except those of
/// `MQTTClientCore+calls.swift`, on callers' tasks, and `MQTTClientCore+opening.swift`, in the task of one attempt.
final class MQTTClientCore: ClientCore, @unchecked Sendable {
    // Sendable because the `var` is used on the loop's thread only, and the rest is constant or locked.
    typealias Failure = MQTTError
    typealias Event = MQTTEvent
    typealias Route = MQTTRoute

    let parts: ClientParts<MQTTClientCore>
    let settings: MQTTSettings
    /// As in the configuration, with `%` in it.
    let clientIDTemplate: String
    let loop: EventLoop
    let link: Link<MQTTMachine>
    let negotiation: MQTTNegotiation
    let subscriptions = MQTTSubscriptions()
    /// Nil without a session store.
    let persistence: MQTTPersistence?
    /// Why the connection is about to close, if that is known before it does.
    private var closeReason: Shared<MQTTError>?

    init(opener: StreamOpener, settings: MQTTSettings, clientID: String, loop: EventLoop, network: NetworkMonitor?) {
        parts = ClientParts(
            opener: opener, reconnect: settings.reconnect, serverOrder: settings.serverOrder,
            connectTimeout: .nanoseconds(settings.engineOptions.value.connectTimeout),
            network: settings.usesNetworkMonitor ? network ?? loop.networkMonitor : nil, loop: loop)
        self.settings = settings
        self.loop = loop
        clientIDTemplate = clientID
        let machine = MQTTMachine(
            engine: MQTTEngine(settings.engineOptions, clientID: MQTTSettings.expand(clientID, random: loop.random)),
            overflow: settings.queueOverflow, unmatched: settings.unmatched, loop: loop)
        link = Link(machine: machine, loop: loop, maximumOutboxBytes: settings.maximumOutboxBytes)
        negotiation = MQTTNegotiation(settings)
        persistence = settings.sessionStore.map { MQTTPersistence($0) }
        negotiation.core = self
        connectParts()
    }

    deinit {
        // Otherwise the loop would hold the link until the messages in its queue have expired.
        if link.perform({ $0.engine.forgetExpiry() }) { link.act(LinkAction(wakes: true)) }
        released()
    }

    // MARK: What the supervisor asks

    var credentialsSource: CredentialsSource { settings.credentials }
    func prepare(_ attempt: ConnectionAttempt) { negotiation.prepare(attempt) }
    func verdict(on failure: MQTTError) -> ReconnectVerdict { negotiation.verdict(on: failure) }
    func willRetry(after failure: MQTTError) { negotiation.willRetry(after: failure) }

    func checkConnection() {
        let now = loop.now
        link.perform { $0.engine.networkChanged(at: now) }
    }

    func connectionWillOpen() {
        closeReason = nil
        negotiation.connectionOpened()
    }

    /// While the client does not try to be connected, requests fail at once, and only `enqueue` adds to the queue.
    func stateWillChange(to state: MQTTConnectionState) {
        let reason: Shared<MQTTError>? =
            if case .disconnected(let failure) = state { Shared(.notSupervised(after: failure)) } else { nil }
        let queuesQoS0 = settings.queuesQoS0WhileOffline
        link.perform { machine in
            machine.publishers.reasonNotSupervised = reason
            if reason != nil { machine.unmatched.clientStopped() }
            if queuesQoS0, machine.engine.options.value.queuesQoS0WhileDisconnected != (reason == nil) {
                machine.engine.configuration.queuesQoS0WhileDisconnected = reason == nil
            }
        }
    }

    func readingStandsStill(for subscription: String) { answersStandStill(because: MQTTMachine.isSlow(subscription)) }

    /// All callers fail that wait for an answer.
    private func answersStandStill(because reason: String) {
        var ended = link.perform { $0.publishers.answersStandStill(because: reason) }
        ended.resume()
        subscriptions.answersStandStill(because: reason)
    }

    /// The session store has stored nothing for `requestTimeout`. Acknowledgements, new messages and SUBSCRIBE wait for it: so do
    /// answers.
    func storeIsSilent() {
        news.tell(.storeUnanswered)
        // First: those who wait for room in the queue would find some, and then wait for the store.
        answersStandStill(because: MQTTMachine.storeIsSilent)
        var ended = MQTTEndedPublishers()
        var unstored = link.perform { $0.takeUnstored(&ended) }
        unstored.resume(returning: .failure(.messageIsNotStored))
        ended.resume()
    }

    func stop(_ failure: MQTTError) {
        var ended = link.perform { machine in
            defer { machine.flushRecords() }
            return machine.publishers.stop(failure, &machine.engine)
        }
        ended.resume()
        persistence?.stop(failure)
        subscriptions.stop(failure)
        negotiation.wasAcceptedSinceStop = false
        negotiation.endReauthentications(.failure(failure))
    }

    // MARK: What happened to the connection

    /// Notes why the connection is about to close; the first reason counts.
    func connectionFailed(_ error: MQTTError) {
        if closeReason == nil { closeReason = Shared(error) }
    }

    /// The connection ends without CONNECT, so that no answer to it can come late.
    func connectWasNotSent(_ error: MQTTError) {
        negotiation.expectsNoConnack()
        connectionFailed(error)
    }

    /// The session store has failed. No connection may follow this one, whatever else ends it.
    func storeFailed(_ error: MQTTError) { closeReason = Shared(error) }

    func connectionClosed(_ error: TransportError?) {
        let isLost = supervisor.isConnected
        let isOurs = endMove()
        let hint =
            negotiation.isAccepted
            ? negotiation.hintAtEnd(isPlain: isLost && !isOurs && closeReason == nil && error == nil)
            : opener.hintAtTLS + negotiation.hintAtVersion
        let reason = closeReason?.value ?? MQTTError(lost: error, hint: hint)
        closeReason = nil
        let isRepeated = link.perform { $0.engine.endsWithoutAnswer } > 1
        let cause: ConnectionEndCause =
            negotiation.endsForRequest ? .refusedRequest : isRepeated ? .missingAnswer : .other
        negotiation.endsForRequest = false
        negotiation.connectionClosed()
        subscriptions.connectionClosed(reason)
        negotiation.endReauthentications(.failure(reason))
        supervisor.ended(reason, for: cause, at: loop.now)
        // After the state has changed.
        if isLost { news.tell(.connectionLost(reason)) }
    }

    func handle(_ event: MQTTEngineEvent.Kind) {
        switch event {
        case .connected(let info):
            connected(info)
        case .connectionRefused(let connack):
            refused(connack)
        case .packetRefused(let packet):
            negotiation.blockedSession.refused(packet)
        case .invalidMessageDropped(let topic, let violation):
            news.tell(.invalidMessageDropped(topic: topic, violation))
        case .connectionFailed(let failure):
            if case .acknowledgementTimeout(let topic, let qos, let silence) = failure {
                news.tell(.acknowledgementTimedOut(topic: topic, qos, after: .nanoseconds(silence)))
            }
            connectionFailed(negotiation.failed(failure))
        case .disconnectReceived(let packet):
            negotiation.noteRedirection(packet.reasonCode, packet.properties)
            connectionFailed(negotiation.disconnected(packet))
            news.tell(.disconnectedByServer(packet.reasonCode, packet.properties))
        case .subscribeCompleted(let request, let codes, let properties):
            subscriptions.subscribeCompleted(request, codes, properties)
        case .unsubscribeCompleted(let request, let codes, let properties):
            subscriptions.unsubscribeCompleted(request, codes, properties)
        case .requestLate(let request):
            subscriptions.requestLate(request)
        case .requestFailed(let request):
            subscriptions.requestFailed(request)
        case .requestNotWritten(let request, let error):
            subscriptions.notWritten(request, error)
        case .sessionLost(let republished, let duplicates):
            news.tell(.sessionLost(republished: republished, possibleDuplicates: duplicates.count))
        case .requestRefused(let refusal):
            negotiation.endsForRequest = true
            guard case .subscription(let filters) = refusal.request else { break }
            subscriptions.subscribeRefused(filters, MQTTError(refusal), token: refusal.token)
        case .requestPassedOver(let refusal):
            news.tell(.requestPassedOver(MQTTError(passedOver: refusal)))
        case .exactlyOnceUnavailable:
            news.tell(.exactlyOnceUnavailable)
        case .receiveMaximumExceeded(let maximum):
            news.tell(.receiveMaximumExceeded(maximum))
        case .pingAnswered(let nanoseconds):
            news.tell(.pingAnswered(.nanoseconds(nanoseconds)))
            link.expectSilence()
        case .authenticationReceived(let packet):
            negotiation.authenticationReceived(packet)
        case .acknowledgementProperties:
            // They are in the publisher's answer.
            break
        case .connectReceived, .subscribeReceived, .unsubscribeReceived:
            // A client's engine does not report what only servers receive.
            break
        }
    }

    /// Whether it is known that no server tells with Subscription Identifiers which filters a message matches.
    var lacksIdentifiers: Bool {
        link.perform { machine in
            if machine.engine.phase == .connected { return !machine.engine.sendsIdentifiers }
            // A version that was tried and not accepted may not be the next one.
            let version = negotiation.wasEverAccepted ? machine.engine.version : settings.version
            return !version.hasProperties && !settings.fallbackVersions.contains(.v5_0)
        }
    }

    private func connected(_ info: MQTTConnectionInfo) {
        // Before 5.0 there is no authentication to complete.
        if info.version.hasProperties, !negotiation.trusts(info.properties) { return }
        parts.counters.connected()
        negotiation.accepted(info)
        persistence?.journal?.begin(clientID: info.clientID)
        subscriptions.endConflicts()
        // Resubscribe first, so that messages published in reaction to `.connected` reach the existing subscriptions. Without
        // that messages of every QoS wait.
        subscriptions.reconcile()
        supervisor.established(at: loop.now)
        news.tell(.connected(info))
        link.expectSilence()
    }

    /// CONNACK refuses the client, or ends a connection that was accepted.
    private func refused(_ connack: MQTTPacket.Connack) {
        negotiation.noteRedirection(connack.reasonCode, connack.properties)
        if negotiation.isAccepted { return connectionFailed(negotiation.ended(by: connack)) }
        negotiation.refused(connack.reasonCode)
        let (version, hadCredentials) = link.perform { machine in
            let options = machine.engine.options.value
            return (
                machine.engine.version,
                options.userName != nil || options.password != nil || options.authenticationMethod != nil
            )
        }
        connectionFailed(
            MQTTError(
                connack: connack.reasonCode, properties: connack.properties, hadCredentials: hadCredentials,
                version: version, referral: negotiation.adviceOnReference(connack.reasonCode, connack.properties)))
    }

    // MARK: Leaving

    /// For up to two seconds, less than the supervisor waits for the end, finishes the exchanges that come before
    /// DISCONNECT, then writes DISCONNECT as the last packet.
    ///
    /// - Parameter atOnce: writes DISCONNECT without that.
    /// - Returns: false if DISCONNECT has been written already, or the connection has ended.
    @discardableResult
    func sayGoodbye(_ reason: MQTTReasonCode, properties: MQTTProperties, atOnce: Bool = false) -> Bool {
        var isSent = false
        link.performNow { machine, afterLock, now in
            do throws(MQTTUsageError) {
                if atOnce {
                    try machine.engine.disconnect(reason: reason, properties: properties, at: now)
                } else {
                    try machine.engine.leave(
                        reason: reason, properties: properties, within: 2_000_000_000, at: now,
                        into: &afterLock.work.effects)
                }
                machine.collectApart(at: now, into: afterLock)
                isSent = true
            } catch {
                machine.asksToClose = true
            }
        }
        return isSent
    }

    func sayGoodbye() { sayGoodbye(.normalDisconnection, properties: []) }
}
