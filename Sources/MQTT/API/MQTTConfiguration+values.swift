import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTConfiguration {
    /// What ``MQTTConfiguration`` holds beside the client identifier, and what each is before it is set.
    struct Values: Sendable {
        var version: MQTTVersion = .v3_1_1
        var fallbackVersions: [MQTTVersion] = []
        var cleanStart = true
        var sessionExpiry: Duration = .zero
        var sessionStore: (any SessionStore)?
        var keepAlive: Duration = .seconds(60)
        var will: MQTTWill?
        var serverOrder = ServerOrder.listed
        var credentials: Credentials?
        var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
        var authentication: MQTTAuthentication?
        var connectProperties = MQTTProperties()
        var followsRedirects = false
        var tls = TLSOptions()
        var webSocket = WebSocketOptions()
        var proxy = Proxy.none
        var reconnect = ReconnectPolicy.automatic
        var connectTimeout: Duration = .seconds(30)
        var requestTimeout: Duration = .seconds(10)
        var pingTimeout: Duration = .seconds(10)
        var maximumPacketSize = 16 << 20
        var maximumControlPacketSize = 256 << 10
        var receiveMaximum: UInt16 = 1024
        var maximumInFlight: UInt16?
        var republishesAfterSessionLoss = true
        var topicAliasMaximum: UInt16 = 64
        var outboundTopicAliasMaximum: UInt16 = 32
        var unmatchedMessagePolicy = MQTTUnmatchedMessagePolicy()
        var dropsInvalidMessages = false
        var queuesQoS0WhileOffline = false
        var queueOverflow = QueueOverflow.reject
        var maximumQueuedMessages = 10_000
        var maximumQueuedBytes = 16 << 20
        var maximumOutboxBytes = 1 << 20
        var maximumUnreadBytes = 64 << 20
    }

    /// A change puts a copy in the place of what is shared.
    var values: Values {
        get { rest.values }
        set { rest = MQTTSharedConfiguration(newValue) }
    }
}

/// The part of a configuration that is the same for many clients, as it mostly is: held once for all of them, together
/// with what follows from it. Nothing in it ever changes.
final class MQTTSharedConfiguration: Sendable {
    /// What follows from the values.
    struct Derived: Sendable {
        let streams: Shared<StreamOptions>
        let reconnect: Shared<ReconnectPolicy>
        let unmatchedMessagePolicy: Shared<MQTTUnmatchedMessagePolicy>
        /// Without the client identifier.
        let engine: MQTTEngineConfiguration
    }

    let values: MQTTConfiguration.Values
    /// Made for the first client.
    private let known = Lock<Derived?>(nil)

    /// That of ``MQTTConfiguration/init(clientID:)``.
    static let standard = MQTTSharedConfiguration(MQTTConfiguration.Values())

    init(_ values: MQTTConfiguration.Values) {
        self.values = values
    }

    var derived: Derived {
        known.withLock { known in
            if let known { return known }
            let made = Derived(
                streams: Shared(values.streamOptions), reconnect: Shared(values.reconnect),
                unmatchedMessagePolicy: Shared(values.unmatchedMessagePolicy), engine: values.engineConfiguration)
            known = made
            return made
        }
    }
}
