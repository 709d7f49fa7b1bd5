public import Transport

/// What a ``LoopbackBroker`` listens on, whom it lets in, and the bounds it keeps.
public struct LoopbackBrokerOptions: Sendable {
    /// Which port of the loopback interface a protocol is served on.
    public struct Port: Sendable, Hashable {
        enum Choice: Sendable, Hashable {
            case none
            case free
            case preferred(Int)
            case exactly(Int)
        }

        let choice: Choice

        /// The protocol is not served.
        public static let none = Port(choice: .none)
        /// Any free port, chosen by the system.
        public static let free = Port(choice: .free)
        /// This port if it is free, otherwise any.
        public static func preferred(_ port: Int) -> Port { Port(choice: .preferred(port)) }
        /// This port and no other; starting fails if it is taken.
        public static func exactly(_ port: Int) -> Port { Port(choice: .exactly(port)) }
    }

    /// Who may connect. The password is never shown.
    public struct User: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// The user name.
        public var name: String
        /// The password; descriptions hide it.
        public var password: String

        /// Makes a user.
        public init(name: String, password: String) {
            self.name = name
            self.password = password
        }

        public var description: String { "User(\(name), •••)" }
        public var debugDescription: String { description }
        public var customMirror: Mirror { Mirror(self, children: ["name": name]) }
    }

    /// What becomes of a message that a STOMP client rejects (STOMP 1.2 "NACK"). RabbitMQ's header `requeue`, which
    /// `reject(requeue:)` sends, takes precedence: with `true` the message is delivered again, with `false` it is not.
    public enum RefusedMessages: Sendable, Hashable {
        /// It is dropped.
        case discard
        /// It is delivered once more, with `redelivered:true`, and dropped when it is rejected again.
        case redeliverOnce
        /// It is moved to this queue, such as `/queue/dead`, and dropped if it is rejected there.
        case deadLetterQueue(String)
    }

    /// The port for MQTT; 1883 is the usual one.
    public var mqttPort = Port.free
    /// The port for STOMP; 61613 is the usual one.
    public var stompPort = Port.free
    /// The port for WebSockets, on which both protocols are spoken: a client says which by the sub-protocol that it
    /// offers (`mqtt`, `mqttv3.1`, `v12.stomp`, `v11.stomp` or `v10.stomp`); the path does not matter.
    public var wsPort = Port.free

    /// The certificate to serve TLS with; nil serves none.
    public var tls: TLSServerOptions?
    /// The port for MQTT over TLS, with ``tls`` only; 8883 is the usual one.
    public var mqttsPort = Port.free
    /// The port for STOMP over TLS, with ``tls`` only.
    public var stompsPort = Port.free
    /// The port for WebSockets over TLS, with ``tls`` only.
    public var wssPort = Port.free

    /// The path of a Unix-domain socket to be made for MQTT; nil for none.
    ///
    /// A socket that a killed process left there is replaced; anything else in its place makes starting fail.
    public var mqttSocket: String?
    /// The same for STOMP.
    public var stompSocket: String?

    /// Origins of web pages that may connect over WebSocket, such as `https://example.org`, besides those that this
    /// machine serves itself (`http://127.0.0.1`, `http://localhost` and `http://[::1]` at any port); `null` lets pages
    /// in that were opened from files, and with them sandboxed pages from anywhere. Clients that are no browsers send
    /// no origin and are let in.
    public var allowedOrigins: [String] = []

    /// The users that are let in; nil lets everybody in, with and without credentials.
    public var users: [User]?

    /// Whether MQTT sessions outlive their connections when the client asks for it. Off, every session starts anew.
    public var keepsSessions = true

    /// What becomes of messages that a STOMP client rejects. Default: `discard`.
    public var refusedMessages = RefusedMessages.discard

    /// The heart-beats that the STOMP side offers: what it can send and what it wants to receive, in milliseconds; 0
    /// for no heart-beats. The longer of both sides' times counts. Default: 10,000 each.
    public var heartBeat = (outgoing: 10_000, incoming: 10_000)

    /// The bounds on what is kept in memory.
    public var limits = LoopbackBrokerLimits()

    /// What goes wrong on purpose from the start; ``LoopbackBroker/changeFaults(_:)`` changes it later.
    public var faults = LoopbackFaults()

    /// Whether what clients write is compared with the rules of their protocol; ``LoopbackBroker/violations`` has the result.
    /// It takes time and memory for each message. Default: false, except in a ``Simulation``, which fails at the first rule that
    /// is broken.
    public var judgesClients = false

    /// What is done with broken rules besides.
    package var judging = Judging()

    /// Free ports, no credentials.
    public init() {}
}

