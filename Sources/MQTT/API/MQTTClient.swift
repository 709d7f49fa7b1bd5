public import MQTTCore
public import Messaging
import Synchronization
import Transport

/// A client for MQTT servers that keeps itself connected.
///
///     let client = MQTTClient("mqtt://localhost", clientID: "thermometer-%%%%")
///     try await client.connect()
///     try await client.publish("21.5", to: "home/temperature", qos: .atLeastOnce)
///
/// After the first `connect()` a lost connection is opened again, with back-off, and everything is subscribed again;
/// ``states`` and ``events`` tell of it. All messages of a client leave through one lock, so that those of one task keep
/// their order. A client that is dropped without ``disconnect()`` ends its connection, and the server publishes its will.
public actor MQTTClient {
    nonisolated let core: MQTTClientCore
    /// Made for the first request.
    private nonisolated let knownResponses: Lock<MQTTResponses?>

    /// Makes a client; nothing is opened before ``connect()``.
    ///
    /// - Parameters:
    ///   - url: `mqtt://[user:password@]host[:port]`, `mqtts:` for TLS, `ws://host/path` and `wss:` for WebSocket, or
    ///     `unix:/path`. A mistake in it is reported by ``connect()``.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    public init(_ url: String, clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration()) {
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        self.init([url], configuration: configuration, loop: .shared, override: nil)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``connect()``.
    ///
    /// The next server is tried as soon as one has failed, the wait of ``ReconnectPolicy`` follows when all have. What
    /// no other server can heal (refused credentials, a mistake in a URL) ends the attempts all the same. Messages that
    /// were not acknowledged are published again at the next server; a session continues there if the servers share it.
    /// - Parameters:
    ///   - urls: as for one server; each may hold its own user name and password. See ``MQTTConfiguration/serverOrder``.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    public init(_ urls: [String], clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration()) {
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        self.init(urls, configuration: configuration, loop: .shared, override: nil)
    }

    /// Makes a client on a loop and over streams of the caller's choice.
    package init(
        _ urls: [String], configuration: MQTTConfiguration, loop: EventLoop, override: StreamOpener.Override?
    ) {
        let settings = MQTTSettings.of(configuration)
        let opener = StreamOpener(urls: urls, options: settings.streams, loop: loop, override: override)
        core = MQTTClientCore(opener: opener, settings: settings, clientID: configuration.clientID, loop: loop)
        knownResponses = Lock(nil)
    }

    /// Another face of the same client.
    init(core: MQTTClientCore, responses: MQTTResponses) {
        self.core = core
        knownResponses = Lock(responses)
    }

    nonisolated var responses: MQTTResponses {
        knownResponses.withLock { known in
            if let known { return known }
            let made = MQTTResponses()
            known = made
            return made
        }
    }

    /// The states of the connection from the moment this is called, the present one first.
    public nonisolated var states: Updates<MQTTConnectionState> { core.news.states }

    /// Where the connection stands now.
    public nonisolated var state: MQTTConnectionState { core.news.state }

    /// The server that is connected, or else was tried last; nil before the first attempt.
    public nonisolated var server: BrokerURL? { core.opener.server }

    /// What happens to the client from the moment this is called. A slow reader misses the oldest of 1024 events.
    public nonisolated var events: Updates<MQTTEvent> { core.news.events }

    /// The thread on which this client's sockets are served, for tasks that wait for many answers:
    /// `withTaskExecutorPreference(client.executor) { … }`.
    ///
    /// An answer then resumes its task without a switch of threads, which is most of what a round trip on a fast network
    /// costs. What runs there must not block: every connection of the process waits for it.
    public nonisolated var executor: any TaskExecutor { core.loop }

    /// What went through the client so far.
    public nonisolated var counters: ClientCounters {
        core.counters.snapshot(sent: core.link.perform { $0.publishers.count }, traffic: core.link.traffic)
    }

    /// The client identifier in force: expanded, or assigned by the server.
    public nonisolated var clientID: String { core.link.perform { $0.engine.configuration.clientID } }

    /// Connects and returns when the server has accepted; already connected, it returns at once.
    ///
    /// How often a first connection is tried is a matter of ``ReconnectPolicy/firstConnectAttempts``. Cancelling the
    /// task ends the wait, and the attempts with it unless there was a connection before.
    /// - Throws: ``MQTTError`` when the attempts are used up or another one is pointless (``MQTTError/Code/badCredentials``).
    public func connect() async throws(MQTTError) {
        try await core.supervisor.start(cancelled: .cancelledWait)
    }

    /// Ends the connection in order: what was published leaves first, the server drops the will, sequences end.
    ///
    /// QoS 2 messages that are being received are finished before DISCONNECT, for up to two seconds. Returns when it is
    /// done, at the latest after three seconds. ``connect()`` may be called again.
    public func disconnect() async {
        await core.supervisor.stop { [core] in core.sayGoodbye() }
    }

    /// Ends the connection in order as ``disconnect()`` does, with words to the server; 5.0 only.
    ///
    /// - Parameters:
    ///   - reason: ``MQTTCore/MQTTReasonCode/disconnectWithWillMessage`` has the will published all the same.
    ///   - properties: Reason String, user properties, and a Session Expiry Interval in place of
    ///     ``MQTTConfiguration/sessionExpiry``.
    /// - Throws: ``MQTTError`` if that cannot be said; the connection stays. Without a connection nothing is.
    public func disconnect(reason: MQTTReasonCode, properties: MQTTProperties = []) async throws(MQTTError) {
        try core.checkGoodbye(reason, properties)
        await core.supervisor.stop { [core] in core.sayGoodbye(reason, properties: properties) }
    }

    /// Ends the connection in order and opens none until ``resume()``, as for an application that goes to the
    /// background. Subscriptions stay, messages wait, the session is kept as far as the server was asked to.
    public func suspend() async {
        await core.supervisor.suspend { [core] in core.sayGoodbye() }
    }

    /// Connects again after ``suspend()``; returns at once. ``connect()`` does the same and waits.
    public nonisolated func resume() {
        core.supervisor.resume()
    }

    /// Tells that the network came back or changed: a wait before the next attempt is cut short.
    public nonisolated func networkChanged() {
        core.supervisor.networkChanged()
    }

    /// Connects, runs `body`, and disconnects whatever happens.
    ///
    /// - Throws: ``MQTTError`` from connecting, or what `body` throws.
    public nonisolated(nonsending) func withConnection<Result>(
        _ body: (MQTTClient) async throws -> Result
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
