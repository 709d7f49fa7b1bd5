import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization
import Transport

/// The part of the configuration that a client reads after it was made, with the options of the layers below. It never
/// changes, so any thread may read it.
///
/// Clients with equal configurations share one object, whatever their client identifiers. Clients with different
/// configurations share the parts that are equal. The options of the engine are stored in `engineOptions` only.
final class MQTTSettings: Sendable {
    /// The options of the engine, without the client identifier.
    let engineOptions: MQTTEngineOptions
    let streams: Shared<StreamOptions>
    let reconnect: Shared<ReconnectPolicy>
    let unmatched: Shared<MQTTUnmatchedMessagePolicy>
    let credentials: CredentialsSource
    let connectProvider: (@Sendable (inout MQTTConnectOptions) async throws -> Void)?
    let authentication: MQTTAuthentication?
    let sessionStore: (any SessionStore)?
    let messageHook: MQTTMessageHook?
    let fallbackVersions: [MQTTVersion]
    let maximumOutboxBytes: Int
    let maximumUnreadBytes: Int
    let keepAlive: Duration
    let sessionExpiry: Duration
    /// Nil for the default of the version.
    private let maximumInFlight: UInt16?
    let serverOrder: ServerOrder
    let queueOverflow: MQTTConfiguration.QueueOverflow
    let queuesQoS0WhileOffline: Bool
    let followsRedirects: Bool
    let usesNetworkMonitor: Bool

    var version: MQTTVersion { engineOptions.value.version }
    var cleanStart: Bool { engineOptions.value.cleanStart }
    var requestTimeout: Duration { .nanoseconds(engineOptions.value.requestTimeout) }

    private struct Latest {
        weak var settings: MQTTSettings?
        /// Without the client identifier.
        var configuration: MQTTConfiguration?
    }

    /// The settings that were made last, and from what.
    private static let latest = Lock(Latest())

    /// The settings for a configuration.
    static func of(_ configuration: MQTTConfiguration) -> MQTTSettings {
        var options = configuration
        options.clientID = ""
        // Release the earlier value after the lock: it may hold the last reference to an object of the application.
        let (settings, _) = latest.withLock { [options] latest in
            let earlier = (known: latest.settings, configuration: latest.configuration)
            if let known = earlier.known, earlier.configuration == options { return (known, earlier) }
            let made = MQTTSettings(options, earlier.known)
            latest = Latest(settings: made, configuration: options)
            return (made, earlier)
        }
        return settings
    }

    deinit {
        // Release the objects that the closures of the configuration hold with its last client; after the lock, and so the latest
        // settings, to which this may be the last reference: their end takes the lock as well.
        let released = Self.latest.withLock { latest in
            let settings = latest.settings
            return (settings, configuration: settings == nil ? latest.configuration.take() : nil)
        }
        withExtendedLifetime(released) {}
    }

    private init(_ options: MQTTConfiguration, _ known: MQTTSettings?) {
        engineOptions = MQTTEngineOptions(Self.engineConfiguration(options))
        reconnect = .of(options.reconnect, orKnown: known?.reconnect)
        unmatched = .of(options.unmatchedMessagePolicy, orKnown: known?.unmatched)
        var streams = StreamOptions()
        streams.proxy = options.proxy
        streams.tls = options.tls
        streams.webSocket = options.webSocket
        streams.serviceClass = options.serviceClass
        streams.network = options.network
        // Some servers know 3.1 by its own name only, others (RabbitMQ before 4.2.2) by that of the later versions.
        streams.subprotocols = options.version == .v3_1 ? ["mqttv3.1", "mqtt"] : ["mqtt"]
        streams.schemes = [.mqtt, .mqtts, .ws, .wss, .unix]
        self.streams = .of(streams, orKnown: known?.streams)
        credentials = CredentialsSource(fixed: options.credentials, provider: options.credentialsProvider)
        connectProvider = options.connectProvider
        authentication = options.authentication
        sessionStore = options.sessionStore
        messageHook = options.messageHook
        fallbackVersions = options.fallbackVersions
        // At least 1: an outbox that is full when it is empty would never have room.
        maximumOutboxBytes = max(1, options.maximumOutboxBytes)
        maximumUnreadBytes = options.maximumUnreadBytes
        maximumInFlight = options.maximumInFlight
        keepAlive = options.keepAlive
        sessionExpiry = options.sessionExpiry
        serverOrder = options.serverOrder
        queueOverflow = options.queueOverflow
        queuesQoS0WhileOffline = options.queuesQoS0WhileOffline
        followsRedirects = options.followsRedirects
        usesNetworkMonitor = options.usesNetworkMonitor
    }