/// The bounds that a ``LoopbackBroker`` keeps. A message that has expired is not delivered, but counts against them until its turn
/// comes, and a retained one until another message replaces it.
public struct LoopbackBrokerLimits: Sendable {
    /// The largest packet or frame that is accepted, in bytes.
    public var maximumPacketSize = 16 << 20

    /// The connections that are open at the same time, over all ports; a further one is closed at once. Default: 10,000.
    public var maximumConnections = 10_000

    /// The messages that wait for one MQTT session, connected or not. Beyond it the oldest QoS 0 message is dropped,
    /// or the new message if no such message is queued.
    public var maximumSessionMessages = 10_000
    /// The same in bytes of topics, payloads and properties. The session's filters may take as many bytes, and so may its
    /// will: a filter or a CONNECT beyond it is refused.
    public var maximumSessionBytes = 16 << 20

    /// The QoS 1 and 2 messages that one MQTT client may have unacknowledged, in either direction.
    public var maximumInFlight = 1_024

    /// Bytes that wait in memory for one connection's socket before messages start to wait in their queue (MQTT, STOMP
    /// queues, STOMP topics with an acknowledging mode) or are dropped (STOMP topics otherwise). Answers that a simulation
    /// holds back may take as many.
    public var maximumOutboxBytes = 1 << 20

    /// The messages that one STOMP queue, or one subscription to a topic that is durable or has an acknowledging mode, keeps
    /// while it has no consumer with room; beyond it the oldest is dropped.
    public var maximumQueueMessages = 10_000
    /// The same in bytes of topics or destinations, headers and bodies; also for each open transaction.
    public var maximumQueueBytes = 16 << 20

    /// The messages that one STOMP subscription with an acknowledging mode may hold unacknowledged;
    /// further ones wait.
    public var maximumPrefetch = 1_000

    /// The number of retained messages; beyond it no further topic is retained. A message that is not retained for a limit still
    /// removes the one before.
    public var maximumRetainedMessages = 10_000
    /// The same in bytes of topics, payloads and properties.
    public var maximumRetainedBytes = 64 << 20

    /// The number of MQTT sessions, and of STOMP queues, that exist at the same time. A subscription to a topic that is
    /// durable or has an acknowledging mode counts as a queue. Beyond the limit the session that has been without a connection
    /// for longest ends; clients are refused only if all sessions have connections.
    public var maximumSessions = 10_000

    /// The highest QoS of MQTT messages: 5.0 clients learn it from CONNACK, a CONNECT whose will is above it is refused, a
    /// PUBLISH above it ends the connection, and subscriptions are granted no more. Default: 2.
    public var maximumQoS: UInt8 = 2
    /// The keep alive that MQTT clients may have, in seconds. 5.0 clients that ask for another one are told the nearest
    /// (Server Keep Alive), and older ones are held to it; zero, which turns keep alive off, counts as too long unless the
    /// range contains it. Default: any.
    public var keepAlive: ClosedRange<UInt16> = 0...UInt16.max
    /// The longest client identifier of MQTT, in bytes; a longer one is refused. Default: 65,535.
    public var maximumClientIDBytes = 65_535

    /// Makes the default bounds.
    public init() {}

    /// What an MQTT client that asks for a keep alive of so many seconds gets.
    func keepAlive(asked: UInt16) -> UInt16 {
        if keepAlive.contains(asked) { return asked }
        return asked == 0 || asked > keepAlive.upperBound ? keepAlive.upperBound : keepAlive.lowerBound
    }
}

