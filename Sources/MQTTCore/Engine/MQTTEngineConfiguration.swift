/// What an engine needs before a connection opens: its role, what a client sends in CONNECT, and every bound.
///
/// It may be changed between connections (fresh credentials, another version after a refusal); a change takes effect when
/// the next connection opens.
public struct MQTTEngineConfiguration: Sendable {
    /// Which end of the connection this engine plays. Default: client.
    public var role: MQTTRole

    /// The protocol version that a client requests; a server adopts the version of each CONNECT. Default: 5.0.
    public var version: MQTTVersion

    // MARK: What a client sends in CONNECT

    /// Clean Start of 5.0, Clean Session of 3.1 and 3.1.1: both ends discard the session. Default: true.
    public var cleanStart = true

    /// Accept Session Present = 1 although this engine holds no session. Default: false.
    ///
    /// 5.0 requires that such a connection is closed [MQTT 5.0 3.2.2-4]. Set this for a client whose store was lost, or
    /// that has no store and only wants what the server retained for it.
    public var acceptsUnknownSession = false

    /// Publish again, under new packet identifiers, what the server had not finally acknowledged when it lost the
    /// session; otherwise such messages complete as ``MQTTPublishCompletion/Outcome/sessionLost``. Default: true.
    public var republishesAfterSessionLoss = true

    /// The keep alive interval in seconds; 0 turns it off. Default: 60.
    public var keepAlive: UInt16 = 60

    /// How long the session outlives the connection, in seconds; `UInt32.max` means for ever. 5.0 only: 3.1 and 3.1.1
    /// keep the session if and only if `cleanStart` is false. Default: 0.
    public var sessionExpiry: UInt32 = 0

    /// The client identifier. Empty lets the server assign one, which is adopted for later connections
    /// [MQTT 5.0 3.2.2-16]; with 3.1.1 that requires `cleanStart` [MQTT 3.1.1 3.1.3-7]. Default: empty.
    public var clientID: String

    /// The user name. Default: none.
    public var userName: String?

    /// The password. 3.1 and 3.1.1 allow it only with a user name [MQTT 3.1.1 3.1.2-22]. Default: none.
    public var password: [UInt8]?

    /// The enhanced authentication method; without one no AUTH packet is sent or accepted [MQTT 5.0 4.12.0-7].
    /// Default: none.
    public var authenticationMethod: String?

    /// The data of the first step of enhanced authentication. Default: none.
    public var authenticationData: [UInt8]?

    /// The message that the server publishes when the connection is lost. Default: none.
    public var will: MQTTWill?

    /// The messages that may leave in a second; more wait in the queue. Default: nil, no limit.
    public var maximumPublishesPerSecond: Int?

    /// Bytes of the topics and payloads that may leave in a second. Default: nil, no limit.
    public var maximumPublishedBytesPerSecond: Int?

    /// Further properties of CONNECT (user properties, Request Response Information, Request Problem Information).
    /// Default: none.
    ///
    /// They must not include a property that has a field of its own in this configuration; see ``checkConnect()``.
    public var connectProperties = MQTTProperties()

    // MARK: Bounds on what the peer sends

    /// The number of QoS 1 and QoS 2 messages that the peer may send before one is acknowledged (Receive Maximum).
    /// Default: 1,024.
    public var receiveMaximum: UInt16 = 1024

    /// Close the connection to a server that exceeds ``receiveMaximum`` [MQTT-3.3.4-9], instead of accepting up to 65,535
    /// messages without an acknowledgement and reporting ``MQTTEngineEvent/Kind/receiveMaximumExceeded(_:)``. Clients only,
    /// 5.0 only: an engine in the server's role always closes. Default: false.
    public var enforcesReceiveMaximum = false

    /// The number of topic aliases that the peer may use; 5.0 only. Default: 64.
    public var topicAliasMaximum: UInt16 = 64

    /// The largest packet that is accepted, in bytes including its fixed header. Default: 16,777,216.
    public var maximumPacketSize: UInt32 = 16 << 20

    /// The largest packet other than PUBLISH that is accepted, in bytes including its fixed header, and the maximum size
    /// of the properties in a PUBLISH: such bytes are decoded at once, in time proportional to their number.
    /// Default: 262,144.
    public var maximumControlPacketSize: UInt32 = 256 << 10

    /// Acknowledge and drop a message whose topic is invalid (a wildcard, U+0000, not UTF-8, empty without an alias), or
    /// whose properties are, instead of closing the connection [MQTT-3.3.2-2]; in 5.0 the acknowledgement has the reason code
    /// 0x90 or 0x80. Clients only. Default: false.
    public var dropsInvalidMessages = false

    // MARK: Bounds on what this engine sends

