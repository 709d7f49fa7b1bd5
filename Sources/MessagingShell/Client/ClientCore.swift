package import MessagingFrames
package import MessagingWire
import Synchronization
package import Transport

/// What the cores of all clients have in common: the link drives the engine, the supervisor opens connections, and the
/// subscriptions receive the messages.
///
/// The properties and what callers use (marked "any thread") may be used on any thread, everything else on the loop's.
package protocol ClientCore<Failure, Event, Record>: SupervisedClient where Failure: ClientError {
    associatedtype Event: ClientEvent where Event.Failure == Failure
    associatedtype Route: DeliveryRoute where Route.Failure == Failure
    associatedtype CoreLink: ClientLink where CoreLink.Core == Self
    associatedtype Subscriptions: ClientSubscriptions where Subscriptions.Core == Self
    associatedtype UsageError: Error
    associatedtype Record: Sendable

    var parts: ClientParts<Self> { get }
    var loop: EventLoop { get }
    /// The client's name in logs.
    var name: String { get }
    var link: CoreLink { get }
    /// The bound of the bytes that wait in all subscriptions.
    var maximumUnreadBytes: Int { get }
    /// How long an answer may take, in nanoseconds.
    var requestTimeout: Int64 { get }
    var credentialsSource: CredentialsSource { get }
    var subscriptions: Subscriptions { get }
    /// Called with each message that a receiver takes; nil without a hook.
    var receivingHook: (@Sendable (inout Route.Batch.Message) -> Void)? { get }
    /// Made for the first reader, and fed by the link from then on.
    var inspector: FrameInspector<Record> { get }

    /// The error for callers when the engine throws: if the client does not try to be connected, why not. On any
    /// thread.
    func explain(_ error: UsageError) -> Failure
    /// A stream is open, and the link is about to begin the protocol's handshake.
    func connectionWillOpen()
    /// The state is about to change, and has not been reported yet.
    func stateWillChange(to state: ConnectionState<Failure>)
    /// Nothing is read for a subscription whose reader takes no message: calls fail that would wait for answers without a limit.
    func readingStandsStill(for subscription: String)
    /// No other connection will be opened: all waiting callers fail, and all subscriptions end.
    func stop(_ failure: Failure)
}

/// What the cores of all clients hold. Any thread may use it.
package struct ClientParts<Core: ClientCore>: ~Copyable, Sendable {
    let supervisor: Supervisor<Core>
    let news = ClientNews<ConnectionState<Core.Failure>, Core.Event>(.disconnected(nil))
    package let counters = ClientCounting()
    /// Made for the first subscription.
    let unread = Lock<UnreadBytes?>(nil)

    /// - Parameters:
    ///   - connectTimeout: for one attempt.
    ///   - network: nil if attempts do not depend on it.
    package init(
        opener: StreamOpener, reconnect policy: Shared<ReconnectPolicy>, serverOrder: ServerOrder,
        connectTimeout: Duration, network: NetworkMonitor?, loop: EventLoop
    ) {
        supervisor = Supervisor(
            policy: policy, opener: opener, serverOrder: serverOrder, connectTimeout: connectTimeout.inNanoseconds,
            network: opener.ifNeeded(network), loop: loop)
    }
}

extension ClientCore {
    package var opener: StreamOpener { supervisor.opener }
    package var supervisor: Supervisor<Self> { parts.supervisor }
    package var news: ClientNews<ConnectionState<Failure>, Event> { parts.news }

    // MARK: The life of the client

    /// Makes the parts know their client: the end of its initializer.
    package func connectParts() {
        subscriptions.core = self
        supervisor.supervise(self)
        link.setCore(self)
        loop.world?.describe { [weak self] in self?.waitingDescription }
    }

    /// The client's state and what waits in it, for the report of a simulation.
    private var waitingDescription: String {
        let backlog = backlogNow
        let waiting = [
            ("messages in the queue", backlog.queuedMessages), ("without an answer", backlog.messagesInFlight),
            ("to be acknowledged", backlog.unacknowledgedMessages), ("bytes to be written", backlog.outboxBytes),
            ("bytes to be read", backlog.unreadBytes),
        ]
        let parts = waiting.filter { $0.1 > 0 }.map { "\($0.1) \($0.0)" }
        return "\(name) \(news.state): \(parts.isEmpty ? "nothing waits" : parts.joined(separator: ", "))"
    }

    /// The client was released without a disconnect: the server sees the connection end (and publishes an MQTT will). On
    /// any thread.
    package func released() {
        link.dropConnection()
        news.finish()
        (link.tap as? FrameInspector<Record>)?.finish()
    }

    // MARK: What ``MessagingClient`` offers, on any thread