/// What a ``LoopbackBroker`` does wrong on purpose, so that programs can be tested against it.
public struct LoopbackFaults: Sendable {
    /// Connections are refused as "server unavailable", which is worth another try.
    public var refusesConnections = false
    /// CONNECT is read and never answered.
    public var ignoresConnect = false
    /// Refuses CONNECT of MQTT with a client identifier that the broker assigned, as AWS IoT Core does. Assigned identifiers
    /// then begin with `$GEN/`.
    public var refusesAssignedIdentifiers = false
    /// PUBACK, PUBREC, SUBACK, UNSUBACK and RECEIPT are not sent.
    public var withholdsAcknowledgements = false
    /// Subscriptions to exactly these filters and destinations are refused.
    public var refusedFilters: Set<String> = []
    /// Subscriptions are granted this QoS at most.
    public var highestGrantedQoS: UInt8 = 2
    /// A PUBLISH to exactly one of these topics, or a SEND to one of these destinations, ends the connection
    /// [MQTT 3.1.1 3.3.5-2]: with DISCONNECT "not authorized" for MQTT 5.0, with ERROR for STOMP, without a packet before.
    public var forbiddenTopics: Set<String> = []
    /// A SUBSCRIBE that contains exactly one of these filters or destinations ends the connection in the same way.
    public var forbiddenFilters: Set<String> = []
    /// A SUBSCRIBE of MQTT with more filters ends the connection. Default: nil, no limit.
    public var maximumFiltersPerSubscribe: Int?
    /// A SUBSCRIBE of MQTT that asks for QoS 2 is never answered, and has no effect.
    public var ignoresQoS2Subscriptions = false
    /// So many messages of QoS 1 and 2 are sent to a 5.0 client beyond its Receive Maximum, from its next CONNECT on, as
    /// Mosquitto 2.0.11 does after a session was resumed and under load. Default: 0.
    public var receiveMaximumExcess: UInt16 = 0
    /// A SUBSCRIBE after which an MQTT session would have more subscriptions ends the connection. Default: nil, no limit.
    public var maximumSubscriptions: Int?
    /// A topic or filter of MQTT with more bytes ends the connection. Default: nil, no limit.
    public var maximumTopicBytes: Int?
    /// A topic or filter of MQTT with more slashes ends the connection; the `$share/name/` of a shared subscription does
    /// not count. Default: nil, no limit.
    public var maximumTopicSlashes: Int?
    /// An MQTT client that publishes more messages in a second loses its connection. Default: nil, no limit.
    public var maximumPublishesPerSecond: Int?
    /// An MQTT client whose messages have more bytes of topics and payloads in a second loses its connection. Default:
    /// nil, no limit.
    public var maximumPublishedBytesPerSecond: Int?

    /// Nothing goes wrong.
    public init() {}

    /// Whether a topic or filter is longer or deeper than is allowed.
    func refuses(_ topic: String) -> Bool {
        if let maximum = maximumTopicBytes, topic.utf8.count > maximum { return true }
        guard let maximum = maximumTopicSlashes else { return false }
        return topic.utf8.lazy.filter { $0 == UInt8(ascii: "/") }.count > maximum
    }

    /// What strict brokers of cloud services do: they end connections instead of answering.
    ///
    /// A SUBSCRIBE that asks for QoS 2 has no answer, and one with more than 8 filters ends the connection.
    /// - Parameters:
    ///   - forbiddenTopics: topics whose PUBLISH ends the connection. Default: none.
    ///   - forbiddenFilters: filters whose SUBSCRIBE ends the connection. Default: none.
    public static func strict(
        forbiddenTopics: Set<String> = [], forbiddenFilters: Set<String> = []
    ) -> LoopbackFaults {
        var faults = LoopbackFaults()
        faults.forbiddenTopics = forbiddenTopics
        faults.forbiddenFilters = forbiddenFilters
        faults.maximumFiltersPerSubscribe = 8
        faults.ignoresQoS2Subscriptions = true
        return faults
    }
}

