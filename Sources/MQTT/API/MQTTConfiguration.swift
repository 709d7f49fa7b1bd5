public import MQTTCore
public import MessagingShell
import MessagingWire
public import Transport

/// How an ``MQTTClient`` connects, and the bounds that it keeps.
///
/// Changing a configuration after a client was made from it has no effect on that client. Two configurations are equal if
/// all their options are: texts by their bytes, closures and session stores if both are nil or one configuration is a copy
/// of the other.
public struct MQTTConfiguration: Sendable, Equatable, CustomStringConvertible {
    /// The client identifier; each `%` is replaced by two random hexadecimal digits, once for the life of the client.
    /// Default: empty, which lets the server choose one. The client keeps that for its next connections; if the server then
    /// refuses it, as AWS IoT Core does, it asks for another one, and what the server had for the first is lost.
    public var clientID: String
    /// The version of the protocol to ask for. Default: 3.1.1.
    public var version = MQTTVersion.v3_1_1
    /// Versions to ask for, one after the other, when the server refuses ``version`` or ends two connections in a row instead
    /// of answering; the first that it accepts is used from then on. If it accepts none, the next attempt begins with
    /// ``version`` again. Default: none.
    ///
    /// `[.v3_1_1]` beside a `version` of 5.0 suits servers of any age; messages may then have no properties.
    public var fallbackVersions: [MQTTVersion] = []
    /// Whether the client begins with a new session at both ends (Clean Start, Clean Session). Default: true.
    ///
    /// 5.0: the first connection of this client begins a new session; later connections continue it as long as
    /// ``sessionExpiry`` lets the server keep it. So a client that reconnects by itself loses nothing, and a program that
    /// was started again begins with a new session. 3.1 and 3.1.1 have one flag for both: with it the server discards the
    /// session at the end of every connection, and the client subscribes again. For a session that survives set it to
    /// false, with a client identifier that does not change.
    public var cleanStart = true
    /// Whether every filter is subscribed again when the server has kept the session. Default: false.
    ///
    /// With false the client repeats only: shared filters, which some servers forget (Mosquitto 2.0 does when it restarts);
    /// those granted a lower QoS than they asked for, if a 5.0 server now allows more; those whose SUBSCRIBE had no answer; and
    /// all where the session may be another, after a CONNECT without an answer or at another server.
    ///
    /// For servers that resume a session without its subscriptions. With 5.0 such a SUBSCRIBE asks for retained messages
    /// only where the server has lost the subscription (Retain Handling 1); with 3.1.1 it brings the retained messages of
    /// every filter again, after each reconnect. The messages that wait to be published leave one round trip later.
    public var resubscribesWithSessionPresent = false
    /// How long the server keeps the session after the connection ended, rounded up to whole seconds; 5.0 only. Default: 0
    /// seconds.
    public var sessionExpiry: Duration = .zero
    /// Stores the session, and enqueued messages, so that they survive the end of the process; use it with `cleanStart`
    /// off. Default: nil.
    @ComparedByIdentity public var sessionStore: (any SessionStore)?
    /// The longest silence on the connection, rounded up to whole seconds, up to 65,535; zero turns keep alive off,
    /// and a negative time is an error (``MQTTError/Code/invalidRequest``). Default: 45 seconds.
    ///
    /// Proxies and load balancers end connections that are idle for 50 or 60 seconds by default: PINGREQ has to come before.
    /// A server ends one on which it gets no whole packet for one and a half times as long [MQTT-3.1.2-22]: choose a time in
    /// which the slowest link carries the largest message.
    public var keepAlive: Duration = .seconds(45)
    /// The message that the server publishes when this client's connection ends without DISCONNECT. Default: nil.
    ///
    /// A delay needs 5.0 as ``version`` or among ``fallbackVersions``, and a ``sessionExpiry`` that is at least as
    /// long: otherwise connecting throws ``MQTTError/Code/invalidRequest``. A server that supports only an older
    /// version publishes the will without the delay.
    public var will: MQTTWill?
    /// The order in which the servers of ``MQTTClient/init(_:clientID:configuration:)-([String],_,_)`` are tried.
    /// Default: as listed.
    public var serverOrder = ServerOrder.listed
    /// User name and password for every server; the user info in a server's URL is used when this is nil. Default: nil.
    public var credentials: Credentials?
    /// Called for credentials before each attempt to connect, and once more when they were refused; takes precedence over
    /// `credentials`. It may also change the URL, its query and the header fields of the WebSocket handshake. An error that
    /// it throws fails this attempt only. Default: nil.
    @ComparedByIdentity public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
    /// Called before each CONNECT, after the `credentialsProvider`, to change it: the will, properties, keep alive or clean
    /// start of this attempt. An error that it throws fails this attempt only; what CONNECT cannot have ends the attempts
    /// with ``MQTTError/Code/invalidRequest``. Default: nil.
    ///
    ///     configuration.connectProvider = { options in
    ///         options.will?.payload = await births.next()  // Each connection of an edge node has a number of its own.
    ///     }
    @ComparedByIdentity public var connectProvider: (@Sendable (inout MQTTConnectOptions) async throws -> Void)?
    /// The steps of an authentication that is more than a password; 5.0 only. Default: nil.
    @ComparedByIdentity public var authentication: MQTTAuthentication?
    /// Further properties of CONNECT: user properties, Request Response Information; 5.0 only. Default: none.
    ///
    /// Connecting throws ``MQTTError/Code/invalidRequest`` for a property that an option sets: session expiry interval,
    /// receive maximum, maximum packet size, topic alias maximum, authentication method and data.
    public var connectProperties = MQTTProperties()
    /// Whether the client connects to the server that a server refers it to (Use Another Server, Server Moved), with the
    /// same credentials: allow it only to servers that you trust with them. 5.0 only. Default: false.
    ///
    /// A reference is a host with or without a port, or a URL with the scheme of the client's own; of several the client tries
    /// the first that it can use, and then the servers of its own list.
    /// ``MQTTEvent/redirected(to:isPermanent:)`` reports each redirection.
    public var followsRedirects = false
    /// Options for `mqtts:` and `wss:`. Their files are read for each connection; ``TLSOptions/check()`` reads them without
    /// connecting. Default: verifies the server with the system's authorities.
    public var tls = TLSOptions()
    /// Options for `ws:` and `wss:`. Default: no additional headers, binary messages.
    public var webSocket = WebSocketOptions()
    /// The proxy through which the servers are reached; not for `unix:`. Default: none.
    public var proxy = Proxy.none
    /// When lost connections are opened again. Default: automatically, with growing delays.
    public var reconnect = ReconnectPolicy.automatic
    /// Whether the client follows the network of the device on Apple's systems: it connects as soon as a network is
    /// available or has changed, and an existing connection is then checked with PINGREQ. Default: true.
    ///
    /// Without a network it is in the state `waitingForNetwork` unless a server is on the same machine, and makes one
    /// attempt after each ``ReconnectPolicy/maximumDelay``, which does not count as one of the policy's. On other systems
    /// call ``MQTTClient/networkChanged()``.
    public var usesNetworkMonitor = true
    /// Which of the device's networks connections may use, and from where they leave. Default: as the system decides.
    public var network = NetworkOptions()
    /// How urgent the traffic of the connection is for the network: `.background`, `.standard` or `.responsive`. Default:
    /// `.standard`.
    ///
    /// On Apple's systems the service class of the connection; on Linux `SO_PRIORITY`, and the traffic class in the packets.
    public var serviceClass = ServiceClass.standard
    /// The urgency of the thread that serves the connection: its quality of service on Apple's systems; on Linux
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
    /// Timeout for one attempt to connect, from opening the session store, obtaining credentials and resolving the name to
    /// CONNACK, steps of an authentication included; also for a renewed authentication. Default: 30 seconds.
    public var connectTimeout: Duration = .seconds(30)
    /// Timeout for the responses to SUBSCRIBE, UNSUBSCRIBE and each AUTH, and for those to requests that name no timeout. For
    /// SUBSCRIBE it is counted over connections that end without a response. Default: 10 seconds.
    ///
    /// Time in which the client does not read, because of a full buffer, and in which the system sleeps does not count. A reader that takes
    /// nothing for this time ends the calls that wait, see ``MQTTEvent/readingPaused(for:)``.
    ///
    /// On a slow link SUBACK and UNSUBACK come behind the messages that the server has sent before. While bytes arrive, and
    /// PINGREQ that was written later is not answered either, the client waits for them up to sixty times longer.
    public var requestTimeout: Duration = .seconds(10)
    /// The longest time without any PUBACK, PUBREC or PUBCOMP while messages of this client wait for one; nil waits for
    /// ever. Then the connection ends, and the next server is tried. Default: 30 seconds.
    ///
    /// It is counted from the last of them, or from the time when the server's system had taken the bytes of the messages:
    /// a large message on a slow link may take longer. (Network.framework does not report that time: on Apple's systems it
    /// is counted from the publish.) With each connection in a row that ended for it the time doubles, until an
    /// acknowledgement arrives. ``MQTTEvent/acknowledgementTimedOut(topic:_:after:)`` names the message that has waited
    /// longest. Acknowledgements that the server waits for never end a connection.
    ///
    /// While messages arrive on a slow link, and PINGREQ that was written later is not answered either, the client waits for up
    /// to twenty times as long.
    public var acknowledgementTimeout: Duration? = .seconds(30)
    /// The number of topic filters in one SUBSCRIBE or UNSUBSCRIBE; more filters go into further packets, which leave
    /// together. Default: 8, the most that AWS IoT Core accepts.
    ///
    /// There are 65,535 packet identifiers: one call cannot subscribe more packets than that.
    public var maximumFiltersPerRequest = 8
    /// Timeout for a response after PINGREQ has been written. Default: 10 seconds.
    public var pingTimeout: Duration = .seconds(10)
    /// The largest packet that is accepted, in bytes; `.max` omits the property Maximum Packet Size from CONNECT, so that the
    /// server knows no limit but that of the protocol. Default: 16,777,216 bytes (16 MiB).
    ///
    /// A packet that arrives takes memory as its bytes come, beside ``maximumUnreadBytes``, until its message has been copied
    /// to the buffers of its subscriptions.
    public var maximumPacketSize = 16 << 20
    /// The largest packet other than PUBLISH that is accepted, in bytes, and the most bytes of properties in a PUBLISH.
    /// A larger one ends the connection with *Packet too large* (0x95). Default: 262,144 bytes (256 KiB).
    public var maximumControlPacketSize = 256 << 10
    /// The number of QoS 1 and 2 messages that the server may send before the client acknowledges one; 5.0 only.
    /// Default: 1024.
    ///
    /// A server that sends more is reported by ``MQTTEvent/receiveMaximumExceeded(_:)``.
    public var receiveMaximum: UInt16 = 1024
    /// Whether a server that exceeds ``receiveMaximum`` ends the connection, as the specification demands [MQTT-3.3.4-9];
    /// otherwise up to 65,535 messages without an acknowledgement are received. 5.0 only. Default: false.
    ///
    /// Mosquitto 2.0.11 exceeds it after a session was resumed and under load, and would do so on the next connection too.
    public var enforcesReceiveMaximum = false
    /// The number of this client's QoS 1 and 2 messages in flight. Default: nil, which uses the server's limit in 5.0 (at
    /// most 1024), and 20 before, where the server cannot send one: Mosquitto closes the connection of a client that
    /// sends more with QoS 2. Above 65,407 it counts as 65,407: some packet identifiers stay free for subscriptions.
    public var maximumInFlight: UInt16?
    /// Whether the messages that the server had not finally acknowledged when it lost the session are published again.
    /// QoS 2 messages may then arrive twice, which ``MQTTEvent/sessionLost(republished:possibleDuplicates:)`` counts.
    /// Otherwise their publishers get ``MQTTError/Code/sessionLost``. Default: true.
    public var republishesAfterSessionLoss = true
    /// The number of topic aliases that the server may use; 5.0 only. Default: 64.
    public var topicAliasMaximum: UInt16 = 64
    /// The number of topic aliases that the client uses, which it assigns itself; the server may allow fewer; 5.0 only.
    /// Default: 32.
    public var outboundTopicAliasMaximum: UInt16 = 32
    /// What is done with QoS 1 and 2 messages that match no subscription. Default: up to 1000 messages and 1 MiB are
    /// kept for an hour.
    public var unmatchedMessagePolicy = MQTTUnmatchedMessagePolicy()
    /// Whether a message whose topic is invalid (a wildcard, U+0000, not UTF-8, empty), or which has properties that it must
    /// not have (5.0), is acknowledged, dropped and reported as ``MQTTEvent/invalidMessageDropped(topic:_:)``; otherwise it
    /// ends the connection, as the specification demands. Default: false.
    ///
    /// RabbitMQ 3 delivers what was published to `a/*` with the topic `a/+`. Three connections in a row that the same message
    /// ends soon stop the client with ``MQTTError/Code/sessionBlocked``.
    public var dropsInvalidMessages = false
    /// Sees each message that is sent and received, and may change it: trace context, CloudEvents, compression, metrics.
    /// Default: nil.
    ///
    /// A message is sent when the call returns: an enqueued one when it is stored, one of `publishForConfirmation` when it has
    /// its place in the order. Properties that the hook adds are left out before 5.0.
    @ComparedByIdentity public var messageHook: MQTTMessageHook?
    /// Whether QoS 0 messages wait in the queue while the client connects, reconnects or is suspended; otherwise
    /// publishing one without a connection throws, as it always does before ``MQTTClient/connect()`` and after the client
    /// has stopped connecting. Default: false.
    public var queuesQoS0WhileOffline = false
    /// What happens to a message when the queue is full. Default: it is rejected.
    public var queueOverflow = QueueOverflow.reject
    /// The number of messages that wait for a connection or for room among those in flight. Default: 10,000.
    public var maximumQueuedMessages = 10_000
    /// Bytes of the topics, payloads and properties of messages that wait. Default: 16,777,216 bytes (16 MiB).
    public var maximumQueuedBytes = 16 << 20
    /// The number of messages that leave within a second; more wait in the queue, QoS 0 too. Default: nil, no limit.
    ///
    /// For servers that end the connection of a client that publishes faster: AWS IoT Core does above 100. A tenth of them
    /// may leave at once, and the others are spread. `disconnect()` waits for those of QoS 0 in the queue for up to two
    /// seconds; what is left then is lost if the process ends.
    public var maximumPublishesPerSecond: Int?
    /// Bytes of the topics and payloads that leave within a second; a message that has more than a quarter of them may
    /// exceed it. Default: nil, no limit.
    public var maximumPublishedBytesPerSecond: Int?
    /// Bytes that wait for the socket; beyond it a publisher of QoS 0 suspends until there is room. Default: 1,048,576
    /// bytes (1 MiB).
    ///
    /// Messages of QoS 1 and 2 may exceed it: as many as ``maximumInFlight`` allows wait there, however large they are.
    public var maximumOutboxBytes = 1 << 20
    /// Bytes of memory of received messages that wait in all subscriptions of the connection together. Default:
    /// 67,108,864 bytes (64 MiB).
    ///
    /// When it is reached, nothing more is read from the connection until half of it is free again; pings are still sent.
    /// One read of the socket, up to 128 KiB, may exceed it. See ``BufferPolicy`` for the bounds of one subscription.
    public var maximumUnreadBytes = 64 << 20

