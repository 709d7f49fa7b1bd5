import Messaging
import STOMPCore
import Synchronization
import Transport
import Wire

/// What the client actor, its subscriptions and the loop share.
final class STOMPClientCore: SupervisedClient, SubscriptionOwner, @unchecked Sendable {
    // Sendable because the fields below "The loop's thread only" are, and the rest is constant or locked.
    typealias Failure = STOMPError

    let opener: StreamOpener
    let credentialsSource: CredentialsSource
    let configuration: STOMPConfiguration
    let loop: EventLoop
    let link: Link<STOMPMachine>
    let supervisor: Supervisor<STOMPClientCore>
    let news = ClientNews<STOMPConnectionState, STOMPEvent>(.disconnected(nil))
    let counters = ClientCounting()
    let ids = Atomic<UInt64>(1)
    /// Whether the broker that is connected wants to hear how long a message lives rather than until when.
    let expiresRelatively = Atomic(false)
    /// Why the configuration cannot be said in CONNECT.
    let misconfiguration: STOMPError?

    // The loop's thread only.
    var routes: [UInt64: STOMPRoute] = [:]
    /// By the number of the receipt that is awaited.
    var unsubscribes: [UInt64: STOMPRoute.Call] = [:]
    var profile = STOMPBrokerProfile.generic
    /// When the attempt that is under way is late.
    var connectDeadline = Int64.max
    private var closeReason: STOMPError?
    private var pausedRoutes = PausedRoutes<STOMPRoute>()
    private let knownUnread = MadeOnce<UnreadBytes>()

    init(opener: StreamOpener, configuration: STOMPConfiguration, loop: EventLoop) {
        self.opener = opener
        self.configuration = configuration
        self.loop = loop
        var engineConfiguration = configuration.engineConfiguration
        engineConfiguration.connect = configuration.connectOptions(credentials: configuration.credentials)
        do throws(STOMPUsageError) {
            try engineConfiguration.checkConnect()
            misconfiguration = nil
        } catch {
            misconfiguration = STOMPError(error)
        }
        let machine = STOMPMachine(engine: STOMPEngine(configuration: engineConfiguration))
        link = Link(machine: machine, loop: loop, maximumOutboxBytes: configuration.maximumOutboxBytes)
        credentialsSource = CredentialsSource(
            fixed: configuration.credentials, provider: configuration.credentialsProvider)
        supervisor = Supervisor(
            policy: Shared(configuration.reconnect), serverCount: opener.serverCount,
            serverOrder: configuration.serverOrder, connectTimeout: configuration.connectTimeout.inNanoseconds,
            loop: loop)
        supervisor.supervise(self)
        link.perform { $0.core = self }
    }

    deinit {
        link.dropConnection()
        news.finish()
        (link.tap as? FrameInspector<STOMPFrameRecord>)?.finish()
    }

    // MARK: SupervisedClient

    static var stopped: STOMPError { .disconnectedByUser }

    func attach(_ opened: OpenedStream) {
        closeReason = nil
        link.attach(opened.stream, layers: opened.layers)
    }

    func dropConnection() {
        link.dropConnection()
    }

    func stateChanged(to state: STOMPConnectionState) {
        // First, so that whoever hears of the end finds the state that goes with it.
        news.stateChanged(to: state)
        news.tell(.stateChanged(state))
        if case .disconnected(let failure) = state { giveUp(failure ?? .disconnectedByUser) }
    }

    /// Nobody will open another connection: everybody who waits hears of it, and all subscriptions end.
    private func giveUp(_ failure: STOMPError) {
        var waiters = Resumptions<STOMPMachine.ReceiptAnswer>()
        link.perform { $0.receipts.answerAll(.failure(failure), into: &waiters) }
        waiters.resume()
        let isOrderly = failure.code == .disconnected
        let all = routes.values
        routes = [:]
        for route in all {
            route.call?.end(.failure(failure))
            route.call = nil
            route.finish(isOrderly ? .finished : .failed(failure))
        }
        failUnsubscribes(failure)
    }

    private func failUnsubscribes(_ failure: STOMPError) {
        let calls = unsubscribes.values
        unsubscribes = [:]
        for call in calls { call.end(.failure(failure)) }
    }

    // MARK: What happened to the connection; on the loop's thread

    func connectionClosed(_ error: TransportError?) {
        pausedRoutes.removeAll()
        // The engine only saw that it ended; the stream may know why.
        let engineKnowsMore = error == nil || closeReason?.endedWithoutReason != true
        var reason = engineKnowsMore ? closeReason ?? STOMPError(lost: error) : STOMPError(lost: error)
        if closeReason?.endedBeforeConnected == true { reason = reason.hinting(opener.hintAtTLS) }
        closeReason = nil
        failUnsubscribes(reason)
        // A temporary queue ends with its connection.
        for route in routes.values where route.isForReplies { route.replies?.fail(reason) }
        supervisor.ended(reason, at: MonotonicClock.now)
        // By now `state` tells of it.
        if reason.code != .disconnected { news.tell(.connectionLost(reason)) }
    }

    /// The session is over; its stream is still to be closed. Nothing can be sent any more, and the state says so.
    func connectionIsEnding() {
        guard supervisor.isConnected else { return }
        news.stateChanged(to: .disconnecting)
        news.tell(.stateChanged(.disconnecting))
    }

    /// - Parameter subscriptions: what became of the SUBSCRIBE frames that were written with CONNECTED.
    func handle(_ event: STOMPEngineEvent.Kind, _ subscriptions: [(STOMPRoute, Result<Bool, STOMPError>)] = []) {
        switch event {
        case .connected(let connected):
            profile = connected.profile
            if profile.sendsBytesAsText { link.stopValidatingText() }
            expiresRelatively.store(profile.expiry == .relative, ordering: .relaxed)
            counters.connected()
            // SUBSCRIBE is written already: messages sent in reaction to `.connected` reach the existing subscriptions.
            for (route, result) in subscriptions { settle(route, result) }
            supervisor.established(at: MonotonicClock.now)
            news.tell(.connected(connected))
        case .errorReceived(let error):
            news.tell(.errorReceived(error))
        case .connectionFailed(let failure):
            closeReason = STOMPError(failure)
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

    func unmatched(_ count: Int) {
        news.tell(.unmatchedMessages(count))
    }

    // MARK: Flow

    /// What waits in all subscriptions.
    var unread: UnreadBytes {
        knownUnread.value {
            UnreadBytes(maximum: configuration.maximumUnreadBytes) { [weak self] in self?.drained() }
        }
    }

    func pauseReading(for route: STOMPRoute) {
        pausedRoutes.add(route)
        pauseReading()
    }

    func pauseReading() {
        let now = MonotonicClock.now
        link.perform { machine in
            guard !machine.wantsReadingPaused else { return }
            machine.wantsReadingPaused = true
            machine.engine.setReadingPaused(true, at: now)
        }
    }

    /// The route has ended: what waits in it holds nobody up.
    func stopPausing(for route: STOMPRoute) {
        if pausedRoutes.remove(route) { resumeReading() }
    }

    /// A receiver has emptied a full buffer to half, or a full buffer is needed no more; from any thread.
    func drained() {
        loop.execute {
            self.pausedRoutes.removeDrained()
            self.resumeReading()
        }
    }

    private func resumeReading() {
        guard pausedRoutes.isEmpty, !unread.isFull else { return }
        let now = MonotonicClock.now
        link.perform { machine in
            guard machine.wantsReadingPaused else { return }
            machine.wantsReadingPaused = false
            machine.engine.setReadingPaused(false, at: now)
        }
    }
}