/// Brokers that behave as services of clouds document it.
extension LoopbackBrokerOptions {
    /// AWS IoT Core as its documentation says (AWS General Reference, "AWS IoT Core endpoints and quotas"), without its
    /// certificates and policies: QoS 0 and 1, no answer to a SUBSCRIBE with QoS 2, 8 filters in a request, 50
    /// subscriptions, 7 slashes and 256 bytes in a topic, messages of 128 KiB, client identifiers of 128 bytes, 100
    /// messages in flight, a keep alive of 30 to 1,200 seconds, and 100 messages and 512 KiB a second. What exceeds a limit
    /// ends the connection. A client identifier that it has assigned, `$GEN/` and a number, it refuses in CONNECT.
    public static var awsIoT: LoopbackBrokerOptions {
        var options = service(keepAlive: 30...1_200, publishesPerSecond: 100, bytesPerSecond: 512 << 10)
        options.limits.maximumClientIDBytes = 128
        options.limits.maximumInFlight = 100
        // With a topic and the head of a packet.
        options.limits.maximumPacketSize = 128 << 10 + 512
        options.faults.maximumFiltersPerSubscribe = 8
        options.faults.ignoresQoS2Subscriptions = true
        options.faults.refusesAssignedIdentifiers = true
        return options
    }

    /// The MQTT broker of an Azure Event Grid namespace as its documentation says (Azure Event Grid, "Quotas and limits" and
    /// "MQTT features support"), without its certificates and permissions: QoS 0 and 1, messages of 512 KiB, 7 slashes and
    /// 256 bytes in a topic, 50 subscriptions, and 1,000 messages and 1 MiB a second. What exceeds a limit ends the
    /// connection.
    public static var azureEventGrid: LoopbackBrokerOptions {
        var options = service(keepAlive: 1...1_160, publishesPerSecond: 1_000, bytesPerSecond: 1 << 20)
        options.limits.maximumPacketSize = 512 << 10
        return options
    }

    /// The limits that both have: QoS 0 and 1, 50 subscriptions, 7 slashes and 256 bytes in a topic, and a rate.
    private static func service(
        keepAlive: ClosedRange<UInt16>, publishesPerSecond: Int, bytesPerSecond: Int
    ) -> LoopbackBrokerOptions {
        var options = LoopbackBrokerOptions()
        options.limits.maximumQoS = 1
        options.limits.keepAlive = keepAlive
        options.faults.maximumSubscriptions = 50
        options.faults.maximumTopicBytes = 256
        options.faults.maximumTopicSlashes = 7
        options.faults.maximumPublishesPerSecond = publishesPerSecond
        options.faults.maximumPublishedBytesPerSecond = bytesPerSecond
        return options
    }
}

extension LoopbackBrokerOptions {
    /// The ports to listen on, and what is spoken there.
    func services(_ tls: TLSContexts?) -> [(WritableKeyPath<LoopbackBroker.Ports, Int?>, Port, Service)] {
        let plain: [(WritableKeyPath<LoopbackBroker.Ports, Int?>, Port, Service)] = [
            (\.mqtt, mqttPort, Service(.mqtt)), (\.stomp, stompPort, Service(.stomp)),
            (\.ws, wsPort, Service(webSocketFor: allowedOrigins)),
        ]
        guard let tls else { return plain }
        return plain + [
            (\.mqtts, mqttsPort, Service(.mqtt, tls: tls)), (\.stomps, stompsPort, Service(.stomp, tls: tls)),
            (\.wss, wssPort, Service(webSocketFor: allowedOrigins, tls: tls)),
        ]
    }

    /// Finds a queue for rejected messages that no message can be moved to.
    func checkRefusedMessages() throws(TransportError) {
        guard case .deadLetterQueue(let text) = refusedMessages else { return }
        if let destination = Destination(text), destination.kind == .queue, !destination.hasWildcards { return }
        throw TransportError(
            .badURL,
            "The dead-letter queue '\(text)' is not the destination of one queue. Use one such as '/queue/dead'.")
    }

    var sockets: [(path: String, kind: Service.Kind)] {
        [(mqttSocket, Service.Kind.mqtt), (stompSocket, .stomp)].compactMap { path, kind in path.map { ($0, kind) } }
    }
}