    /// Makes a configuration with the default of each option.
    public init(clientID: String = "") {
        self.clientID = clientID
    }

    /// Every option and its value, with secrets hidden.
    public var description: String { OneLine.properties(of: self) }

    /// What happens to a message of QoS 1 or 2 when the queue is full.
    public struct QueueOverflow: Sendable, Equatable {
        enum Kind { case reject, dropOldest, newestPerTopic, wait }
        let kind: Kind

        /// It is refused with ``MQTTError/Code/queueFull``.
        public static let reject = QueueOverflow(kind: .reject)
        /// The oldest message that was never sent is dropped: its publisher gets ``MQTTError/Code/queueFull``; if it was
        /// enqueued, ``MQTTEvent/undelivered(_:)`` reports it.
        public static let dropOldest = QueueOverflow(kind: .dropOldest)
        /// The oldest message to the same topic that was never sent is dropped, as ``dropOldest`` does; if there is no
        /// such message, the oldest of all. For telemetry, of which the newest value of each topic counts. Finding it
        /// takes time in proportion to the queue.
        public static let newestPerTopic = QueueOverflow(kind: .newestPerTopic)
        /// The publisher waits for room, until its task is cancelled, or the call ends because nothing is read
        /// (``MQTTEvent/readingPaused(for:)``).
        public static let wait = QueueOverflow(kind: .wait)
    }

    /// Holds an option whose value has no `==`, a closure for instance. Two are equal if both are nil, or copies of one
    /// assignment.
    @_documentation(visibility: internal)
    @propertyWrapper
    public struct ComparedByIdentity<Value: Sendable>: Sendable, Equatable, CustomStringConvertible {
        private var box: Shared<Value>?

        /// Wraps the value of an option.
        public init(wrappedValue: Value?) { box = wrappedValue.map { Shared($0) } }

        /// The value of the option.
        public var wrappedValue: Value? {
            get { box?.value }
            set { box = newValue.map { Shared($0) } }
        }

        public var description: String { wrappedValue.map { String(describing: $0) } ?? "nil" }

        public static func == (one: Self, other: Self) -> Bool { one.box === other.box }
    }
}
