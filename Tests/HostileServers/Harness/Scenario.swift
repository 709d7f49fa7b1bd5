import MQTT
import STOMP
import Transport

/// A server that misbehaves in one way, what a client does with it, and what must hold.
struct Scenario: Sendable {
    /// What must hold; all of it is counted, except for the time.
    struct Bounds: Sendable {
        /// Memory that the process may take beyond what it had before, in MiB. Debug builds and allocators need some.
        var memory = 24
        /// Connections that the client may open.
        var connections = 1
        /// Seconds within which the client has to report an error; nil where holding the connection is as good.
        var seconds: Double? = 8
        /// Bytes that the client may send.
        var sent = 1 << 20

        static let ends = Bounds()
        /// The server is silent: keep alive (2 s) and twice the ping timeout (1 s), and half a second for the machine.
        /// STOMP's heart-beats of a second are missed earlier.
        static let silence = Bounds(seconds: 4.5)
        /// The client may keep the connection, as long as it stays small.
        static let holds = Bounds(seconds: nil)
    }

    /// What the client does once it is connected, before it waits for the end.
    enum Act: Sendable {
        case nothing
        /// Subscribes to everything and reads.
        case subscribe
        /// Subscribes and does not read.
        case subscribeAndSleep
        /// Publishes one message with QoS 1, or sends one with a receipt.
        case publish
        /// Publishes QoS 2, which takes two answers.
        case publishExactlyOnce
        /// Publishes without acknowledgement as fast as it can.
        case publishWithoutEnd
        /// The same 50 times a second.
        case publishSlowly
        /// Unsubscribes what it has subscribed to.
        case unsubscribe
        /// Disconnects gracefully.
        case disconnect
    }

    let name: String
    let bounds: Bounds
    /// Seconds after which the process ends whatever the client has done; nil for those of the campaign.
    var limit: Double?
    let run: @Sendable (_ deadline: ContinuousClock.Instant) async -> Outcome
}

/// What a client made of a server.
struct Outcome: Sendable {
    /// The error, or what the client was doing when the time was over.
    var end: String
    /// Whether there was an error.
    var hasEnded: Bool
    var connections: Int
    /// Bytes that the client sent.
    var sent: Int
}

extension Scenario {
    static func mqtt(
        _ name: String, _ bounds: Bounds = .ends, act: Act = .nothing, url: String = "mqtt://127.0.0.1:PORT",
        _ configure: @escaping @Sendable (inout MQTTConfiguration, _ port: Int) -> Void = { _, _ in },
        serve: Listener.Script?
    ) -> Scenario {
        scenario("mqtt-\(name)", bounds, act, serve) { port in
            var configuration = MQTTConfiguration(clientID: "victim")
            configuration.version = .v5_0
            configuration.keepAlive = .seconds(2)
            configuration.pingTimeout = .seconds(1)
            configuration.connectTimeout = .seconds(3)
            configuration.requestTimeout = .seconds(3)
            configuration.reconnect = .never
            configure(&configuration, port)
            return MQTTClient(url.replacing("PORT", with: "\(port)"), configuration: configuration)
        }
    }

    static func stomp(
        _ name: String, _ bounds: Bounds = .ends, act: Act = .nothing, url: String = "stomp://127.0.0.1:PORT",
        _ configure: @escaping @Sendable (inout STOMPConfiguration, _ port: Int) -> Void = { _, _ in },
        serve: Listener.Script?
    ) -> Scenario {
        scenario("stomp-\(name)", bounds, act, serve) { port in
            var configuration = STOMPConfiguration()
            configuration.outgoingHeartBeat = .seconds(1)
            configuration.incomingHeartBeat = .seconds(1)
            configuration.connectTimeout = .seconds(3)
            configuration.requestTimeout = .seconds(3)
            configuration.reconnect = .never
            configure(&configuration, port)
            return STOMPClient(url.replacing("PORT", with: "\(port)"), configuration: configuration)
        }
    }

    /// - Parameter client: Makes the client of a server on a port.
    private static func scenario(
        _ name: String, _ bounds: Bounds, _ act: Act, _ serve: Listener.Script?,
        client: @escaping @Sendable (_ port: Int) -> some VictimClient
    ) -> Scenario {
        Scenario(name: name, bounds: bounds) { deadline in
            let listener = Listener(until: deadline, serve)
            let client = client(listener.port)
            return await Victim.outcome(listener, until: deadline) { try await client.suffer(act) }
        }
    }

    /// The same under another prefix of its name.
    func named(_ prefix: String) -> Scenario {
        let rest = name.drop { $0 != "-" }
        return Scenario(name: prefix + rest, bounds: bounds, limit: limit, run: run)
    }
}
