/// What an engine is told before a connection opens: its role, what it says in CONNECT, and every bound it keeps.
///
/// It may be replaced between connections (fresh credentials, another version after a refusal); a change takes effect
/// when the next connection opens.
public struct MQTTEngineConfiguration: Sendable {
    public typealias Role = MQTTRole

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
    public var keepAlive: UInt16 {
        get { rest.values.keepAlive }
        set { change { $0.keepAlive = newValue } }
    }

    /// How long the session outlives the connection, in seconds; `UInt32.max` means for ever. 5.0 only: 3.1 and 3.1.1
    /// keep the session if and only if `cleanStart` is false.
    public var sessionExpiry: UInt32 {
        get { rest.values.sessionExpiry }
        set { change { $0.sessionExpiry = newValue } }
    }

    /// The message that the server publishes when the connection dies.
    public var will: MQTTWill? {
        get { rest.values.will }
        set { change { $0.will = newValue } }
    }

    /// The user name. Set it afresh before each connection if it expires.
    public var userName: String? {
        get { secrets?.values.userName }
        set { if newValue != nil || secrets != nil { changeSecrets { $0.userName = newValue } } }
    }

    /// The password. 3.1 and 3.1.1 allow it only beside a user name [MQTT 3.1.1 3.1.2-22].
    public var password: [UInt8]? {
        get { secrets?.values.password }
        set { if newValue != nil || secrets != nil { changeSecrets { $0.password = newValue } } }
    }

    /// The enhanced authentication method; without one no AUTH packet is sent or accepted [MQTT 5.0 4.12.0-7].
    public var authenticationMethod: String? {
        get { rest.values.authenticationMethod }
        set { change { $0.authenticationMethod = newValue } }
    }

    /// The data of the first step of enhanced authentication.
    public var authenticationData: [UInt8]? {
        get { secrets?.values.authenticationData }
        set { if newValue != nil || secrets != nil { changeSecrets { $0.authenticationData = newValue } } }
    }

    /// Further properties of CONNECT (user properties, Request Response Information, Request Problem Information).
    ///
    /// A property that has a field of its own in this configuration must not be among them: see
    /// ``checkConnect()``.
    public var connectProperties: MQTTProperties {
        get { rest.values.connectProperties }
        set { change { $0.connectProperties = newValue } }
    }

    /// Accept Session Present = 1 although this engine holds no session.
    ///
    /// 5.0 demands that such a connection is closed [MQTT 5.0 3.2.2-4]. A client whose store was lost, or that lives
    /// without one and only wants what the server kept for it, sets this.
    public var acceptsUnknownSession: Bool {
        get { rest.values.acceptsUnknownSession }
        set { change { $0.acceptsUnknownSession = newValue } }
    }

    /// Publish again, under new packet identifiers, what the server had not finally acknowledged when it lost the
    /// session; otherwise such messages complete as ``MQTTPublishCompletion/Outcome/sessionLost``.
    public var republishesAfterSessionLoss: Bool {
        get { rest.values.republishesAfterSessionLoss }
        set { change { $0.republishesAfterSessionLoss = newValue } }
    }

    // MARK: Bounds on what the peer sends

    /// The number of QoS 1 and QoS 2 messages that the peer may send before we acknowledge one (Receive Maximum).
    public var receiveMaximum: UInt16 {
        get { rest.values.receiveMaximum }
        set { change { $0.receiveMaximum = newValue } }
    }

    /// The largest packet that is accepted, in bytes with its fixed header.
    public var maximumPacketSize: UInt32 {
        get { rest.values.maximumPacketSize }
        set { change { $0.maximumPacketSize = newValue } }
    }

    /// The largest packet other than PUBLISH that is accepted, in bytes with its fixed header, and the most bytes of
    /// properties in a PUBLISH: what such packets hold is decoded at once, in time that grows with their size.
    /// Default: 262,144.
    public var maximumControlPacketSize: UInt32 {
        get { rest.values.maximumControlPacketSize }
        set { change { $0.maximumControlPacketSize = newValue } }
    }

