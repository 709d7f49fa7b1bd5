public import MessagingShell
import MessagingWire
import STOMPCore
public import STOMPRecords
import Synchronization
public import Transport

/// A client for STOMP brokers that keeps itself connected.
///
///     let client = STOMPClient("stomp://localhost")
///     try await client.connect()
///     try await client.sendAndConfirm("21.5", to: "/queue/temperatures")
///
/// ``connect()`` waits for the first connection, ``start()`` does not. After that a lost connection is opened again, with
/// back-off, and everything is subscribed again; ``states`` and ``events`` report it. All frames of a client pass one
/// lock, so that those of one task keep their order.
public actor STOMPClient: MessagingClient {
    /// Stored with the client, because making it for each message would cost a counted reference.
    let sender: STOMPSender
    nonisolated var core: STOMPClientCore { sender.core }
    nonisolated let knownReplies = Lock<STOMPClientCore.Replies?>(nil)
    /// Held because it owns the event loop; nil with the system's clock.
    private nonisolated let clock: ManualClock?

    /// Makes a client; nothing is opened before ``start()`` or ``connect()``.
    ///
    /// - Parameters:
    ///   - url: `stomp://[login:passcode@]host[:port]`, `stomps:` for TLS, `ws://host/path` and `wss:` for WebSocket, or
    ///     `unix:/path`. A mistake in it is reported by ``connect()``.
    ///   - configuration: the options. Default: those of ``STOMPConfiguration``.
    public init(_ url: String, configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init([url], configuration: configuration)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``start()`` or
    /// ``connect()``.
    ///
    /// The next server is tried ``ReconnectPolicy/failoverDelay`` after one has failed; the wait of ``ReconnectPolicy`` follows
    /// when all have. A failure that no other server can solve (refused credentials, a mistake in a URL) ends the attempts all
    /// the same; so do versions that no server of a round supports.
    /// - Parameters:
    ///   - urls: as for one server; each may hold its own login and passcode. See ``STOMPConfiguration/serverOrder``.
    ///   - configuration: the options. Default: those of ``STOMPConfiguration``.
    public init(_ urls: [String], configuration: STOMPConfiguration = STOMPConfiguration()) {
        self.init(urls, configuration: configuration, loop: nil)
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
        self.init(urls, configuration: configuration, loop: clock.loop, clock: clock)
    }

    /// Makes a client on a loop and over streams of the caller's choice. Without a loop it gets the shared one of the
    /// system's clock, and without a network or a resolver the system's.
    package init(
        _ urls: [String], configuration: STOMPConfiguration, loop: EventLoop?, override: StreamOpener.Override? = nil,
        clock: ManualClock? = nil, network: NetworkMonitor? = nil,
        resolver: Resolver = .shared
    ) {
        self.clock = clock
        let loop = loop ?? .shared(for: configuration.threadQuality, among: configuration.threadCount)
        let opener = StreamOpener(
            urls: urls, options: Shared(configuration.streamOptions), loop: loop, override: override, resolver: resolver
        )
        sender = STOMPSender(
            core: STOMPClientCore(opener: opener, configuration: configuration, loop: loop, network: network))
    }

    // MARK: Observing

    @_documentation(visibility: internal)
    public nonisolated var shell: ClientShell<STOMPError, STOMPEvent, STOMPFrameRecord> { ClientShell(core) }

    /// The server and the state of the connection.
    public nonisolated var description: String { "STOMPClient(\(server.map { "\($0)" } ?? "not connected"), \(state))" }

    // MARK: Disconnecting

    /// Disconnects gracefully: sends DISCONNECT with a receipt, and waits for RECEIPT or for the end of the connection.
    ///
    /// Returns when it is done, at the latest after three seconds. ``connect()`` may be called again.
    public nonisolated func disconnect() async { await core.supervisor.stop() }

    /// Disconnects gracefully and opens no connection until ``resume()``, for example while an application is in the
    /// background. Subscriptions remain, and are made again when the client resumes.
    public nonisolated func suspend() async { await core.supervisor.suspend() }
}
