public import Messaging
import STOMPCore
import Synchronization
import Transport

/// A client for STOMP brokers that keeps itself connected.
///
///     let client = STOMPClient("stomp://localhost")
///     try await client.connect()
///     try await client.sendAndConfirm("21.5", to: "/queue/temperatures")
///
/// After the first `connect()` a lost connection is opened again, with back-off, and everything is subscribed again;
/// ``states`` and ``events`` tell of it. All frames of a client leave through one lock, so that those of one task keep
/// their order.
public actor STOMPClient {
    nonisolated let core: STOMPClientCore
    /// Where replies to requests come in, and the making of it.
    var replyRoute: STOMPRoute?
    var replySetup: Task<Result<STOMPRoute, STOMPError>, Never>?

    /// Makes a client; nothing is opened before ``connect()``.
    ///
    /// - Parameter url: `stomp://[login:passcode@]host[:port]`, `stomps:` for TLS, `ws://host/path` and `wss:` for
    ///   WebSocket, or `unix:/path`. A mistake in it is reported by ``connect()``.
    public init(_ url: String, configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init([url], configuration: configuration, loop: .shared, override: nil)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``connect()``.
    ///
    /// The next server is tried as soon as one has failed, the wait of ``ReconnectPolicy`` follows when all have. What
    /// no other server can heal (refused credentials, a mistake in a URL) ends the attempts all the same.
    /// - Parameter urls: as for one server; each may hold its own login and passcode. See
    ///   ``STOMPConfiguration/serverOrder``.
    public init(_ urls: [String], configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init(urls, configuration: configuration, loop: .shared, override: nil)
    }

    /// Makes a client on a loop and over streams of the caller's choice.
    package init(
        _ urls: [String], configuration: STOMPConfiguration, loop: EventLoop, override: StreamOpener.Override?
    ) {
        let opener = StreamOpener(
            urls: urls, options: Shared(configuration.streamOptions), loop: loop,
            override: override)
        core = STOMPClientCore(opener: opener, configuration: configuration, loop: loop)
    }

    /// The states of the connection from the moment this is called, the present one first.
    public nonisolated var states: Updates<STOMPConnectionState> { core.news.states }

    /// Where the connection stands now.
    public nonisolated var state: STOMPConnectionState { core.news.state }

    /// The server that is connected, or else was tried last; nil before the first attempt.
    public nonisolated var server: BrokerURL? { core.opener.server }

    /// What happens to the client from the moment this is called. A slow reader misses the oldest of 1024 events.
    public nonisolated var events: Updates<STOMPEvent> { core.news.events }

    /// The thread on which this client's sockets are served, for tasks that wait for many answers:
    /// `withTaskExecutorPreference(client.executor) { … }`.
    ///
    /// An answer then resumes its task without a switch of threads, which is most of what a round trip on a fast network
    /// costs. What runs there must not block: every connection of the process waits for it.
    public nonisolated var executor: any TaskExecutor { core.loop }

    /// What went through the client so far.
    public nonisolated var counters: ClientCounters {
        core.counters.snapshot(sent: core.link.perform { $0.sentCount }, traffic: core.link.traffic)
    }

    /// Connects and returns when the server has accepted; already connected, it returns at once.
    ///
    /// How often a first connection is tried is a matter of ``ReconnectPolicy/firstConnectAttempts``. Cancelling the
    /// task ends the wait, and the attempts with it unless there was a connection before.
    /// - Throws: ``STOMPError`` when the attempts are used up or another one is pointless.
    public func connect() async throws(STOMPError) {
        try await core.supervisor.start(cancelled: .cancelledWait)
    }

    /// Ends the connection in order: DISCONNECT with a receipt, whose answer or whose absence both end it.
    ///
    /// Returns when it is done, at the latest after three seconds. ``connect()`` may be called again.
    public func disconnect() async {
        await core.supervisor.stop { [core] in
            let now = MonotonicClock.now
            core.link.perform(urgent: true) { machine in
                do throws(STOMPUsageError) {
                    try machine.engine.disconnect(at: now)
                } catch {
                    machine.asksToClose = true
                }
            }
        }
    }

    /// Tells that the network came back or changed: a wait before the next attempt is cut short.
    public nonisolated func networkChanged() {
        core.supervisor.networkChanged()
    }

    /// Connects, runs `body`, and disconnects whatever happens.
    ///
    /// - Throws: ``STOMPError`` from connecting, or what `body` throws.
    public nonisolated(nonsending) func withConnection<Result>(
        _ body: (STOMPClient) async throws -> Result
    ) async throws -> Result {
        try await connect()
        do {
            let result = try await body(self)
            await disconnect()
            return result
        } catch {
            await disconnect()
            throw error
        }
    }
}