    /// The number of topic aliases that the peer may use; 5.0 only.
    public var topicAliasMaximum: UInt16 {
        get { rest.values.topicAliasMaximum }
        set { change { $0.topicAliasMaximum = newValue } }
    }

    /// Acknowledge and drop a message whose topic is invalid (a wildcard, U+0000, not UTF-8) in place of closing the
    /// connection [MQTT-3.3.2-2]; 5.0 says 0x90 in the acknowledgement. Clients only; default: off.
    public var dropsInvalidMessages: Bool {
        get { rest.values.dropsInvalidMessages }
        set { change { $0.dropsInvalidMessages = newValue } }
    }

    // MARK: Bounds on what we send

    /// The number of unacknowledged QoS 1 and QoS 2 messages on one connection; the peer's Receive Maximum may lower it.
    public var maximumInFlight: UInt16

    /// The number of topic aliases that we use at most; the peer's maximum may lower it; 5.0 only.
    public var outboundTopicAliasMaximum: UInt16 {
        get { rest.values.outboundTopicAliasMaximum }
        set { change { $0.outboundTopicAliasMaximum = newValue } }
    }

    /// The number of messages that wait for room in the window or for a connection.
    public var maximumQueuedMessages: Int {
        get { rest.values.maximumQueuedMessages }
        set { change { $0.maximumQueuedMessages = newValue } }
    }

    /// The bytes (topics, payloads) of messages that wait for room in the window or for a connection.
    public var maximumQueuedBytes: Int {
        get { rest.values.maximumQueuedBytes }
        set { change { $0.maximumQueuedBytes = newValue } }
    }

    /// Also queue QoS 0 messages while there is no connection.
    public var queuesQoS0WhileDisconnected: Bool {
        get { rest.values.queuesQoS0WhileDisconnected }
        set { change { $0.queuesQoS0WhileDisconnected = newValue } }
    }

    /// Hold PUBLISH back after CONNACK until ``MQTTEngine/subscriptionsSent(at:into:)`` was called and every SUBSCRIBE
    /// written before that is answered, so that a client receives what it publishes itself. Clients only; default: off.
    ///
    /// A connection whose SUBACK does not arrive within ``requestTimeout`` fails.
    public var subscribesFirst: Bool {
        get { rest.values.subscribesFirst }
        set { change { $0.subscribesFirst = newValue } }
    }

    // MARK: Times, in nanoseconds

    /// How long a client waits for CONNACK, steps of an authentication included, and a server for CONNECT; also the
    /// longest that a renewed authentication may take. `Int64.max` waits for ever.
    public var connectTimeout: Int64 {
        get { rest.values.connectTimeout }
        set { change { $0.connectTimeout = newValue } }
    }

    /// How long a client waits for any byte after PINGREQ.
    public var pingTimeout: Int64 {
        get { rest.values.pingTimeout }
        set { change { $0.pingTimeout = newValue } }
    }

    /// How long SUBSCRIBE, UNSUBSCRIBE and an authentication step wait for their answer before they are reported as
    /// late; the packet identifier stays taken.
    public var requestTimeout: Int64 {
        get { rest.values.requestTimeout }
        set { change { $0.requestTimeout = newValue } }
    }

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
    public var wallClockOffset: Int64 {
        get { rest.values.wallClockOffset }
        set { change { $0.wallClockOffset = newValue } }
    }

    /// What is seldom looked at and mostly the same for many engines.
    private var rest = Rest.standard
    /// Nil as long as there is none.
    private var secrets: Secrets?

    /// A configuration for `role` with bounds that suit an ordinary client.
    public init(role: Role = .client, version: MQTTVersion = .v5_0, clientID: String = "") {
        self.role = role
        self.version = version
        self.clientID = clientID
        cleanStart = true
        maximumInFlight = 1024
        maximumQoS = .exactlyOnce
        retainAvailable = true
        persists = false
    }

    private mutating func change(_ body: (inout Rest.Values) -> Void) {
        var values = rest.values
        body(&values)
        rest = Rest(values)
    }