    package func start() async { await supervisor.start() }
    package func run() async throws(Failure) { try await supervisor.run() }
    package func connect() async throws(Failure) { try await supervisor.connect(cancelled: .cancelledWait) }
    package func reconnect() async throws(Failure) {
        try await supervisor.connect(cancelled: .cancelledWait, moves: true)
    }
    package func resume() { supervisor.resume() }
    package func networkChanged() { supervisor.networkChanged() }
    package var countersNow: ClientCounters { parts.counters.snapshot(sent: link.sentCount, traffic: link.traffic) }

    package var backlogNow: ClientBacklog {
        var backlog = link.backlog
        backlog.unreadBytes = parts.unread.withLock { $0 }?.bytes ?? 0
        return backlog
    }

    /// Runs `body` on the loop's thread, and reports each time that the tasks there hold it for long.
    package func onLoop<Result: Sendable, BodyFailure: Error>(
        _ body: @concurrent @Sendable () async throws(BodyFailure) -> Result
    ) async throws(BodyFailure) -> Result {
        let report = EventLoop.HoldReport { [weak self] in self?.news.tell(.executorHeld(for: .nanoseconds($0))) }
        loop.reportHolds(report)
        defer { loop.endReport(report) }
        return try await withTaskExecutorPreference(loop, operation: body)
    }

    // MARK: Requests of callers

    /// Why the client does not try to be connected, and what to do about it; on any thread.
    package var reasonNotSupervised: Failure {
        let failure: Failure? = if case .disconnected(let failure) = news.state { failure } else { nil }
        return .notSupervised(after: failure)
    }

    /// Whether the client tries to be connected. If it does not, the call ends with the reason. On the loop's thread.
    package func accepts<Answer>(_ call: PendingCall<Result<Answer, Failure>>) -> Bool {
        if supervisor.isActive { return true }
        call.end(.failure(reasonNotSupervised))
        return false
    }

    /// The connection has ended. Returns whether that was to move to another server.
    package func endMove() -> Bool { supervisor.isMoving.exchange(false, ordering: .relaxed) }

    /// Why nothing more can be sent on a connection that is ending; nil if it ends because the application has ended it. On any
    /// thread.
    package func reasonConnectionEnds(_ error: UsageError) -> Failure? {
        let isMoving = supervisor.isMoving.load(ordering: .relaxed)
        if !isMoving {
            switch news.state {
            // The connection may have ended since the engine said so.
            case .disconnecting, .disconnected, .suspended: return nil
            default: break
            }
        }
        return Failure(
            .notConnected,
            "The \(isMoving ? "client is moving to another server" : "connection is ending"). Call connect(), which returns when the client is connected again.",
            answer: nil, underlying: error)
    }

    /// The message for a request without a reply in time; on the loop's thread.
    ///
    /// - Parameter advice: what to do if the client was connected and has read what came.
    package func lateReply(_ message: String, advice: String) -> String {
        if let reason = link.pauseReason { return "\(message) The client may not have read it, \(reason)" }
        if supervisor.isConnected { return "\(message) \(advice)" }
        guard let failure = supervisor.lastFailure?.value else { return "\(message) The client was not connected." }
        return "\(message) The client was not connected: \(failure.sentence)"
    }

    /// Calls the engine, and explains its error; on any thread.
    package func asking<Machine: LinkMachine & ~Copyable, Answer>(
        _ body: (inout Machine) throws(UsageError) -> Answer
    ) throws(Failure) -> Answer where CoreLink == Link<Machine> {
        do throws(UsageError) { return try link.perform(body) } catch { throw explain(error) }
    }

    /// An answer to a request, as the hook changes it; on the caller's task.
    package func received(_ message: Route.Batch.Message) -> Route.Batch.Message {
        guard let receivingHook else { return message }
        var message = message
        receivingHook(&message)
        return message
    }

    package typealias Replies = PendingReplies<Route.Batch.Message, Failure>

    /// The requests of a client that wait for replies; on any thread.
    ///
    /// - Parameter known: kept by the client, since they keep this object alive.
    package func replies(_ known: borrowing Lock<Replies?>) throws(Failure) -> Replies {
        // Their time-outs are alarms of the loop.
        try supervisor.startLoop()
        return known.withLock { known in
            if let known { return known }
            let made = Replies(loop: loop) { (replies) async throws(Failure) in
                let (address, route) = self.subscriptions.makeReplyRoute(replies)
                _ = try await self.subscriptions.register(route)
                // Its own queue is never filled: the messages go to `replies`.
                let handle = SubscriptionHandle(core: self, route: route, queue: self.makeQueue(route.policy))
                return Replies.Subscription(address: address, handle: handle)
            }
            known = made
            return made
        }
    }

    // MARK: What the supervisor asks

    package func attach(_ opened: OpenedStream) {
        connectionWillOpen()
        link.attachNow(opened.stream, layers: opened.layers)
    }

    package var isEnding: Bool { link.isEnding }
    package func dropConnection() { link.dropConnection() }
    package func stateWillChange(to state: ConnectionState<Failure>) {}

