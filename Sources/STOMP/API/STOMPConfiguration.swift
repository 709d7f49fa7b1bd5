public import MessagingShell
import MessagingWire
public import STOMPCore
public import Transport

/// The options of a client.
public struct STOMPConfiguration: Sendable, CustomStringConvertible {
    /// The versions to offer; the server chooses the highest that it supports. Default: all.
    public var versions: [STOMPVersion] = [.v10, .v11, .v12]
    /// The `host` header: a virtual host. Default: `/`, RabbitMQ's first virtual host; other brokers ignore it.
    public var host = "/"
    /// The order in which the servers of ``STOMPClient/init(_:configuration:)-([String],_)`` are tried. Default: as listed.
    public var serverOrder = ServerOrder.listed
    /// The login and passcode for every server; nil uses those in the server's URL. Default: nil.
    public var credentials: Credentials?
    /// Called for credentials before each attempt to connect, and once more when they were refused; takes precedence over
    /// `credentials`. It may also change the URL, its query and the header fields of the WebSocket handshake. An error that
    /// it throws fails this attempt only. Default: nil.
    public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
    /// The `client-id` header, which ActiveMQ needs for durable subscriptions and accepts from one client at a time.
    public var clientID: String?
    /// The maximum time between frames or heart-beats that the client sends, in whole milliseconds; zero for no
    /// heart-beats, and a negative time is an error (``STOMPError/Code/invalidRequest``). Default: 10 seconds.
    public var outgoingHeartBeat: Duration = .seconds(10)
    /// The maximum time between frames or heart-beats that the server is asked for, in whole milliseconds; zero for none,
    /// and a negative time is an error (``STOMPError/Code/invalidRequest``). A connection whose server is silent for two and a half times as long is closed. Default: 10 seconds.
    ///
    /// If the server sends none, ``STOMPEvent/heartBeatsDeclined(by:)`` reports it, and TCP keep-alive asks the server's
    /// system for signs of life instead, or that of a proxy in between.
    public var incomingHeartBeat: Duration = .seconds(10)
    /// Further headers for CONNECT. Default: none.
    public var connectHeaders: STOMPHeaders = [:]
    /// How the headers of CONNECT are escaped. Default: not at all.
    public var connectEscaping = STOMPConnectOptions.Escaping.never
    /// The kind of the broker; nil detects it from its `server` header. Default: nil.
    public var profile: STOMPBrokerProfile?
    /// TLS options for `stomps:` and `wss:`. Default: verify the server with the system's authorities.
    public var tls = TLSOptions()
    /// WebSocket options for `ws:` and `wss:`. Default: no additional headers, text messages.
    public var webSocket = WebSocketOptions()
    /// The proxy that connections pass; not for `unix:`. Default: none.
    public var proxy = Proxy.none
    /// When lost connections are opened again. Default: automatically, with back-off.
    public var reconnect = ReconnectPolicy.automatic
    /// Whether the client follows the network of the device on Apple's systems: it connects as soon as a network is
    /// available or has changed. An existing connection stays; heart-beats tell whether it lives. Default: true.
    ///
    /// Without a network it is in the state `waitingForNetwork` unless a server is on the same machine, and makes one
    /// attempt after each ``ReconnectPolicy/maximumDelay``, which does not count as one of the policy's. On other systems
    /// call ``STOMPClient/networkChanged()``.
    public var usesNetworkMonitor = true
    /// Which of the device's networks connections may use, and from where they leave. Default: as the system decides.
    public var network = NetworkOptions()
    /// How urgent the traffic of the connection is for the network: `.background`, `.standard` or `.responsive`. Default:
    /// `.standard`.
    ///
    /// On Apple's systems the service class of the connection; on Linux `SO_PRIORITY`, and the traffic class in the packets.
    public var serviceClass = ServiceClass.standard
    /// How urgent the thread is that serves the connection: its quality of service on Apple's systems; on Linux
    /// `.background` lowers its priority, and `.responsive` has no effect. Default: `.standard`.
    ///
    /// Connections whose threads have the same quality share one, or as many as ``threadCount`` says.
    public var threadQuality = ServiceClass.standard
    /// The number of threads over which the clients are spread that have this number and the same ``threadQuality``: each
    /// new client is served by the next of them. Less than 1 counts as 1. Default: 1, which serves thousands of idle
    /// connections.
    ///
    /// More are for a process that has many busy connections and processors to spare; a single client gains nothing.
    public var threadCount = 1
    /// Sees each message that is sent and received, and may change it: trace context, CloudEvents, compression, metrics.
    /// Default: nil.
    ///
    /// A message is sent when the call returns: one of `sendAndConfirm` when the broker has confirmed it, others when they are
    /// in the outbox.
    public var messageHook: STOMPMessageHook?
    /// Timeout for one attempt to connect, from obtaining credentials and resolving the name to CONNECTED. Default: 30
    /// seconds.
    public var connectTimeout: Duration = .seconds(30)
    /// Timeout for receipts and for replies to requests. While a frame arrives slowly, behind which a RECEIPT may come, the
    /// client waits for that longer. Default: 30 seconds.
    ///
    /// For receipts, time in which the client does not read, because of a full buffer, and in which the system sleeps does not count. A
    /// reader that takes nothing for this time ends the calls that wait, see ``STOMPEvent/readingPaused(for:)``.
    public var requestTimeout: Duration = .seconds(30)
    /// The longest time without any RECEIPT while frames of this client wait for one; nil waits for ever. Then the
    /// connection ends, and the next server is tried. Default: 30 seconds.
    ///
    /// It is counted from the last RECEIPT, or from the time when the server's system had taken the bytes of the frames: a
    /// large frame on a slow link may take longer. (Network.framework does not report that time: on Apple's systems it is
    /// counted from the sending.) It does not run while a transaction is open, because some brokers withhold its receipts
    /// until the end. With each connection in a row that ended for it the time doubles, until a RECEIPT arrives.
    /// ``STOMPEvent/acknowledgementTimedOut(receiptID:after:)`` names the frame that has waited longest. Messages that this
    /// client acknowledges late never end a connection.
    public var acknowledgementTimeout: Duration? = .seconds(30)
    /// Limits for frames of the server, checked before memory is allocated for them. They do not bound what the client
    /// sends.
    public var limits = STOMPLimits()
    /// The maximum number of receipts that are awaited at once, and a sixteenth of the number of receipts after the oldest of
    /// them, answered or not; those of SUBSCRIBE, UNSUBSCRIBE and COMMIT may exceed both. Default: 65,536.
    public var maximumReceipts = 65_536
    /// The maximum number of bytes that wait for the socket; senders suspend until there is room. Default: 1 MiB.
    public var maximumOutboxBytes = 1 << 20
    /// The maximum memory in bytes of received messages that wait in all subscriptions of the connection. Default: 64 MiB.
    ///
    /// When it is reached, nothing more is read from the connection until half of it is free again; heart-beats still go
    /// out. One read of the socket, up to 128 KiB, may exceed it. See ``BufferPolicy`` for the bounds of one subscription.
    public var maximumUnreadBytes = 64 << 20

