public import Messaging
import STOMPCore
import Synchronization
public import Transport

/// A client for STOMP brokers that keeps itself connected.
///
///     let client = STOMPClient("stomp://localhost")
///     try await client.connect()
///     try await client.sendAndConfirm("21.5", to: "/queue/temperatures")
///
/// ``connect()`` waits for the first connection, ``start()`` does not. After that a lost connection is opened again, with
/// back-off, and everything is subscribed again; ``states`` and ``events`` report it. All frames of a client pass one lock, so that those of one task keep their order.
public actor STOMPClient: MessagingClient, CustomStringConvertible, CustomReflectable {
    /// Stored with the client, because making it for each message would cost a counted reference.
    let sender: STOMPSender
    nonisolated var core: STOMPClientCore { sender.core }
    nonisolated let knownReplies = MadeOnce<STOMPClientCore.Replies>()
    /// Held because it owns the event loop; nil with the system's clock.
    private nonisolated let clock: ManualClock?

    /// Makes a client; nothing is opened before ``start()`` or ``connect()``.
    ///
    /// - Parameters:
    ///   - url: `stomp://[login:passcode@]host[:port]`, `stomps:` for TLS, `ws://host/path` and `wss:` for WebSocket, or
    ///     `unix:/path`. A mistake in it is reported by ``connect()``.
    ///   - configuration: the options. Default: those of ``STOMPConfiguration``.
    public init(_ url: String, configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init(
            [url], configuration: configuration, loop: .shared(for: configuration.threadQuality), override: nil)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``start()`` or
    /// ``connect()``.
    ///
    /// The next server is tried as soon as one has failed; the wait of ``ReconnectPolicy`` follows when all have. A failure
    /// that no other server can solve (refused credentials, a mistake in a URL) ends the attempts all the same.
    /// - Parameters:
    ///   - urls: as for one server; each may hold its own login and passcode. See ``STOMPConfiguration/serverOrder``.
    ///   - configuration: the options. Default: those of ``STOMPConfiguration``.
    public init(_ urls: [String], configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init(
            urls, configuration: configuration, loop: .shared(for: configuration.threadQuality), override: nil)
    }

    /// Makes a client for a test, on a clock whose time passes only when it is advanced.
    ///
    /// - Parameters:
    ///   - urls: one server, or several that are tried in turn.
    ///   - configuration: the options. Default: those of ``STOMPConfiguration``.
    ///   - clock: also that of the broker, so that what the two exchange needs no time.
    public init(
        _ urls: String..., configuration: STOMPConfiguration = STOMPConfiguration(), clock: ManualClock
    ) {
        self.init(urls, configuration: configuration, loop: clock.loop, override: nil, clock: clock)
    }

    /// Makes a client on a loop and over streams of the caller's choice; a network that is nil is the system's.
    package init(
        _ urls: [String], configuration: STOMPConfiguration, loop: EventLoop, override: StreamOpener.Override?,
        clock: ManualClock? = nil, network: NetworkMonitor? = nil
    ) {
        self.clock = clock
        let opener = StreamOpener(
            urls: urls, options: Shared(configuration.streamOptions), loop: loop,
            override: override)
        sender = STOMPSender(
            core: STOMPClientCore(opener: opener, configuration: configuration, loop: loop, network: network))
    }

    // MARK: Observing

    /// The states of the connection from the moment of this call, the present one first.
    public nonisolated var states: Updates<STOMPConnectionState> { core.news.states }

    /// The present state of the connection.
    public nonisolated var state: STOMPConnectionState { core.news.state }

    /// The server that is connected, or else was tried last; nil before the first attempt.
    public nonisolated var server: BrokerURL? { core.opener.server }

    /// What happens to the client from the moment of this call. A slow reader misses the oldest of 1024 events.
    public nonisolated var events: Updates<STOMPEvent> { core.news.events }

    /// The same events, each with its time.
    public nonisolated var timedEvents: Updates<TimedEvent<STOMPEvent>> { core.news.timedEvents }

    /// Each message that is sent, acknowledged or received from the moment of this call. A slow reader misses the oldest
    /// of 1024 events. As long as the sequence exists, every frame is decoded once more; without it nothing is spent.
    public nonisolated var messageEvents: Updates<MessageEvent> { core.inspector.messageEvents }

    /// The thread that serves this client's sockets, for tasks that wait for many answers:
    /// `withTaskExecutorPreference(client.executor) { … }`.
    ///
    /// An answer then resumes its task without a switch of threads, which is most of what a round trip on a fast network
    /// costs. What runs there must not block: every connection of the process waits for it.
    public nonisolated var executor: any TaskExecutor { core.loop }

    /// Counts of messages, connections, bytes and system calls since the client was made.
    public nonisolated var counters: ClientCounters {
        core.counters.snapshot(sent: core.link.perform { $0.sentCount }, traffic: core.link.traffic)
    }

    /// What waits in the client now: for receipts, in the outbox and in subscriptions.
    public nonisolated var backlog: ClientBacklog {
        let unread = core.subscriptions.knownUnread.ifMade?.bytes ?? 0
        return core.link.perform { machine in
            ClientBacklog(
                messagesInFlight: machine.engine.pendingReceipts, outboxBytes: machine.outputCount, unreadBytes: unread)
        }
    }

    /// The server and the state of the connection.
    public nonisolated var description: String { "STOMPClient(\(server.map { "\($0)" } ?? "not connected"), \(state))" }
    public nonisolated var customMirror: Mirror { mirror("server", server as Any) }

    // MARK: Connecting

    /// Keeps the client connected from now on, and returns at once, whether there is a network or not.
    ///
    /// Everything else then waits for the connection as it does during a reconnect: subscribing, for example, returns
    /// when the server has confirmed it. The first connection is tried like one that was lost, as often as
    /// ``ReconnectPolicy/maximumAttempts`` allows. While the client disconnects, this waits until that is done. Cancelling
    /// the task has no effect.
    public func start() async { await core.supervisor.start() }

    /// Keeps the client connected as ``start()`` does, and returns when it has stopped; made for the `run()` of a service in
    /// a `ServiceGroup`.
    ///
    /// When the task is cancelled, the client disconnects gracefully and this returns. It also returns after
    /// ``disconnect()`` by another task.
    /// - Throws: ``STOMPError`` when the client stops connecting, because another attempt is pointless
    ///   (``STOMPError/Code/badCredentials``) or ``ReconnectPolicy/maximumAttempts`` have failed.
    public func run() async throws(STOMPError) {
        try await core.supervisor.run()
        if Task.isCancelled { await disconnect() }
    }

    /// Connects and returns when the server has accepted; already connected, it returns at once.
    ///
    /// ``ReconnectPolicy/firstConnectAttempts`` limits how often a first connection is tried; ``start()`` has no such limit.
    /// Cancelling the task ends the wait, and the attempts with it unless there was a connection before or the client was
    /// started.
    /// - Throws: ``STOMPError`` when the attempts are used up, or another one is pointless
    ///   (``STOMPError/Code/badCredentials``).
    public func connect() async throws(STOMPError) { try await core.supervisor.connect(cancelled: .cancelledWait) }

    /// Disconnects gracefully: sends DISCONNECT with a receipt, and waits for RECEIPT or for the end of the connection.
    ///
    /// Returns when it is done, at the latest after three seconds. ``connect()`` may be called again.
    public func disconnect() async { await core.supervisor.stop { [core] in core.sayGoodbye() } }

    /// Disconnects gracefully and opens no connection until ``resume()``, for example while an application is in the
    /// background. Subscriptions remain, and are made again when the client resumes.
    public func suspend() async { await core.supervisor.suspend { [core] in core.sayGoodbye() } }

    /// Connects again after ``suspend()`` and returns at once; ``connect()`` does the same and waits.
    public nonisolated func resume() { core.supervisor.resume() }

    /// Ends a wait before the next attempt, because the network is back or has changed.
    public nonisolated func networkChanged() { core.supervisor.networkChanged() }

    /// Connects, runs `body`, and disconnects whatever happens.
    ///
    /// - Throws: ``STOMPError`` from connecting, or what `body` throws.
    @discardableResult
    public nonisolated(nonsending) func withConnection<Result>(
        _ body: (STOMPClient) async throws -> Result
    ) async throws -> Result { try await runConnected(body) }

    // MARK: Inspecting

    /// Every frame and heart-beat of the connection from the moment of this call, sent and received, over reconnects.
    ///
    /// For display, not for logic: a slow reader misses the oldest of 1024 frames, and an inspected connection decodes
    /// everything twice.
    /// - Parameter showingSecrets: whether login, passcode and other secret headers are readable. Default: false.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<STOMPFrameRecord> {
        core.inspector.frames(showingSecrets: showingSecrets)
    }

    /// Puts every frame and heart-beat of the connection into `log` from now on, over reconnects; secrets are masked.
    ///
    /// - Parameters:
    ///   - log: what keeps the frames.
    ///   - name: the client's name in the log. Default: its `client-id`.
    public nonisolated func inspect(into log: FrameLog, as name: String? = nil) {
        core.inspector.feed(log, as: name ?? core.configuration.clientID ?? "")
    }

    /// Puts nothing more into `log`.
    public nonisolated func stopInspecting(into log: FrameLog) { core.inspector.stopFeeding(log) }
}
