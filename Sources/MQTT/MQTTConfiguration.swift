public import MQTTCore
public import Messaging
public import Transport

/// How a client connects and what it keeps.
public struct MQTTConfiguration: Sendable {
    /// The client identifier; each `%` stands for a random hexadecimal byte. Empty lets the server choose.
    public var clientID: String
    /// The version of the protocol to ask for.
    public var version: MQTTVersion = .v3_1_1
    /// Versions to ask for, one after the other, when the server refuses ``version``; the first that it takes stays.
    ///
    /// `[.v3_1_1]` beside a `version` of 5.0 suits servers of any age; messages may then have no properties.
    public var fallbackVersions: [MQTTVersion] = []
    /// Whether the client begins with a new session at both ends (Clean Start, Clean Session).
    ///
    /// 5.0: the first connection of this client begins anew; connections after that go on with the session as long as
    /// ``sessionExpiry`` lets the server keep it. So a client that reconnects by itself loses nothing, and a program that
    /// was started again begins anew. 3.1 and 3.1.1 have one flag for both: with it the server forgets the client at
    /// the end of every connection, and the client makes its subscriptions again; set it to false, with a client
    /// identifier that stays the same, for a session that survives.
    public var cleanStart = true
    /// How long the server keeps the session after the connection ended, in whole seconds; 5.0 only.
    public var sessionExpiry: Duration = .zero
    /// Keeps the session, and what is enqueued, over the end of the process; use it with `cleanStart` off.
    public var sessionStore: (any SessionStore)?
    /// The longest silence on the connection, in whole seconds up to 65,535; zero turns keep alive off.
    public var keepAlive: Duration = .seconds(60)
    /// The message that the server publishes when this client vanishes without a word.
    public var will: MQTTWill?
    /// More servers, as URLs like the client's own, tried in turn when that one cannot be had.
    ///
    /// What was not acknowledged is published again at the next one; a session goes on there if they share it.
    public var furtherServers: [String] = []
    /// In which order the servers are tried.
    public var serverOrder = ServerOrder.listed
    /// Shown to every server; user info in a server's URL serves when this is nil.
    public var credentials: Credentials?
    /// Asked for credentials before each attempt to connect, and once more when they were refused; wins over
    /// `credentials`. An error that it throws fails the attempt, not those after it.
    public var credentialsProvider: (@Sendable (CredentialsRequest) async throws -> Credentials?)?
    /// The steps of an authentication that is more than a password; 5.0 only.
    public var authentication: MQTTAuthentication?
    /// Further properties of CONNECT: user properties, Request Response Information; 5.0 only.
    public var connectProperties = MQTTProperties()
    /// Whether the client goes where the server sends it (Use Another Server, Server Moved), with the same credentials:
    /// allow it only to servers that you trust with them. 5.0 only. ``MQTTEvent/redirected(to:isPermanent:)`` tells of it.
    public var followsRedirects = false
    /// For `mqtts:` and `wss:`; the defaults verify the server with the system's authorities.
    public var tls = TLSOptions()
    /// For `ws:` and `wss:`.
    public var webSocket = WebSocketOptions()
    /// Through which proxy the servers are reached; not for `unix:`.
    public var proxy = Proxy.none
    /// How lost connections are opened again.
    public var reconnect = ReconnectPolicy.automatic
    /// For the look-up of the name, the connection and its handshakes below MQTT.
    public var connectTimeout: Duration = .seconds(10)
    /// For the answers to CONNECT, SUBSCRIBE and UNSUBSCRIBE.
    public var requestTimeout: Duration = .seconds(10)
    /// For any sign of life after a ping.
    public var pingTimeout: Duration = .seconds(10)
    /// The largest packet that is accepted, in bytes.
    public var maximumPacketSize = 16 << 20
    /// QoS 1 and 2 messages that the server may send before we acknowledge one; 5.0 only.
    public var receiveMaximum: UInt16 = 1024
    /// QoS 1 and 2 messages of ours that are on their way at once; nil takes the server's word in 5.0 (at most 1024),
    /// and 20 before, where the server cannot say: Mosquitto ends the connection of a client that sends more of QoS 2.
    public var maximumInFlight: UInt16?
    /// Publish again what the server had not finally acknowledged when it lost the session; QoS 2 messages may then
    /// arrive twice, which ``MQTTEvent/sessionLost(republished:possibleDuplicates:)`` counts. Otherwise their publishers get
    /// ``MQTTError/Code/sessionLost``.
    public var republishesAfterSessionLoss = true
    /// Topic aliases that the server may use; 5.0 only.
    public var topicAliasMaximum: UInt16 = 64
    /// Topic aliases that we use at most, chosen by themselves; the server may allow fewer; 5.0 only.
    public var outboundTopicAliasMaximum: UInt16 = 32
    /// What becomes of QoS 1 and 2 messages that match no subscription.
    public var keptMessages = MQTTKeepPolicy()
    /// Whether QoS 0 messages wait for a connection too; otherwise publishing one without a connection throws.
    public var queuesQoS0WhileOffline = false
    /// What happens to a message that finds the queue full.
    public var queueOverflow = MQTTQueueOverflow.reject
    /// Messages that wait for a connection or for room among those in flight.
    public var queueLimit = 10_000
    /// Bytes of messages that wait.
    public var queueByteLimit = 16 << 20
    /// Bytes that wait for the socket; a publisher that finds them suspends until there is room.
    public var outboxLimit = 1 << 20
    /// Bytes of received messages that wait in all subscriptions together; beyond it reading pauses.
    public var receiveByteLimit = 64 << 20

    public init(clientID: String = "") {
        self.clientID = clientID
    }
}

extension MQTTConfiguration {
    var streamOptions: StreamOptions {
        var options = StreamOptions()
        options.proxy = proxy
        options.tls = tls
        options.webSocket = webSocket
        options.subprotocols = [version == .v3_1 ? "mqttv3.1" : "mqtt"]
        options.schemes = [.mqtt, .mqtts, .ws, .wss, .unix]
        return options
    }

    /// The client identifier with each `%` replaced by two random hexadecimal digits.
    static func expand(_ template: String) -> String {
        var result = ""
        for scalar in template.unicodeScalars {
            if scalar == "%" {
                let byte = UInt8.random(in: 0...255)
                if byte < 16 { result += "0" }
                result += String(byte, radix: 16)
            } else {
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