    package func couldNotStart(_ failure: Failure) { report(.disconnected(failure)) }

    package func stateChanged(to state: ConnectionState<Failure>) {
        // Before waiting callers are resumed, so that they find the state that belongs to their answer.
        report(state)
        if case .disconnected(let failure) = state { stop(failure ?? .disconnectedByUser) }
    }

    /// The server takes nothing of what waits to be sent, or takes bytes again.
    package func report(_ standstill: Standstill) {
        switch standstill {
        case .began: news.tell(.sendingStalled)
        case .ended(let time): news.tell(.sendingResumed(after: .nanoseconds(time)))
        }
    }

    private func report(_ state: ConnectionState<Failure>) {
        stateWillChange(to: state)
        news.stateChanged(to: state)
        news.tell(.stateChanged(state))
    }

    // MARK: What subscriptions ask

    /// Counts the bytes that wait in all subscriptions.
    package var unread: UnreadBytes {
        parts.unread.withLock { unread in
            if let unread { return unread }
            // A receiver has emptied a full buffer to half, or a full buffer is not needed any more; from any thread.
            let made = UnreadBytes(maximum: maximumUnreadBytes) { [weak self] in
                guard let self else { return }
                loop.execute { self.subscriptions.resumeReading() }
            }
            unread = made
            return made
        }
    }

    private func makeQueue(_ policy: BufferPolicy) -> DeliveryQueue<Route.Batch, Failure> {
        DeliveryQueue(policy: policy, unread: unread)
    }

    /// Gives a route that the loop does not know yet its queue; on any thread.
    package func makeQueue(of route: Route) -> DeliveryQueue<Route.Batch, Failure> {
        let queue = makeQueue(route.policy)
        route.receivers.queue = queue
        return queue
    }
}

/// How the attempts of all clients begin and what follows their failures: a server with credentials, a stream, a verdict.
///
/// Everything runs on the loop's thread, async functions in the attempt's task; static members run on any thread.
extension ClientCore {
    package static var stopped: Failure { .disconnectedByUser }
    package static func notStarted(_ error: TransportError) -> Failure { Failure(connecting: error) }

    package static func firstFailure(_ failure: Failure) -> Failure {
        guard failure.isTemporary else { return failure }
        return failure.saying(
            failure.sentence + " To keep trying, call start() instead of connect(), or set "
                + "ReconnectPolicy.firstConnectAttempts.")
    }

    package func failure(ofAll failures: [(server: Int, failure: Failure)]) -> Failure {
        let list = failures.map { "\(opener.name(of: $0.server)): \($0.failure.sentence)" }
        return failures[failures.count - 1].failure.saying(
            "None of the \(failures.count) servers accepted the connection. " + list.joined(separator: " "))
    }

    /// Chooses the server of an attempt, and obtains credentials for it.
    ///
    /// - Parameter other: where a server has referred the client to.
    package func chooseServer(
        _ attempt: ConnectionAttempt, redirectedTo other: Endpoint? = nil
    ) async throws(Failure) -> (url: BrokerURL, credentials: Credentials?) {
        let server: BrokerURL
        do throws(TransportError) {
            server = try opener.choose(attempt.server, redirectedTo: other)
        } catch {
            throw Failure(connecting: error)
        }
        news.tell(.connecting(to: server))
        var credentials: Credentials?
        if credentialsSource.isFresh { news.tell(.credentialsRequested(for: server)) }
        do {
            credentials = try await credentialsSource.credentials(for: attempt, at: server, on: loop)
        } catch {
            throw Failure(credentials: error)
        }
        let url: BrokerURL
        do throws(TransportError) {
            url = try opener.url(of: server, for: credentials, redirectedTo: other)
        } catch {
            throw Failure(connecting: error)
        }
        if url != server { news.tell(.connecting(to: url)) }
        if credentials?.url != nil, credentials?.userName == nil, credentials?.password == nil {
            credentials?.userName = url.credentials?.userName
            credentials?.password = url.credentials?.password
        }
        return (url, credentials)
    }

    /// Opens a stream to the server that was chosen.
    package func open(
        _ url: BrokerURL, _ credentials: Credentials?, isRedirected: Bool = false, for attempt: ConnectionAttempt
    ) async throws(Failure) -> OpenedStream {
        do throws(TransportError) {
            return try await opener.open(
                url, headers: credentials?.webSocketHeaders ?? [:], isRedirected: isRedirected, for: attempt)
        } catch {
            throw Failure(connecting: error)
        }
    }

    package func willMove(after age: Int64) {
        if let server = opener.server { news.tell(.moving(from: server, after: .nanoseconds(age))) }
    }

    package func attemptFailed(_ failure: Failure) {
        if let server = opener.server { news.tell(.attemptFailed(server, failure)) }
    }
}
