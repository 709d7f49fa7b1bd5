import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

/// What the client actor, its subscriptions and the loop share.
final class MQTTClientCore: SupervisedClient, SubscriptionOwner, @unchecked Sendable {
    // Sendable because the `var`s are touched on the loop's thread only and the rest is constant or locked.
    typealias Failure = MQTTError

    let opener: StreamOpener
    let configuration: MQTTConfiguration
    let loop: EventLoop
    let link: Link<MQTTMachine>
    let supervisor: Supervisor<MQTTClientCore>
    let news = ClientNews<MQTTConnectionState, MQTTEvent>(.disconnected(nil))
    let counters = ClientCounting()

    // The loop's thread only.
    private(set) var knownRouter: MQTTRouter?
    /// By the token of UNSUBSCRIBE.
    var unsubscribes: [UInt64: PendingCall<Result<MQTTUnsubscribeResult, MQTTError>>] = [:]
    /// Why the connection is about to close, found before it did.
    private var closeReason: Shared<MQTTError>?
    var pausedRoutes: [MQTTRoute] = []
    /// Made with the first subscription; from any thread.
    private let knownUnread = Lock<UnreadBytes?>(nil)
    /// Versions that are left to try.
    var versionsLeft: [MQTTVersion]
    /// The place in the list of the server that is tried, and whether any has ever accepted.
    var triedServer = 0
    var wasEverAccepted = false
    /// Whether the connection under way was accepted.
    var heldConnack = false
    /// Where the server sent us, and how often in a row; nil as long as none did.
    let redirection = Lock<MQTTRedirection?>(nil)
    /// What may keep a session from being resumed.
    var blockedSession = MQTTBlockedSession()
    /// Counts the connections that were opened.
    var connectionNumber = 0
    /// Who waits for the end of a renewed authentication.
    var reauthentications: [PendingCall<Result<Void, MQTTError>>] = []
    /// Answers the server's last AUTH; ends with the connection.
    var authenticationTask: Task<Void, Never>?
    /// When the attempt that is under way is late.
    var connectDeadline = Int64.max
    let persistence = Lock(MQTTPersistence())

    init(opener: StreamOpener, configuration: MQTTConfiguration, loop: EventLoop) {
        self.opener = opener
        self.configuration = configuration
        self.loop = loop
        versionsLeft = configuration.fallbackVersions
        let machine = MQTTMachine(
            engine: MQTTEngine(configuration: configuration.engineConfiguration),
            dropsOldest: configuration.queueOverflow == .dropOldest,
            keeps: configuration.rest.derived.unmatchedMessagePolicy)
        link = Link(machine: machine, loop: loop, maximumOutboxBytes: configuration.maximumOutboxBytes)
        supervisor = Supervisor(
            policy: configuration.rest.derived.reconnect, serverCount: opener.serverCount,
            serverOrder: configuration.serverOrder, connectTimeout: configuration.connectTimeout.inNanoseconds,
            loop: loop)
        supervisor.supervise(self)
        link.perform { $0.core = self }
    }

    deinit {
        // The client is gone without a disconnect: the server sees the connection end and publishes the will.
        link.dropConnection()
        news.finish()
        (link.tap as? FrameInspector<MQTTPacketRecord>)?.finish()
    }

    var credentialsSource: CredentialsSource {
        CredentialsSource(fixed: configuration.credentials, provider: configuration.credentialsProvider)
    }

    /// Made with the first subscription or message.
    var router: MQTTRouter {
        if let knownRouter { return knownRouter }
        let made = MQTTRouter()
        knownRouter = made
        return made
    }

    // MARK: SupervisedClient

    static var stopped: MQTTError { .disconnectedByUser }

    func attach(_ opened: OpenedStream) {
        closeReason = nil
        heldConnack = false
        connectionNumber += 1
        link.attach(opened.stream, layers: opened.layers)
    }

    func dropConnection() {
        link.dropConnection()
    }

    func stateChanged(to state: MQTTConnectionState) {
        supervise(state)
        // Before waiters are resumed, so that they find the state that goes with the end.
        news.stateChanged(to: state)
        news.tell(.stateChanged(state))
        if case .disconnected(let failure) = state { giveUp(failure ?? .disconnectedByUser) }
    }

    /// Without supervision requests fail at once, and no message is queued but by `enqueue`.
    private func supervise(_ state: MQTTConnectionState) {
        let refusal: Shared<MQTTError>? =
            if case .disconnected(let failure) = state { Shared(.notSupervised(after: failure)) } else { nil }
        let queuesQoS0 = configuration.queuesQoS0WhileOffline
        link.perform { machine in
            machine.refusal = refusal
            if queuesQoS0 { machine.engine.configuration.queuesQoS0WhileDisconnected = refusal == nil }
        }
    }

    /// Nobody will open another connection: everybody who waits hears of it, and all subscriptions end.
    private func giveUp(_ failure: MQTTError) {
        var waiters = Resumptions<MQTTMachine.PublishAnswer>()
        var ends = UniqueArray<Resumption<Result<Void, MQTTError>>>()
        var rooms = link.perform { machine in
            machine.dropUnsent()
            machine.publishes.answerAll(.failure(failure), into: &waiters)
            for batch in machine.batches.all {
                batch.failure = failure
                if let end = batch.takeEnd() { ends.append(end) }
            }
            machine.batches = MQTTPublishBatches()
            return machine.takeRoomWaiters()
        }
        // Those find out by themselves that there is no connection.
        rooms.resume(returning: ())
        waiters.resume()
        ends.drain { $0.resume() }
        let isOrderly = failure.code == .disconnected
        for entry in knownRouter?.takeAllEntries() ?? [] {
            for (wait, _) in entry.waiters { wait.fail(failure) }
            for route in entry.routes { route.finish(isOrderly ? .finished : .failed(failure)) }
        }
        knownRouter?.unmatched?.finish(.finished)
        failUnsubscribes(failure)
        failReauthentications(failure)
    }

