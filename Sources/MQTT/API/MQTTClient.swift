public import MQTTCore
public import Messaging
import Synchronization
public import Transport

/// A client for MQTT servers that keeps itself connected.
///
///     let client = MQTTClient("mqtt://localhost", clientID: "thermometer-%%%%")
///     try await client.connect()
///     try await client.publish("21.5", to: "home/temperature", qos: .atLeastOnce)
///
/// ``connect()`` waits for the first connection, ``start()`` does not. After that a lost connection is opened again, with
/// back-off, and everything is subscribed again; ``states`` and ``events`` report it. All messages of a client pass one lock, so that those of one task keep their
/// order. A client that is released without ``disconnect()`` closes its connection, and the server publishes its will.
public actor MQTTClient: MessagingClient, CustomStringConvertible, CustomReflectable {
    /// Stored with the client, because making it for each message would cost a counted reference.
    let publisher: MQTTPublisher
    nonisolated var core: MQTTClientCore { publisher.core }
    nonisolated let knownReplies = MadeOnce<MQTTClientCore.Replies>()
    /// Held because it owns the event loop; nil with the system's clock.
    private nonisolated let clock: ManualClock?

    /// Makes a client; nothing is opened before ``start()`` or ``connect()``.
    ///
    /// - Parameters:
    ///   - url: `mqtt://[user:password@]host[:port]`, `mqtts:` for TLS, `ws://host/path` and `wss:` for WebSocket, or
    ///     `unix:/path`. A mistake in it is reported by ``connect()``.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    ///   - configuration: the options. Default: those of ``MQTTConfiguration``.
    public init(_ url: String, clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration()) {
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        self.init(
            [url], configuration: configuration, loop: .shared(for: configuration.threadQuality), override: nil)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``start()`` or
    /// ``connect()``.
    ///
    /// The next server is tried as soon as one has failed; the wait of ``ReconnectPolicy`` follows when all have. A failure
    /// that no other server can solve (refused credentials, a mistake in a URL) ends the attempts all the same. Messages
    /// that were not acknowledged are published again at the next server; a session continues there if the servers share
    /// it.
    /// - Parameters:
    ///   - urls: as for one server; each may hold its own user name and password. See ``MQTTConfiguration/serverOrder``.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    ///   - configuration: the options. Default: those of ``MQTTConfiguration``.
    public init(_ urls: [String], clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration()) {
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        self.init(
            urls, configuration: configuration, loop: .shared(for: configuration.threadQuality), override: nil)
    }

    /// Makes a client for a test, on a clock whose time passes only when it is advanced.
    ///
    /// - Parameters:
    ///   - urls: one server, or several that are tried in turn.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    ///   - configuration: the options. Default: those of ``MQTTConfiguration``.
    ///   - clock: also that of the broker, so that what the two exchange needs no time.
    public init(
        _ urls: String..., clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration(),
        clock: ManualClock
    ) {
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        self.init(urls, configuration: configuration, loop: clock.loop, override: nil, clock: clock)
    }

    /// Makes a client on a loop and over streams of the caller's choice; a network that is nil is the system's.
    package init(
        _ urls: [String], configuration: MQTTConfiguration, loop: EventLoop, override: StreamOpener.Override?,
        clock: ManualClock? = nil, network: NetworkMonitor? = nil
    ) {
        self.clock = clock
        let settings = MQTTSettings.of(configuration)
        let opener = StreamOpener(urls: urls, options: settings.streams, loop: loop, override: override)
        publisher = MQTTPublisher(
            core: MQTTClientCore(
                opener: opener, settings: settings, clientID: configuration.clientID, loop: loop, network: network))
    }

    // MARK: Observing

    /// The states of the connection from the moment of this call, the present one first.
    public nonisolated var states: Updates<MQTTConnectionState> { core.news.states }

    /// The present state of the connection.
    public nonisolated var state: MQTTConnectionState { core.news.state }

    /// The server that is connected, or else was tried last; nil before the first attempt.
    public nonisolated var server: BrokerURL? { core.opener.server }

    /// What happens to the client from the moment of this call. A slow reader misses the oldest of 1024 events.
    public nonisolated var events: Updates<MQTTEvent> { core.news.events }

    /// The same events, each with its time.
    public nonisolated var timedEvents: Updates<TimedEvent<MQTTEvent>> { core.news.timedEvents }

    /// Each message that is sent, acknowledged or received from the moment of this call. A slow reader misses the oldest
    /// of 1024 events. As long as the sequence exists, every packet is decoded once more; without it nothing is spent.
    public nonisolated var messageEvents: Updates<MessageEvent> { core.inspector.messageEvents }

    /// The thread that serves this client's sockets, for tasks that wait for many answers:
    /// `withTaskExecutorPreference(client.executor) { … }`.
    ///
    /// An answer then resumes its task without a switch of threads, which is most of what a round trip on a fast network
    /// costs. What runs there must not block: every connection of the process waits for it.
    public nonisolated var executor: any TaskExecutor { core.loop }

    /// Counts of messages, connections, bytes and system calls since the client was made.
    public nonisolated var counters: ClientCounters {
        core.counters.snapshot(sent: core.link.perform { $0.engine.publishesWritten }, traffic: core.link.traffic)
    }

    /// What waits in the client now: in the queue, in flight, for later subscriptions, in the outbox and in subscriptions.
    public nonisolated var backlog: ClientBacklog {
        let unread = core.subscriptions.knownUnread.ifMade?.bytes ?? 0
        return core.link.perform { machine in
            ClientBacklog(
                queuedMessages: machine.engine.queuedCount, queuedBytes: machine.engine.queuedBytes,
                messagesInFlight: machine.engine.inFlightCount, unmatchedMessages: machine.unmatched.count,
                outboxBytes: machine.outputCount, unreadBytes: unread)
        }
    }

    /// The client identifier in use: expanded, or assigned by the server.
    public nonisolated var clientID: String { core.link.perform { $0.engine.clientID } }

    /// The client identifier and the state of the connection.
    public nonisolated var description: String { "MQTTClient(\(clientID), \(state))" }
    public nonisolated var customMirror: Mirror { mirror("clientID", clientID) }

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
    /// - Throws: ``MQTTError`` when the client stops connecting, because another attempt is pointless
    ///   (``MQTTError/Code/badCredentials``) or ``ReconnectPolicy/maximumAttempts`` have failed.
    public func run() async throws(MQTTError) {
        try await core.supervisor.run()
        if Task.isCancelled { await disconnect() }
    }

    /// Connects and returns when the server has accepted; already connected, it returns at once.
    ///
    /// ``ReconnectPolicy/firstConnectAttempts`` limits how often a first connection is tried; ``start()`` has no such limit.
    /// Cancelling the task ends the wait, and the attempts with it unless there was a connection before or the client was
    /// started.
    /// - Throws: ``MQTTError`` when the attempts are used up, or another one is pointless
    ///   (``MQTTError/Code/badCredentials``).
    public func connect() async throws(MQTTError) { try await core.supervisor.connect(cancelled: .cancelledWait) }

    /// Disconnects gracefully: what was published is sent first, the server discards the will, sequences end.
    ///
    /// QoS 2 messages that are being received are finished before DISCONNECT, for up to two seconds. Returns when it is
    /// done, at the latest after three seconds. ``connect()`` may be called again.
    public func disconnect() async { await core.supervisor.stop { [core] in core.sayGoodbye() } }

    /// Disconnects gracefully, sending this reason code and these properties in DISCONNECT; 5.0 only.
    ///
    /// - Parameters:
    ///   - reason: ``MQTTReasonCode/disconnectWithWillMessage`` has the server publish the will all the same.
    ///   - properties: Reason String, user properties, and a Session Expiry Interval in place of
    ///     ``MQTTConfiguration/sessionExpiry``.
    /// - Throws: ``MQTTError`` if they cannot be sent; the connection remains. Without a connection nothing is sent.
    public func disconnect(reason: MQTTReasonCode, properties: MQTTProperties = []) async throws(MQTTError) {
        try core.checkGoodbye(reason, properties)
        await core.supervisor.stop { [core] in core.sayGoodbye(reason, properties: properties) }
    }

    /// Disconnects gracefully and opens no connection until ``resume()``, for example while an application is in the
    /// background. Subscriptions remain, messages wait, and the server keeps the session for as long as it was asked to.
    public func suspend() async { await core.supervisor.suspend { [core] in core.sayGoodbye() } }

    /// Connects again after ``suspend()`` and returns at once; ``connect()`` does the same and waits.
    public nonisolated func resume() { core.supervisor.resume() }

    /// Ends a wait before the next attempt, because the network is back or has changed.
    public nonisolated func networkChanged() { core.supervisor.networkChanged() }

    /// Connects, runs `body`, and disconnects whatever happens.
    ///
    /// - Throws: ``MQTTError`` from connecting, or what `body` throws.
    @discardableResult
    public nonisolated(nonsending) func withConnection<Result>(
        _ body: (MQTTClient) async throws -> Result
    ) async throws -> Result { try await runConnected(body) }

    // MARK: Inspecting

    /// Every packet of the connection from the moment of this call, sent and received, over reconnects.
    ///
    /// For display, not for logic: a slow reader misses the oldest of 1024 packets, and an inspected connection decodes
    /// everything twice.
    /// - Parameter showingSecrets: whether user name, password, the payload of the will and authentication data are
    ///   readable. Default: false.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<MQTTPacketRecord> {
        core.inspector.frames(showingSecrets: showingSecrets)
    }

    /// Puts every packet of the connection into `log` from now on, over reconnects; secrets are masked.
    ///
    /// Call this before ``connect()``: later packets cannot be decoded without the version in CONNECT.
    /// - Parameters:
    ///   - log: what keeps the frames.
    ///   - name: the client's name in the log. Default: its client identifier.
    public nonisolated func inspect(into log: FrameLog, as name: String? = nil) {
        core.inspector.feed(log, as: name ?? core.clientIDTemplate)
    }

    /// Puts nothing more into `log`.
    public nonisolated func stopInspecting(into log: FrameLog) { core.inspector.stopFeeding(log) }
}
