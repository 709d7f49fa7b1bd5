public import MQTTCore
public import MQTTRecords
public import MessagingShell
import Synchronization
public import Transport

/// A client for MQTT servers that keeps itself connected.
///
///     let client = MQTTClient("mqtt://localhost", clientID: "thermometer-%%%%")
///     try await client.connect()
///     try await client.publish("21.5", to: "home/temperature", qos: .atLeastOnce)
///
/// ``connect()`` waits for the first connection, ``start()`` does not. After that a lost connection is opened again, with
/// back-off, and everything is subscribed again; ``states`` and ``events`` report it. All messages of a client pass one
/// lock, so that those of one task keep their order. A client that is released without ``disconnect()`` closes its
/// connection, and the server publishes its will.
public actor MQTTClient: MessagingClient {
    /// Stored with the client, because making it for each message would cost a counted reference.
    let sender: MQTTSender
    nonisolated var core: MQTTClientCore { sender.core }
    nonisolated let knownReplies = Lock<MQTTClientCore.Replies?>(nil)
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
        self.init([url], clientID: clientID, configuration: configuration)
    }

    /// Makes a client that tries several servers in turn; nothing is opened before ``start()`` or
    /// ``connect()``.
    ///
    /// The next server is tried ``ReconnectPolicy/failoverDelay`` after one has failed; the wait of ``ReconnectPolicy`` follows
    /// when all have. A failure that no other server can solve (refused credentials, a mistake in a URL) ends the attempts all
    /// the same; so does a version that every server of a round refuses. Messages that were not acknowledged are published
    /// again at the next server; a session continues there if the servers share it.
    /// - Parameters:
    ///   - urls: as for one server; each may hold its own user name and password. See ``MQTTConfiguration/serverOrder``.
    ///   - clientID: see ``MQTTConfiguration/clientID``.
    ///   - configuration: the options. Default: those of ``MQTTConfiguration``.
    public init(_ urls: [String], clientID: String = "", configuration: MQTTConfiguration = MQTTConfiguration()) {
        self.init(urls, clientID: clientID, configuration: configuration, loop: nil)
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
        self.init(urls, clientID: clientID, configuration: configuration, loop: clock.loop, clock: clock)
    }

    /// Makes a client on a loop and over streams of the caller's choice. Without a loop it gets the shared one of the
    /// system's clock, and without a network or a resolver the system's.
    package init(
        _ urls: [String], clientID: String = "", configuration: MQTTConfiguration, loop: EventLoop?,
        override: StreamOpener.Override? = nil, clock: ManualClock? = nil, network: NetworkMonitor? = nil,
        resolver: Resolver = .shared
    ) {
        self.clock = clock
        var configuration = configuration
        if !clientID.isEmpty { configuration.clientID = clientID }
        let loop = loop ?? .shared(for: configuration.threadQuality, among: configuration.threadCount)
        let settings = MQTTSettings.of(configuration)
        let opener = StreamOpener(
            urls: urls, options: settings.streams, loop: loop, override: override, resolver: resolver)
        sender = MQTTSender(
            core: MQTTClientCore(
                opener: opener, settings: settings, clientID: configuration.clientID, loop: loop, network: network))
    }

    // MARK: Observing

    @_documentation(visibility: internal)
    public nonisolated var shell: ClientShell<MQTTError, MQTTEvent, MQTTPacketRecord> { ClientShell(core) }

    /// The client identifier in use: expanded, or assigned by the server.
    public nonisolated var clientID: String { core.link.perform { $0.engine.clientID } }

    /// The client identifier and the state of the connection.
    public nonisolated var description: String { "MQTTClient(\(clientID), \(state))" }

    // MARK: Disconnecting

    /// Disconnects gracefully: what was published is sent first, the server discards the will, sequences end.
    ///
    /// For up to two seconds QoS 2 messages that are being received are finished before DISCONNECT, those that are being sent
    /// too if the session ends with the connection, and QoS 0 messages leave that wait for the pace of publishing. Returns
    /// when it is done, at the latest after three seconds and the time that a session store needs: the store is closed, so
    /// that another client may use it. ``connect()`` may be called again.
    public nonisolated(nonsending) func disconnect() async { await core.disconnect() }

    /// Disconnects gracefully, sending this reason code and these properties in DISCONNECT; 5.0 only.
    ///
    /// - Parameters:
    ///   - reason: ``MQTTReasonCode/disconnectWithWillMessage`` has the server publish the will all the same.
    ///   - properties: Reason String, user properties, and a Session Expiry Interval in place of
    ///     ``MQTTConfiguration/sessionExpiry``.
    /// - Throws: ``MQTTError`` if they cannot be sent; the connection remains. Without a connection nothing is sent.
    public nonisolated(nonsending) func disconnect(
        reason: MQTTReasonCode, properties: MQTTProperties = []
    ) async throws(MQTTError) {
        try core.checkGoodbye(reason, properties)
        await core.disconnect(reason, properties: properties)
    }

    /// Disconnects gracefully and opens no connection until ``resume()``, for example while an application is in the
    /// background. Subscriptions remain, messages wait, and the server keeps the session for as long as it was asked to.
    public nonisolated func suspend() async { await core.supervisor.suspend() }
}