    /// The most filters in a SUBSCRIBE or UNSUBSCRIBE. Clients only. Default: 8, which all servers accept.
    public var maximumFiltersPerRequest = 8
    /// Subscribe what is wanted again on each connection, also where the server has kept the session. Default: false.
    package var resubscribesWithSessionPresent = false
    /// The caller reacts to CONNACK, and to each answer that refuses a filter then, by ``MQTTEngine/reconcile(at:into:)``: until
    /// it was called, PUBLISH is held back. Otherwise CONNACK does it. Default: false.
    package var subscribesAgainAfterRefusals = false

    /// Queue QoS 0 messages too while there is no connection. Default: false.
    public var queuesQoS0WhileDisconnected = false

    /// The number of unacknowledged QoS 1 and QoS 2 messages on one connection; the peer's Receive Maximum may lower it, and
    /// from 65,408 on some packet identifiers stay free for subscriptions. Default: 1,024.
    public var maximumInFlight: UInt16 = 1024

    /// The maximum number of topic aliases that this engine uses; the peer's maximum may lower it; 5.0 only. Default: 32.
    public var outboundTopicAliasMaximum: UInt16 = 32

    /// The number of messages that may wait for room in the window or for a connection. Default: 10,000.
    public var maximumQueuedMessages = 10_000

    /// The bytes (topics, payloads, properties) of messages that may wait for room in the window or for a connection.
    /// Default: 16,777,216.
    public var maximumQueuedBytes = 16 << 20

    // MARK: Timeouts, in nanoseconds

    /// Timeout for CONNACK (client), steps of an authentication included, and for CONNECT (server); also the maximum
    /// duration of a re-authentication. `Int64.max` means none. Default: 30 seconds.
    public var connectTimeout: Int64 = 30_000_000_000

    /// Timeout for any byte after a client's PINGREQ. Default: 20 seconds.
    public var pingTimeout: Int64 = 20_000_000_000

    /// Timeout for the answer to SUBSCRIBE, UNSUBSCRIBE and a step of an authentication; then the request is reported as
    /// late, and its packet identifier stays in use. Default: 30 seconds.
    public var requestTimeout: Int64 = 30_000_000_000

    /// The longest time without any PUBACK, PUBREC or PUBCOMP while a client awaits some; then the connection ends with
    /// ``MQTTConnectionFailure/acknowledgementTimeout(topic:_:after:)``. It is counted from the last of them, or from the
    /// time when the peer's system acknowledged bytes of what is awaited; see ``OutputProgress``. It doubles with each
    /// connection in a row that ended for it, until an acknowledgement arrives. `Int64.max` means none.
    /// Default: 30 seconds.
    public var acknowledgementTimeout: Int64 = 30_000_000_000

    // MARK: What a server sends in CONNACK

    /// The highest QoS that a server accepts. Default: 2.
    public var maximumQoS = QoS.exactlyOnce

    /// Whether a server accepts retained messages. Default: true.
    public var retainAvailable = true

    // MARK: Persistence

    /// Emit ``MQTTStoreRecord``s, and hold the packets of a stored exchange until their records are stored.
    /// Default: false.
    public var persists = false

    /// Nanoseconds to add to the time of a call to obtain nanoseconds since 1970: records carry the time by the wall
    /// clock, so that messages age across a restart. Default: 0.
    public var wallClockOffset: Int64 = 0

    /// A configuration for `role` with bounds that suit an ordinary client.
    public init(role: MQTTRole = .client, version: MQTTVersion = .v5_0, clientID: String = "") {
        self.role = role
        self.version = version
        self.clientID = clientID
    }
}

/// The configuration of an engine in memory of its own, which the engines of clients with equal options share.
///
/// Not `Shared`: the fields of a class that is not generic are at constant offsets, and the engine reads some of them
/// for each message.
package final class MQTTEngineOptions: Sendable {
    package let value: MQTTEngineConfiguration

    package init(_ value: MQTTEngineConfiguration) { self.value = value }
}

extension MQTTEngineConfiguration {
    /// A copy with another client identifier and Clean Start.
    func with(clientID: String, cleanStart: Bool) -> MQTTEngineConfiguration {
        var copy = self
        copy.clientID = clientID
        copy.cleanStart = cleanStart
        return copy
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
            // [MQTT-3.1.3-7]
            if clientID.isEmpty && (!cleanStart || version == .v3_1) {
                throw .clientIdentifierIsEmpty(in: version)
            }
            // [MQTT-3.1.2-22]
            if password != nil && userName == nil { throw .passwordWithoutUserName(in: version) }
        } else if authenticationData != nil && authenticationMethod == nil {
            // [MQTT 5.0 3.1.2.11.10]
            throw .authenticationDataWithoutMethod
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
            throw .connectPropertyHasOption(property.identifier, option)
        }
    }
}
