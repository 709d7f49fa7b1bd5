public import Messaging
public import STOMPCore
public import Transport
import Wire

/// How a client connects and what it keeps.
public struct STOMPConfiguration: Sendable {
    /// The versions to offer; the server picks the highest that it knows.
    public var versions: [STOMPVersion] = [.v10, .v11, .v12]
    /// The `host` header: a virtual host. The default, `/`, is the one that RabbitMQ starts with; others pass over it.
    public var host = "/"
    /// The order in which the servers of ``STOMPClient/init(_:configuration:)-([String],_)`` are tried. Default: as listed.
    public var serverOrder = ServerOrder.listed
    /// Shown to every server; user info in a server's URL serves when this is nil.
    public var credentials: Credentials?
    /// Asked for credentials before each attempt to connect, and once more when they were refused; wins over
    /// `credentials`. An error that it throws fails the attempt, not those after it.
    public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
    /// The `client-id` header, which ActiveMQ wants for durable subscriptions and lets nobody use twice.
    public var clientID: String?
    /// How often we send at least a heart-beat; zero for never. In whole milliseconds.
    public var outgoingHeartBeat: Duration = .seconds(10)
    /// How often the server is asked to; zero for never. A server that stays silent for twice as long is given up.
    public var incomingHeartBeat: Duration = .seconds(10)
    /// More headers for CONNECT.
    public var connectHeaders: STOMPHeaders = [:]
    /// How the headers of CONNECT are escaped.
    public var connectEscaping = STOMPConnectOptions.Escaping.never
    /// Overrules what the broker's `server` header says about its kind.
    public var profile: STOMPBrokerProfile?
    /// For `stomps:` and `wss:`; the defaults verify the server with the system's authorities.
    public var tls = TLSOptions()
    /// For `ws:` and `wss:`.
    public var webSocket = WebSocketOptions()
    /// Through which proxy the servers are reached; not for `unix:`.
    public var proxy = Proxy.none
    /// How lost connections are opened again.
    public var reconnect = ReconnectPolicy.automatic
    /// For one attempt to connect, from obtaining credentials and resolving the name to CONNECTED. Default: 30 seconds.
    public var connectTimeout: Duration = .seconds(30)
    /// For the receipts that are awaited. Default: 30 seconds.
    public var requestTimeout: Duration = .seconds(30)
    /// Bounds on what the server may send, checked before memory is taken.
    public var limits = STOMPLimits()
    /// Receipts that are awaited at once.
    public var maximumReceipts = 65_536
    /// Bytes that wait for the socket; a sender that finds them suspends until there is room.
    public var maximumOutboxBytes = 1 << 20
    /// Bytes of received messages that wait in all subscriptions of the connection together, in what they take in memory.
    /// Default: 64 MiB.
    ///
    /// When it is reached, nothing more is read from the connection until half of it is free again; heart-beats still go
    /// out. One read of the socket, up to 512 KiB, may exceed it. See ``BufferPolicy`` for the bounds of one subscription.
    public var maximumUnreadBytes = 64 << 20

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
}
