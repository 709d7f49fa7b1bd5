import MessagingShell
import MessagingWire
import STOMPCore
import Synchronization
import Transport

/// The parts of a client, and how they are connected: the link drives the engine, the supervisor opens connections, and
/// what happens is passed on to ``STOMPSubscriptions``.
///
/// The constants may be used on any thread. The methods of this file run on the loop's thread, those of
/// `STOMPClientCore+calls.swift` on any.
final class STOMPClientCore: ClientCore, @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.
    typealias Failure = STOMPError
    typealias Event = STOMPEvent
    typealias Route = STOMPRoute

    let parts: ClientParts<STOMPClientCore>
    let configuration: STOMPConfiguration
    let loop: EventLoop
    let link: Link<STOMPMachine>
    /// Numbers of subscriptions and requests.
    let ids = Atomic<UInt64>(1)
    let credentialsSource: CredentialsSource
    let subscriptions = STOMPSubscriptions()
    /// Whether the broker that was connected last expects the lifetime of a message rather than the time when it ends; from
    /// any thread.
    let expiresRelatively = Atomic(false)
    /// Why the connection is about to close, if that is known before it does.
    private var closeReason: STOMPError?
    /// Why this client ends the connection, if it does so without DISCONNECT: it explains what follows.
    private var givenUp: STOMPError?

    init(opener: StreamOpener, configuration: STOMPConfiguration, loop: EventLoop, network: NetworkMonitor?) {
        parts = ClientParts(
            opener: opener, reconnect: Shared(configuration.reconnect), serverOrder: configuration.serverOrder,
            connectTimeout: configuration.connectTimeout,
            network: configuration.usesNetworkMonitor ? network ?? loop.networkMonitor : nil, loop: loop)
        var configuration = configuration
        // At least 1: an outbox that is full when it is empty would never have room.
        configuration.maximumOutboxBytes = max(1, configuration.maximumOutboxBytes)
        self.configuration = configuration
        self.loop = loop
        let machine = STOMPMachine(engine: STOMPEngine(configuration: configuration.engineConfiguration))
        link = Link(machine: machine, loop: loop, maximumOutboxBytes: configuration.maximumOutboxBytes)
        credentialsSource = CredentialsSource(
            fixed: configuration.credentials, provider: configuration.credentialsProvider)
        connectParts()
    }

    deinit { released() }

    // MARK: What the supervisor asks

    func connectionWillOpen() { (closeReason, givenUp) = (nil, nil) }

    func verdict(on failure: STOMPError) -> ReconnectVerdict {
        let verdict = failure.verdict(hasCredentialsProvider: credentialsSource.isFresh)
        return verdict == .wait && failure.isSilenceOrViolation ? .leaveServer : verdict
    }

    func readingStandsStill(for subscription: String) {
        let (afterLock, now) = (STOMPAfterLock.apart(on: loop), loop.now)
        link.perform { $0.readingStandsStill(at: now, into: afterLock) }
        afterLock.perform(RawSpan())
        subscriptions.readingStandsStill()
    }

    func stop(_ failure: STOMPError) {
        var waiters = link.perform { $0.receipts.takeAll() }
        waiters.resume(returning: .failure(failure))
        subscriptions.stop(failure)
    }

    // MARK: What happened to the connection

    func connectionClosed(_ error: TransportError?) {
        // The engine only noticed that the connection ended; the stream may know why.
        let engineKnowsMore = error == nil || closeReason?.endedWithoutReason != true
        var reason = engineKnowsMore ? closeReason ?? STOMPError(lost: error) : STOMPError(lost: error)
        if closeReason?.endedBeforeConnected == true { reason = reason.hinting(opener.hintAtTLS) }
        if !supervisor.isConnected { reason = reason.hinting(opener.hintAtSockJS) }
        reason = givenUp ?? subscriptions.naming(reason)
        (closeReason, givenUp) = (nil, nil)
        // Nobody called `disconnect()`.
        let isMove = endMove() && reason.code == .disconnected
        subscriptions.connectionClosed(isMove ? .leftForOtherServer : reason)
        let isLost = supervisor.isConnected
        supervisor.ended(reason, at: loop.now)
        // After the state has changed.
        if isLost { news.tell(.connectionLost(reason)) }
    }

    /// The session is over, and its stream is still open: nothing can be sent any more.
    func connectionIsEnding() {
        guard supervisor.isConnected else { return }
        news.stateChanged(to: .disconnecting)
        news.tell(.stateChanged(.disconnecting))
    }

    /// - Parameter written: the results of the SUBSCRIBE frames that were written with CONNECTED.
    func handle(_ event: STOMPEngineEvent.Kind, _ written: [STOMPSubscriptions.Written] = []) {
        switch event {
        case .connected(let connected):
            if connected.profile.sendsBytesAsText { link.stopValidatingText() }
            expiresRelatively.store(connected.profile.expiry == .relative, ordering: .relaxed)
            parts.counters.connected()
            // SUBSCRIBE is written already: messages sent in reaction to `.connected` reach the existing subscriptions.
            for (route, result) in written { subscriptions.subscribeWritten(route, result) }
            subscriptions.sendProvided()
            supervisor.established(at: loop.now)
            news.tell(.connected(connected))
            if configuration.asksForHeartBeats, connected.heartBeat.incoming == 0, let server = opener.server {
                news.tell(.heartBeatsDeclined(by: server))
            }
        case .errorReceived(let error):
            news.tell(.errorReceived(error))
        case .acknowledgementTimedOut(let receiptID, let silence):
            news.tell(.acknowledgementTimedOut(receiptID: receiptID, after: .nanoseconds(silence)))
        case .connectionFailed(let failure):
            let reason = STOMPError(failure)
            closeReason = reason
            if let token = failure.subscription {
                subscriptions.messageRefused(token, wasStable: supervisor.isStable(at: loop.now), reason)
            }
            if failure.reason == .connectTimeout, opener.wasHurried {
                closeReason = .hurriedConnectIsUnanswered(failure)
            } else if failure.reason == .connectTimeout, opener.sendsBinaryMessages {
                closeReason = .binaryConnectIsUnanswered(failure)
            }
        case .disconnected:
            closeReason = .disconnectedByUser
        case .unknownFrameReceived(let frame):
            news.tell(.unknownFrameReceived(frame))
        case .connectReceived, .subscribeReceived, .unsubscribeReceived, .ackReceived, .nackReceived, .beginReceived,
            .commitReceived, .abortReceived, .disconnectReceived:
            // A client's engine does not report what only servers receive.
            break
        }
    }

    func unmatched(_ count: Int) { news.tell(.unmatchedMessages(count)) }

    // MARK: Leaving

    /// Ends the connection to a server that does not answer, without DISCONNECT: the next connection repeats what was not
    /// answered. The first reason counts. After DISCONNECT this changes nothing, because what waits before it is still sent.
    func giveUpConnection(_ reason: STOMPError) {
        if link.perform(urgent: true, { $0.giveUp() }) { givenUp = givenUp ?? reason }
    }

    /// Writes DISCONNECT with a receipt; the connection ends when the receipt arrives, or without it after two seconds.
    func sayGoodbye() {
        let now = loop.now
        link.perform(urgent: true) { machine in
            do throws(STOMPUsageError) {
                try machine.engine.disconnect(at: now)
            } catch  where error.code == .disconnecting {
                // DISCONNECT has been written, and its receipt is awaited.
            } catch {
                // There is no session that DISCONNECT could end.
                machine.asksToClose = true
            }
        }
    }
}