    /// Makes a configuration with the default of each option.
    public init() {}

    /// Every option and its value, with secrets hidden.
    public var description: String { OneLine.properties(of: self) }
}

extension STOMPConfiguration {
    var streamOptions: StreamOptions {
        var options = StreamOptions()
        options.proxy = proxy
        options.tls = tls
        options.webSocket = webSocket
        options.serviceClass = serviceClass
        options.network = network
        // Notices a link that broke silently where the server declines heart-beats. With them it has nothing to do.
        options.keepAlive = asksForHeartBeats ? incomingHeartBeat.inNanoseconds : 0
        options.subprotocols = [(STOMPVersion.v12, "v12.stomp"), (.v11, "v11.stomp"), (.v10, "v10.stomp")]
            .filter { versions.contains($0.0) }.map(\.1)
        options.textMessages = WebSocketTextMessages("STOMP", lengthOfFirst: STOMPFrame.lengthOfFirst(in:))
        options.schemes = [.stomp, .stomps, .ws, .wss, .unix]
        return options
    }

    /// Whether CONNECT asks the server for heart-beats.
    var asksForHeartBeats: Bool { incomingHeartBeat >= .milliseconds(1) }

    /// The engine's part. Each attempt to connect sets `connect` anew.
    var engineConfiguration: STOMPEngineConfiguration {
        var engine = STOMPEngineConfiguration()
        engine.limits = limits
        engine.connectTimeout = connectTimeout.inNanoseconds
        engine.disconnectTimeout = 2_000_000_000
        engine.receiptTimeout = requestTimeout.inNanoseconds
        engine.acknowledgementTimeout = acknowledgementTimeout?.inNanoseconds ?? .max
        engine.maximumReceipts = maximumReceipts
        engine.profile = profile
        return engine
    }

    func connectOptions(credentials: Credentials?) -> STOMPConnectOptions {
        var options = STOMPConnectOptions()
        options.versions = versions
        options.host = host
        options.login = credentials?.userName
        options.passcode = credentials?.password
        options.clientID = clientID
        options.heartBeat = STOMPHeartBeat(
            outgoing: Int(clamping: outgoingHeartBeat.inNanoseconds / 1_000_000),
            incoming: Int(clamping: incomingHeartBeat.inNanoseconds / 1_000_000))
        options.headers = connectHeaders
        options.escaping = connectEscaping
        return options
    }
}