    func failUnsubscribes(_ failure: MQTTError) {
        let calls = unsubscribes.values
        unsubscribes = [:]
        for call in calls { call.end(.failure(failure)) }
    }

    // MARK: What happened to the connection; on the loop's thread

    func connectionFailed(_ error: MQTTError) {
        if closeReason == nil { closeReason = Shared(error) }
    }

    func connectionClosed(_ error: TransportError?) {
        knownRouter?.connectionClosed()
        authenticationTask?.cancel()
        authenticationTask = nil
        blockedSession.connectionClosed()
        pausedRoutes = []
        let reason = closeReason?.value ?? MQTTError(lost: error, hint: heldConnack ? "" : opener.hintAtTLS)
        closeReason = nil
        failUnsubscribes(reason)
        failReauthentications(reason)
        supervisor.ended(reason, at: MonotonicClock.now)
    }

    func handle(_ event: MQTTEngineEvent.Kind) {
        switch event {
        case .connected(let info):
            counters.connected()
            // 3.1 has no Session Present.
            blockedSession.isResumed = info.sessionPresent || info.version == .v3_1 && !configuration.cleanStart
            wasAccepted(info)
            // First, so that messages published in reaction to `.connected` reach the existing subscriptions.
            resubscribe(sessionPresent: info.sessionPresent)
            supervisor.established(at: MonotonicClock.now)
            news.tell(.connected(info))
            link.expectSilence()
        case .connectionRefused(let connack):
            noteRedirection(connack.reasonCode, connack.properties)
            connectionFailed(MQTTError(refusal: connack.reasonCode, properties: connack.properties))
        case .packetRefused(let packet):
            blockedSession.refused(packet)
        case .invalidMessageDropped(let topic, let violation):
            news.tell(.invalidMessageDropped(topic: topic, violation))
        case .connectionFailed(let failure):
            if let blocked = sessionIsBlocked(by: failure) { return connectionFailed(blocked) }
            connectionFailed(MQTTError(failure, isAnswerToConnect5: !heldConnack && !triesOlderVersion))
        case .disconnectReceived(let packet):
            noteRedirection(packet.reasonCode, packet.properties)
            connectionFailed(MQTTError(disconnect: packet.reasonCode, properties: packet.properties))
            news.tell(.disconnectedByServer(packet.reasonCode, packet.properties))
        case .subscribeCompleted(let token, let codes, let properties):
            subscribeCompleted(token, codes, properties)
        case .unsubscribeCompleted(let token, let codes, let properties):
            unsubscribeCompleted(token, codes, properties)
        case .requestLate(let token), .requestFailed(let token):
            requestFailed(token, isLate: { if case .requestLate = event { true } else { false } }())
        case .sessionLost(let republished, let duplicates):
            news.tell(.sessionLost(republished: republished, possibleDuplicates: duplicates.count))
        case .exactlyOnceUnavailable:
            news.tell(.exactlyOnceUnavailable)
        case .pingAnswered(let nanoseconds):
            news.tell(.pingAnswered(.nanoseconds(nanoseconds)))
            link.expectSilence()
        case .authenticationReceived(let packet):
            authenticationReceived(packet)
        case .acknowledgementProperties:
            break
        case .connectReceived, .subscribeReceived, .unsubscribeReceived:
            // A client's engine does not report what only servers receive.
            break
        }
    }

    // MARK: Flow

    func acknowledge(_ delivery: UInt64) {
        let now = MonotonicClock.now
        link.perform { machine in
            if delivery & MQTTKeeper.deliveryBit != 0 {
                // Acknowledged to the server long ago; now it is kept no more.
                machine.noteEnds(machine.keeper.confirm(delivery & ~MQTTKeeper.deliveryBit))
            } else {
                machine.engine.acknowledge(delivery, at: now)
            }
            machine.flushRecords()
        }
    }

    /// What waits in all subscriptions.
    var unread: UnreadBytes {
        knownUnread.withLock { known in
            if let known { return known }
            let made = UnreadBytes(maximum: configuration.maximumUnreadBytes) { [weak self] in self?.drained() }
            known = made
            return made
        }
    }

    func pauseReading(for route: MQTTRoute) {
        if !pausedRoutes.contains(where: { $0 === route }) { pausedRoutes.append(route) }
        pauseReading()
    }

    func pauseReading() {
        let now = MonotonicClock.now
        link.perform { $0.setReceiversFull(true, at: now) }
    }

    /// A receiver has emptied a full buffer to half, or a full buffer is needed no more; from any thread.
    func drained() {
        loop.execute {
            self.pausedRoutes.removeAll { !$0.isFull }
            let resumes = self.pausedRoutes.isEmpty && !self.unread.isFull
            let now = MonotonicClock.now
            self.link.perform { machine in
                machine.acknowledgeWithheld(at: now)
                if resumes { machine.setReceiversFull(false, at: now) }
            }
        }
    }
}