    /// The configuration of a client's engine, without the client identifier.
    private static func engineConfiguration(_ options: MQTTConfiguration) -> MQTTEngineConfiguration {
        var engine = MQTTEngineConfiguration(role: .client, version: options.version)
        engine.cleanStart = options.cleanStart
        // With a provider each connection has credentials of its own.
        engine.userName = options.credentials?.userName
        engine.password = options.credentials?.password.map { Array($0.utf8) }
        engine.keepAlive = UInt16(clamping: options.keepAlive.inSecondsRoundedUp)
        engine.sessionExpiry = UInt32(clamping: options.sessionExpiry.inSecondsRoundedUp)
        engine.will = options.will
        engine.receiveMaximum = options.receiveMaximum
        engine.enforcesReceiveMaximum = options.enforcesReceiveMaximum
        engine.maximumPacketSize = UInt32(clamping: options.maximumPacketSize)
        engine.maximumControlPacketSize = UInt32(clamping: options.maximumControlPacketSize)
        engine.maximumInFlight = options.maximumInFlight ?? maximumInFlight(options.version)
        engine.connectProperties = options.connectProperties
        engine.authenticationMethod = options.authentication?.method
        engine.republishesAfterSessionLoss = options.republishesAfterSessionLoss
        engine.topicAliasMaximum = options.topicAliasMaximum
        engine.outboundTopicAliasMaximum = options.outboundTopicAliasMaximum
        engine.maximumFiltersPerRequest = options.maximumFiltersPerRequest
        engine.resubscribesWithSessionPresent = options.resubscribesWithSessionPresent
        engine.subscribesAgainAfterRefusals = true
        engine.dropsInvalidMessages = options.dropsInvalidMessages
        engine.maximumQueuedMessages = options.maximumQueuedMessages
        engine.maximumQueuedBytes = options.maximumQueuedBytes
        engine.maximumPublishesPerSecond = options.maximumPublishesPerSecond
        engine.maximumPublishedBytesPerSecond = options.maximumPublishedBytesPerSecond
        engine.connectTimeout = options.connectTimeout.inNanoseconds
        engine.pingTimeout = options.pingTimeout.inNanoseconds
        engine.requestTimeout = options.requestTimeout.inNanoseconds
        engine.acknowledgementTimeout = options.acknowledgementTimeout?.inNanoseconds ?? .max
        // The server may hold a session of an earlier process of this client.
        engine.acceptsUnknownSession = true
        return engine
    }

    /// Checks what a CONNECT is to have: times are not negative, timeouts are positive, and a server can wait for as long as
    /// the delay of the will: it publishes the will at the latest when the session ends (MQTT 5.0 3.1.3.2.2, 3.1.2.5).
    ///
    /// - Throws: ``MQTTError/Code/invalidRequest`` otherwise.
    func check(_ will: MQTTWill?, keepAlive: Duration) throws(MQTTError) {
        guard keepAlive >= .zero else {
            throw .invalidRequest(
                "keepAlive is \(keepAlive). Set it to a positive time, or to zero to send no PINGREQ.")
        }
        guard sessionExpiry >= .zero else {
            throw .invalidRequest(
                "sessionExpiry is \(sessionExpiry). Set it to a positive time, or to zero for a session that ends with its connection."
            )
        }
        let engine = engineOptions.value
        try MQTTError.check(timeouts: [
            "connectTimeout": .nanoseconds(engine.connectTimeout), "pingTimeout": .nanoseconds(engine.pingTimeout),
            "requestTimeout": requestTimeout,
            "acknowledgementTimeout": .nanoseconds(engine.acknowledgementTimeout),
        ])
        guard let delay = will?.properties.willDelayInterval, delay > 0 else { return }
        guard version == .v5_0 || fallbackVersions.contains(.v5_0) else {
            throw .invalidRequest(
                "The will has a delay of \(delay) s, but MQTT \(version) has no delay [MQTT 5.0 3.1.3.2.2]."
                    + " Set version to 5.0, or leave the delay out.")
        }
        let expiry = engine.sessionExpiry
        guard delay <= expiry else {
            throw .invalidRequest(
                "The will has a delay of \(delay) s, but the session ends after \(expiry) s, and the server would publish the"
                    + " will then [MQTT 5.0 3.1.3.2.2]. Set sessionExpiry to at least \(delay) s, or shorten the delay."
            )
        }
    }

    func maximumInFlight(_ version: MQTTVersion) -> UInt16 { maximumInFlight ?? Self.maximumInFlight(version) }

    private static func maximumInFlight(_ version: MQTTVersion) -> UInt16 { version == .v5_0 ? 1024 : 20 }

    /// The client identifier with each `%` replaced by two random hexadecimal digits.
    static func expand(_ template: String, random: LoopRandom) -> String {
        var random = random
        var result = ""
        for scalar in template.unicodeScalars {
            if scalar == "%" {
                let byte = UInt8.random(in: 0...255, using: &random)
                if byte < 16 { result += "0" }
                result += String(byte, radix: 16)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
