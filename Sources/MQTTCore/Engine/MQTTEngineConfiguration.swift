/// What an engine is told before a connection opens: its role, what it says in CONNECT, and every bound it keeps.
///
/// It may be replaced between connections (fresh credentials, another version after a refusal); a change takes effect
/// when the next connection opens.
public struct MQTTEngineConfiguration: Sendable {
    /// The two ends of a connection.
    public enum Role: Sendable {
        case client
        case server
    }

    /// Which end of the connection this engine plays.
    public var role: Role

    /// The protocol version that a client asks for; a server takes over the version of each CONNECT.
    public var version: MQTTVersion

    // MARK: What a client says in CONNECT

    /// The client identifier. Empty lets the server assign one, which is adopted for later connections
    /// [MQTT 5.0 3.2.2-16]; with 3.1.1 that needs `cleanStart` [MQTT 3.1.1 3.1.3-7].
    public var clientID: String

    /// Clean Start of 5.0, Clean Session of 3.1 and 3.1.1: forget the session of both ends.
    public var cleanStart: Bool

    /// The keep alive interval in seconds; 0 turns it off.
    public var keepAlive: UInt16

    /// How long the session outlives the connection, in seconds; `UInt32.max` means for ever. 5.0 only: 3.1 and 3.1.1
    /// keep the session if and only if `cleanStart` is false.
    public var sessionExpiry: UInt32

    /// The message that the server publishes when the connection dies.
    public var will: MQTTWill?

    /// The user name. Set it afresh before each connection if it expires.
    public var username: String?

    /// The password. 3.1 and 3.1.1 allow it only beside a user name [MQTT 3.1.1 3.1.2-22].
    public var password: [UInt8]?

    /// The enhanced authentication method; without one no AUTH packet is sent or accepted [MQTT 5.0 4.12.0-7].
    public var authenticationMethod: String?

    /// The data of the first step of enhanced authentication.
    public var authenticationData: [UInt8]?

    /// Further properties of CONNECT (user properties, Request Response Information, Request Problem Information).
    ///
    /// What has a field of its own here is taken from there.
    public var connectProperties: MQTTProperties

    /// Accept Session Present = 1 although this engine holds no session.
    ///
    /// 5.0 demands that such a connection is closed [MQTT 5.0 3.2.2-4]. A client whose store was lost, or that lives
    /// without one and only wants what the server kept for it, sets this.
    public var acceptsUnknownSession: Bool

    /// Publish again, under new packet identifiers, what the server had not finally acknowledged when it lost the
    /// session; otherwise such messages complete as ``MQTTPublishCompletion/Outcome/sessionLost``.
    public var republishesAfterSessionLoss: Bool

    // MARK: Bounds on what the peer sends

    /// The number of QoS 1 and QoS 2 messages that the peer may send before we acknowledge one (Receive Maximum).
    public var receiveMaximum: UInt16

    /// The largest packet that is accepted, in bytes with its fixed header.
    public var maximumPacketSize: UInt32

    /// The number of topic aliases that the peer may use; 5.0 only.
    public var topicAliasMaximum: UInt16

    // MARK: Bounds on what we send

    /// The number of unacknowledged QoS 1 and QoS 2 messages on one connection; the peer's Receive Maximum may lower it.
    public var maximumInFlight: UInt16

    /// The number of topic aliases that we use at most; the peer's maximum may lower it; 5.0 only.
    public var outboundTopicAliasMaximum: UInt16

    /// The number of messages that wait for room in the window or for a connection.
    public var queueCountLimit: Int

    /// The bytes (topics, payloads) of messages that wait for room in the window or for a connection.
    public var queueByteLimit: Int

    /// Also queue QoS 0 messages while there is no connection.
    public var queuesQoS0WhileDisconnected: Bool

    // MARK: Times, in nanoseconds

    /// How long a client waits for CONNACK, and a server for CONNECT; `Int64.max` waits for ever.
    public var connectTimeout: Int64

    /// How long a client waits for any byte after PINGREQ.
    public var pingTimeout: Int64

    /// How long SUBSCRIBE, UNSUBSCRIBE and an authentication step wait for their answer before they are reported as
    /// late; the packet identifier stays taken.
    public var requestTimeout: Int64

    // MARK: What a server says in CONNACK

    /// The highest QoS that a server accepts.
    public var maximumQoS: QoS

    /// Whether a server accepts retained messages.
    public var retainAvailable: Bool

    // MARK: Persistence

    /// Emit ``MQTTStoreRecord``s, and hold the packets of a stored exchange until their records are stored.
    public var persists: Bool

    /// What the time of a call has to be increased by to be nanoseconds since 1970, so that messages age over a restart:
    /// records say by the wall clock when a message came in.
    public var wallClockOffset: Int64

    /// A configuration for `role` with bounds that suit an ordinary client.
    public init(role: Role = .client, version: MQTTVersion = .v5_0, clientID: String = "") {
        self.role = role
        self.version = version
        self.clientID = clientID
        cleanStart = true
        keepAlive = 60
        sessionExpiry = 0
        will = nil
        username = nil
        password = nil
        authenticationMethod = nil
        authenticationData = nil
        connectProperties = MQTTProperties()
        acceptsUnknownSession = false
        republishesAfterSessionLoss = true
        receiveMaximum = 1024
        maximumPacketSize = 16 << 20
        topicAliasMaximum = 64
        maximumInFlight = 1024
        outboundTopicAliasMaximum = 32
        queueCountLimit = 10_000
        queueByteLimit = 16 << 20
        queuesQoS0WhileDisconnected = false
        connectTimeout = 30_000_000_000
        pingTimeout = 20_000_000_000
        requestTimeout = 30_000_000_000
        maximumQoS = .exactlyOnce
        retainAvailable = true
        persists = false
        wallClockOffset = 0
    }
}
