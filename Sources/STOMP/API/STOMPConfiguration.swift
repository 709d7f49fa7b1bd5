public import Messaging
public import STOMPCore
public import Transport
import Wire

/// How a client connects, and its limits.
public struct STOMPConfiguration: Sendable {
    /// The versions to offer; the server chooses the highest that it supports. Default: 1.0, 1.1 and 1.2.
    public var versions: [STOMPVersion] = [.v10, .v11, .v12]
    /// The `host` header, which names a virtual host. Default: `/`, RabbitMQ's default; other brokers ignore it.
    public var host = "/"
    /// The order in which the servers of ``STOMPClient/init(_:configuration:)-([String],_)`` are tried. Default: as listed.
    public var serverOrder = ServerOrder.listed
    /// Login and passcode for every server; the user info in a server's URL is used when this is nil. Default: nil.
    public var credentials: Credentials?
    /// Called for credentials before each attempt to connect, and once more when they were refused; takes precedence over
    /// `credentials`. An error that it throws fails this attempt, not later ones. Default: nil.
    public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
    /// The `client-id` header, which ActiveMQ requires for durable subscriptions and accepts from one connection at a time.
    /// Default: nil.
    public var clientID: String?
    /// The longest time between two frames or heart-beats that the client sends; zero for no heart-beats. Rounded down to
    /// milliseconds. Default: 10 seconds.
    public var outgoingHeartBeat: Duration = .seconds(10)
    /// The longest time between two frames or heart-beats that the server is asked to send; zero for no heart-beats. The
    /// client ends a connection that is silent for twice as long. Default: 10 seconds.
    public var incomingHeartBeat: Duration = .seconds(10)
    /// More headers for CONNECT. Default: none.
    public var connectHeaders: STOMPHeaders = [:]
    /// How the headers of CONNECT are escaped. Default: never.
    public var connectEscaping = STOMPConnectOptions.Escaping.never
    /// What the broker can do, used instead of what its `server` header implies. Default: nil.
    public var profile: STOMPBrokerProfile?
    /// For `stomps:` and `wss:`. Default: the server is verified with the system's certificate authorities.
    public var tls = TLSOptions()
    /// For `ws:` and `wss:`.
    public var webSocket = WebSocketOptions()
    /// The proxy through which servers are reached, except with `unix:`. Default: none.
    public var proxy = Proxy.none
    /// How lost connections are opened again. Default: ``ReconnectPolicy/automatic``.
    public var reconnect = ReconnectPolicy.automatic
    /// Timeout for one attempt to connect, from obtaining credentials and resolving the name to CONNECTED.
    /// Default: 30 seconds.
    public var connectTimeout: Duration = .seconds(30)
    /// Timeout for a receipt, and for the reply to a request. Default: 30 seconds.
    public var requestTimeout: Duration = .seconds(30)
    /// Bounds of what the server may send, checked before memory is allocated.
    public var limits = STOMPLimits()
    /// Receipts that may be outstanding at once. Default: 65,536.
    public var maximumReceipts = 65_536
    /// Bytes that may wait for the socket; a task that sends more suspends until there is room. Default: 1 MiB.
    public var maximumOutboxBytes = 1 << 20
    /// Bytes of received messages that wait in all subscriptions of the connection together, in what they take in memory.
    /// Default: 64 MiB.
    ///
    /// When it is reached, nothing more is read from the connection until half of it is free again; heart-beats are still
    /// sent. One read of the socket, up to 512 KiB, may exceed it. See ``BufferPolicy`` for the bounds of one subscription.
    public var maximumUnreadBytes = 64 << 20

    /// Makes a configuration with the default of each option.
    public init() {}
}

extension STOMPConfiguration {
    var streamOptions: StreamOptions {
        var options = StreamOptions()
        options.proxy = proxy
        options.tls = tls
        options.webSocket = webSocket
        options.subprotocols = [(STOMPVersion.v12, "v12.stomp"), (.v11, "v11.stomp"), (.v10, "v10.stomp")]
            .filter { versions.contains($0.0) }.map(\.1)
        options.acceptsText = true
        options.schemes = [.stomp, .stomps, .ws, .wss, .unix]
        return options
    }

    /// The engine's part. Each attempt to connect sets `connect` anew.
    var engineConfiguration: STOMPEngineConfiguration {
        var engine = STOMPEngineConfiguration()
        engine.limits = limits
        engine.connectTimeout = connectTimeout.inNanoseconds
        engine.disconnectTimeout = 2_000_000_000
        engine.receiptTimeout = requestTimeout.inNanoseconds
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

extension STOMPConfiguration {
    /// Every option and its value, with secrets hidden.
    package var options: [(label: String, value: Any)] {
        [
            ("versions", versions), ("host", host),
            ("serverOrder", serverOrder), ("credentials", credentials as Any),
            ("credentialsProvider", credentialsProvider as Any), ("clientID", clientID as Any),
            ("outgoingHeartBeat", outgoingHeartBeat), ("incomingHeartBeat", incomingHeartBeat),
            ("connectHeaders", connectHeaders), ("connectEscaping", connectEscaping), ("profile", profile as Any),
            ("tls", tls), ("webSocket", webSocket), ("proxy", proxy), ("reconnect", reconnect),
            ("connectTimeout", connectTimeout), ("requestTimeout", requestTimeout), ("limits", limits),
            ("maximumReceipts", maximumReceipts), ("maximumOutboxBytes", maximumOutboxBytes),
            ("maximumUnreadBytes", maximumUnreadBytes),
        ]
    }
}

extension STOMPConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Every option and its value, with secrets hidden.
    public var description: String {
        "STOMPConfiguration(\(options.map { "\($0.label): \($0.value)" }.joined(separator: ", ")))"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(self, children: options.map { (label: $0.label, value: $0.value) }, displayStyle: .struct)
    }
}
