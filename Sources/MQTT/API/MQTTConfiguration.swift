public import MQTTCore
public import Messaging
public import Transport

/// How a client connects and what it keeps.
public struct MQTTConfiguration: Sendable {
    /// The client identifier; each `%` stands for a random hexadecimal byte. Empty lets the server choose.
    public var clientID: String
    /// All the rest: copies share it until one of them is changed.
    var rest = MQTTSharedConfiguration.standard
    /// The version of the protocol to ask for.
    public var version: MQTTVersion {
        get { rest.values.version }
        set { values.version = newValue }
    }
    /// Versions to ask for, one after the other, when the server refuses ``version``; the first that it takes stays.
    ///
    /// `[.v3_1_1]` beside a `version` of 5.0 suits servers of any age; messages may then have no properties.
    public var fallbackVersions: [MQTTVersion] {
        get { rest.values.fallbackVersions }
        set { values.fallbackVersions = newValue }
    }
    /// Whether the client begins with a new session at both ends (Clean Start, Clean Session).
    ///
    /// 5.0: the first connection of this client begins anew; connections after that go on with the session as long as
    /// ``sessionExpiry`` lets the server keep it. So a client that reconnects by itself loses nothing, and a program that
    /// was started again begins anew. 3.1 and 3.1.1 have one flag for both: with it the server forgets the client at
    /// the end of every connection, and the client makes its subscriptions again; set it to false, with a client
    /// identifier that stays the same, for a session that survives.
    public var cleanStart: Bool {
        get { rest.values.cleanStart }
        set { values.cleanStart = newValue }
    }
    /// How long the server keeps the session after the connection ended, in whole seconds; 5.0 only.
    public var sessionExpiry: Duration {
        get { rest.values.sessionExpiry }
        set { values.sessionExpiry = newValue }
    }
    /// Keeps the session, and what is enqueued, over the end of the process; use it with `cleanStart` off.
    public var sessionStore: (any SessionStore)? {
        get { rest.values.sessionStore }
        set { values.sessionStore = newValue }
    }
    /// The longest silence on the connection, in whole seconds up to 65,535; zero turns keep alive off.
    public var keepAlive: Duration {
        get { rest.values.keepAlive }
        set { values.keepAlive = newValue }
    }
    /// The message that the server publishes when this client vanishes without a word.
    public var will: MQTTWill? {
        get { rest.values.will }
        set { values.will = newValue }
    }
    /// The order in which the servers of ``MQTTClient/init(_:clientID:configuration:)-([String],_,_)`` are tried.
    /// Default: as listed.
    public var serverOrder: ServerOrder {
        get { rest.values.serverOrder }
        set { values.serverOrder = newValue }
    }
    /// Shown to every server; user info in a server's URL serves when this is nil.
    public var credentials: Credentials? {
        get { rest.values.credentials }
        set { values.credentials = newValue }
    }
    /// Asked for credentials before each attempt to connect, and once more when they were refused; wins over
    /// `credentials`. An error that it throws fails the attempt, not those after it.
    public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)? {
        get { rest.values.credentialsProvider }
        set { values.credentialsProvider = newValue }
    }
    /// The steps of an authentication that is more than a password; 5.0 only.
    public var authentication: MQTTAuthentication? {
        get { rest.values.authentication }
        set { values.authentication = newValue }
    }
    /// Further properties of CONNECT: user properties, Request Response Information; 5.0 only.
    ///
    /// Connecting throws ``MQTTError/Code/invalidRequest`` for a property that an option sets: session expiry interval,
    /// receive maximum, maximum packet size, topic alias maximum, authentication method and data.
    public var connectProperties: MQTTProperties {
        get { rest.values.connectProperties }
        set { values.connectProperties = newValue }
    }
    /// Whether the client goes where the server sends it (Use Another Server, Server Moved), with the same credentials:
    /// allow it only to servers that you trust with them. 5.0 only. ``MQTTEvent/redirected(to:isPermanent:)`` tells of it.
    public var followsRedirects: Bool {
        get { rest.values.followsRedirects }
        set { values.followsRedirects = newValue }
    }
    /// For `mqtts:` and `wss:`; the defaults verify the server with the system's authorities.
    public var tls: TLSOptions {
        get { rest.values.tls }
        set { values.tls = newValue }
    }
    /// For `ws:` and `wss:`.
    public var webSocket: WebSocketOptions {
        get { rest.values.webSocket }
        set { values.webSocket = newValue }
    }
    /// Through which proxy the servers are reached; not for `unix:`.
    public var proxy: Proxy {
        get { rest.values.proxy }
        set { values.proxy = newValue }
    }
    /// How lost connections are opened again.
    public var reconnect: ReconnectPolicy {
        get { rest.values.reconnect }
        set { values.reconnect = newValue }
    }
    /// For one attempt to connect, from obtaining credentials and resolving the name to CONNACK, steps of an
    /// authentication included; also for a renewed authentication. Default: 30 seconds.
    public var connectTimeout: Duration {
        get { rest.values.connectTimeout }
        set { values.connectTimeout = newValue }
    }
    /// For the answers to SUBSCRIBE, UNSUBSCRIBE and each AUTH. Default: 10 seconds.
    public var requestTimeout: Duration {
        get { rest.values.requestTimeout }
        set { values.requestTimeout = newValue }
    }
    /// For any sign of life after a ping.
    public var pingTimeout: Duration {
        get { rest.values.pingTimeout }
        set { values.pingTimeout = newValue }
    }
    /// The largest packet that is accepted, in bytes.
    public var maximumPacketSize: Int {
        get { rest.values.maximumPacketSize }
        set { values.maximumPacketSize = newValue }
    }
    /// The largest packet other than PUBLISH that is accepted, in bytes, and the most bytes of properties in a PUBLISH.
    /// A server that sends more is answered with *Packet too large* (0x95). Default: 262,144 bytes (256 KiB).
    public var maximumControlPacketSize: Int {
        get { rest.values.maximumControlPacketSize }
        set { values.maximumControlPacketSize = newValue }
    }
    /// QoS 1 and 2 messages that the server may send before we acknowledge one; 5.0 only.
    public var receiveMaximum: UInt16 {
        get { rest.values.receiveMaximum }
        set { values.receiveMaximum = newValue }
    }
    /// QoS 1 and 2 messages of ours that are on their way at once; nil takes the server's word in 5.0 (at most 1024),
    /// and 20 before, where the server cannot say: Mosquitto ends the connection of a client that sends more of QoS 2.
    public var maximumInFlight: UInt16? {
        get { rest.values.maximumInFlight }
        set { values.maximumInFlight = newValue }
    }
    /// Publish again what the server had not finally acknowledged when it lost the session; QoS 2 messages may then
    /// arrive twice, which ``MQTTEvent/sessionLost(republished:possibleDuplicates:)`` counts. Otherwise their publishers get
    /// ``MQTTError/Code/sessionLost``.
    public var republishesAfterSessionLoss: Bool {
        get { rest.values.republishesAfterSessionLoss }
        set { values.republishesAfterSessionLoss = newValue }
    }
    /// Topic aliases that the server may use; 5.0 only.
    public var topicAliasMaximum: UInt16 {
        get { rest.values.topicAliasMaximum }
        set { values.topicAliasMaximum = newValue }
    }
    /// Topic aliases that we use at most, chosen by themselves; the server may allow fewer; 5.0 only.
    public var outboundTopicAliasMaximum: UInt16 {
        get { rest.values.outboundTopicAliasMaximum }
        set { values.outboundTopicAliasMaximum = newValue }
    }
    /// What becomes of QoS 1 and 2 messages that match no subscription.
    public var unmatchedMessagePolicy: MQTTUnmatchedMessagePolicy {
        get { rest.values.unmatchedMessagePolicy }
        set { values.unmatchedMessagePolicy = newValue }
    }
    /// Whether a message whose topic is invalid (a wildcard, U+0000, not UTF-8) is acknowledged, dropped and reported as
    /// ``MQTTEvent/invalidMessageDropped(topic:_:)``; otherwise it ends the connection, as the specification demands.
    /// Default: false.
    ///
    /// RabbitMQ 3 delivers what was published to `a/*` with the topic `a/+`.
    public var dropsInvalidMessages: Bool {
        get { rest.values.dropsInvalidMessages }
        set { values.dropsInvalidMessages = newValue }
    }
    /// Whether QoS 0 messages wait in the queue while the client connects, reconnects or is suspended; otherwise
    /// publishing one without a connection throws, as it always does before ``MQTTClient/connect()`` and after the client
    /// has stopped connecting. Default: false.
    public var queuesQoS0WhileOffline: Bool {
        get { rest.values.queuesQoS0WhileOffline }
        set { values.queuesQoS0WhileOffline = newValue }
    }
    /// What happens to a message that finds the queue full.
    public var queueOverflow: QueueOverflow {
        get { rest.values.queueOverflow }
        set { values.queueOverflow = newValue }
    }
    /// Messages that wait for a connection or for room among those in flight.
    public var maximumQueuedMessages: Int {
        get { rest.values.maximumQueuedMessages }
        set { values.maximumQueuedMessages = newValue }
    }
    /// Bytes of messages that wait.
    public var maximumQueuedBytes: Int {
        get { rest.values.maximumQueuedBytes }
        set { values.maximumQueuedBytes = newValue }
    }
    /// Bytes that wait for the socket; a publisher that finds them suspends until there is room.
    public var maximumOutboxBytes: Int {
        get { rest.values.maximumOutboxBytes }
        set { values.maximumOutboxBytes = newValue }
    }
    /// Bytes of received messages that wait in all subscriptions of the connection together, in what they take in memory.
    /// Default: 64 MiB.
    ///
    /// When it is reached, nothing more is read from the connection until half of it is free again; pings still go out.
    /// One read of the socket, up to 512 KiB, may exceed it. See ``BufferPolicy`` for the bounds of one subscription.
    public var maximumUnreadBytes: Int {
        get { rest.values.maximumUnreadBytes }
        set { values.maximumUnreadBytes = newValue }
    }

    public init(clientID: String = "") {
        self.clientID = clientID
    }
}