    private mutating func changeSecrets(_ body: (inout Secrets.Values) -> Void) {
        var values = secrets?.values ?? Secrets.Values()
        body(&values)
        secrets = Secrets(values)
    }
}

extension MQTTEngineConfiguration {
    /// Throws if CONNECT cannot be written with this configuration. Checked before each CONNECT is written, and by
    /// clients before they open a connection.
    ///
    /// - Throws: ``MQTTUsageError/Code/propertyNotAllowed`` if ``connectProperties`` holds a property that a field of this
    ///   configuration sets; ``MQTTUsageError/Code/invalidConfiguration`` for fields that contradict each other.
    public func checkConnect() throws(MQTTUsageError) {
        try checkConnectProperties()
        if version < .v5_0 {
            if clientID.isEmpty && (!cleanStart || version == .v3_1) {
                throw MQTTUsageError(
                    .invalidConfiguration,
                    version == .v3_1
                        ? "MQTT 3.1 requires a client identifier of 1 to 23 characters. Set clientID."
                        : "An empty client identifier requires cleanStart in MQTT 3.1.1 [MQTT-3.1.3-7]. Set either.")
            }
            if password != nil && userName == nil {
                throw MQTTUsageError(
                    .invalidConfiguration,
                    "MQTT \(version) allows a password only with a user name [MQTT-3.1.2-22]. Set userName.")
            }
        } else if authenticationData != nil && authenticationMethod == nil {
            throw MQTTUsageError(
                .invalidConfiguration,
                "Authentication data needs a method [MQTT 5.0 3.1.2.11.10]. Set authenticationMethod.")
        }
    }

    private func checkConnectProperties() throws(MQTTUsageError) {
        for property in connectProperties.list {
            let option: String? =
                switch property.identifier {
                case .sessionExpiryInterval: "sessionExpiry"
                case .receiveMaximum: "receiveMaximum"
                case .maximumPacketSize: "maximumPacketSize"
                case .topicAliasMaximum: "topicAliasMaximum"
                case .authenticationMethod, .authenticationData: "authentication"
                default: nil
                }
            guard let option else { continue }
            throw MQTTUsageError(
                .propertyNotAllowed,
                "\(property.identifier) is among the connect properties, but has an option of its own: use the option "
                    + "for it (\(option)) and leave the property out")
        }
    }
}

extension MQTTEngineConfiguration {
    /// What copies of a configuration share until one of them is changed: a client's engine looks at it when it connects
    /// and seldom after that, and thousands of engines are mostly told the same.
    final class Rest: Sendable {
        struct Values: Sendable {
            var keepAlive: UInt16 = 60
            var sessionExpiry: UInt32 = 0
            var will: MQTTWill?
            var authenticationMethod: String?
            var connectProperties: MQTTProperties = MQTTProperties()
            var acceptsUnknownSession: Bool = false
            var republishesAfterSessionLoss: Bool = true
            var receiveMaximum: UInt16 = 1024
            var maximumPacketSize: UInt32 = 16 << 20
            var maximumControlPacketSize: UInt32 = 256 << 10
            var topicAliasMaximum: UInt16 = 64
            var outboundTopicAliasMaximum: UInt16 = 32
            var maximumQueuedMessages: Int = 10_000
            var maximumQueuedBytes: Int = 16 << 20
            var queuesQoS0WhileDisconnected: Bool = false
            var subscribesFirst: Bool = false
            var dropsInvalidMessages: Bool = false
            var connectTimeout: Int64 = 30_000_000_000
            var pingTimeout: Int64 = 20_000_000_000
            var requestTimeout: Int64 = 30_000_000_000
            var wallClockOffset: Int64 = 0
        }

        let values: Values

        static let standard = Rest(Values())

        init(_ values: Values) {
            self.values = values
        }
    }

    /// The credentials that a client presents. Never shown.
    final class Secrets: Sendable, CustomReflectable {
        struct Values: Sendable {
            var userName: String?
            var password: [UInt8]?
            var authenticationData: [UInt8]?
        }

        let values: Values

        init(_ values: Values) {
            self.values = values
        }

        var customMirror: Mirror { Mirror(self, children: []) }
    }
}
