import Synchronization
public import Transport

/// A small broker for MQTT and STOMP inside this process, for demonstrations and tests.
///
/// It listens on the loopback interface and on Unix-domain sockets only and forgets everything when it stops: nothing
/// is written to disk, there is no clustering and no administration. For production run Mosquitto, RabbitMQ, ActiveMQ
/// or EMQX, or a cluster of them; the clients of this package talk to each.
///
///     let broker = try await LoopbackBroker.start()
///     let client = try MQTTClient(broker.mqttURL)
///     …
///     await broker.stop()
///
/// MQTT is served in 3.1, 3.1.1 and 5.0 with all three qualities of service, retained messages, wills, sessions and
/// shared subscriptions; STOMP in 1.0, 1.1 and 1.2 with topics and queues. A message to a topic reaches the subscribers
/// of both: MQTT's `device/B/location` is STOMP's `/topic/device.B.location`.
public final class LoopbackBroker: Sendable {
    /// The ports that are listened on, on 127.0.0.1 and, where the system has it, on ::1.
    public let ports: Ports
    /// What clients connect to: one URL for each listener, nil for those that the broker does not have. ``mqttURL``,
    /// ``stompURL`` and the other properties with a single URL throw instead.
    public let urls: URLs

    let hub: Hub
    private let listeners: [Listener]

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - options: ports, users, limits and faults. Default: free ports, everybody is let in.
    ///   - clock: the clock of a test, whose time passes only when it is advanced. Default: nil, the system's clock.
    /// - Throws: `TransportError` with the code `cannotListen` when a port or socket is taken that was to be used
    ///   exactly, `badURL` for a number that is no port, a path that is too long or a dead-letter queue that is no queue,
    ///   `tlsUnavailable` or `tlsConfiguration` when TLS cannot be served.
    public static func start(
        _ options: LoopbackBrokerOptions = LoopbackBrokerOptions(), clock: ManualClock? = nil
    ) async throws(TransportError) -> LoopbackBroker {
        try await start(options, clock: clock, host: nil)
    }

    /// - Parameter host: a name under which clients of a simulation reach it too, and the only one where another broker of
    ///   the world has its ports on the addresses of this machine.
    static func start(
        _ options: LoopbackBrokerOptions, clock: ManualClock?, host: String?
    ) async throws(TransportError) -> LoopbackBroker {
        try options.checkRefusedMessages()
        let hub = try Hub(options, clock: clock)
        if let host { hub.use(host) }
        let loop = hub.loop
        var listeners: [Listener] = []
        do throws(TransportError) {
            var ports = Ports()
            try hub.checkTLS()
            for (port, choice, service) in hub.services {
                if let world = loop.world {
                    ports[keyPath: port] = try choice.simulated(in: world) { hub.isTaken($0, ports) }
                    continue
                }
                let opened = try await LoopbackListeners.open(choice, loop: loop) { hub.serve($0, as: service) }
                listeners += opened
                ports[keyPath: port] = opened.first.map { Int($0.port) }
            }
            for (path, kind) in options.sockets where loop.world == nil {
                listeners.append(
                    try await Listener.listen(on: .unix(path: path), loop: loop) { hub.serve($0, as: Service(kind)) })
            }
            hub.setMemoryServices(ports, isOpen: true)
            return LoopbackBroker(hub: hub, listeners: listeners, ports: ports)
        } catch {
            for listener in listeners { await listener.close() }
            if clock == nil { loop.stop() }
            throw error
        }
    }

    private init(hub: Hub, listeners: [Listener], ports: Ports) {
        self.hub = hub
        self.listeners = listeners
        self.ports = ports
        urls = URLs(ports, hub.options, host: hub.onlyHost)
    }

    deinit {
        // Without a call of stop(): listening must end with the owner.
        let (hub, listeners, ports) = (hub, listeners, ports)
        guard !hub.state.withLock({ $0.isStopped }) else { return }
        Task { await Self.stop(hub, listeners, ports) }
    }

    /// Closes every connection and every port; all are free when it returns. A second call does nothing; all
    /// others return at once from then on.
    public func stop() async {
        await Self.stop(hub, listeners, ports)
    }

    private static func stop(_ hub: Hub, _ listeners: [Listener], _ ports: Ports) async {
        guard hub.beginStop() else { return }
        hub.setMemoryServices(ports, isOpen: false)
        for listener in listeners { await listener.close() }
        await hub.closeAll()
        hub.judges?.stopped()
    }

    /// The rules of MQTT and STOMP that clients have broken, one sentence each, which names the client, the rule, its clause
    /// and the packet or frame; the first hundred. Empty unless ``LoopbackBrokerOptions/judgesClients`` is set.
    public var violations: [String] { hub.judges?.found.map { "\($0)" } ?? [] }

    /// Cuts every connection without any packet or frame, as a failing network would; wills are published. New
    /// connections are accepted as before. Returns when the connections are cut, as ``dropConnection(of:)`` does.
    public func dropAllConnections() async {
        await hub.forEachConnection { $0.drop() }
    }

    /// Falls silent: connections stay open and new ones come about, but nothing is read, nothing is written and no
    /// time passes for them, until ``thaw()``; sessions, messages and delayed wills age. To the other side it looks like a
    /// half-open link.
    public func freeze() async {
        await hub.act(orIfStopped: ()) { [hub] in hub.setFrozen(true) }
    }

    /// Continues after ``freeze()``. What has arrived meanwhile is processed soon; with a `ManualClock`, before this returns.
    public func thaw() async {
        await hub.act(orIfStopped: ()) { [hub] in hub.setFrozen(false) }
    }

    /// Changes the faults. The change applies to everything that happens from now on.
    public func changeFaults(_ change: @Sendable (inout LoopbackFaults) -> Void) {
        hub.faults.withLock { change(&$0) }
    }

    /// The number of connections that are open now.
    public var connectionCount: Int { hub.connectionCount }

    /// The number of MQTT sessions, connected or not.
    public var sessionCount: Int { hub.state.withLock { $0.router.sessionCount } }

    /// The number of retained messages.
    public var retainedCount: Int { hub.state.withLock { $0.router.retainedCount(at: hub.loop.now) } }

    /// What the broker has done since it started.
    public var statistics: LoopbackStatistics { hub.counters.statistics }

    /// Serves a stream as if it had come in on a port: one end of an in-memory pair, for tests.
    package func attach(_ stream: any ByteStream, as service: Service) {
        hub.serve(stream, as: service)
    }
}

/// The same URLs as in ``urls``, for tests. If the broker does not have such a listener, each throws `TransportError`
/// with the code `badURL` and a message that names the option to set.
extension LoopbackBroker {
    /// For MQTT clients.
    public var mqttURL: String { get throws(TransportError) { try served(urls.mqtt, "mqttPort") } }
    /// For STOMP clients.
    public var stompURL: String { get throws(TransportError) { try served(urls.stomp, "stompPort") } }
    /// For clients of both protocols, and for web pages.
    public var wsURL: String { get throws(TransportError) { try served(urls.ws, "wsPort") } }
    /// For MQTT clients, with TLS.
    public var mqttsURL: String { get throws(TransportError) { try served(urls.mqtts, "mqttsPort", tls: true) } }
    /// For STOMP clients, with TLS.
    public var stompsURL: String { get throws(TransportError) { try served(urls.stomps, "stompsPort", tls: true) } }
    /// For clients of both protocols, and for web pages, with TLS.
    public var wssURL: String { get throws(TransportError) { try served(urls.wss, "wssPort", tls: true) } }
    /// The Unix-domain socket for MQTT.
    public var mqttSocketURL: String { get throws(TransportError) { try served(urls.mqttSocket, "mqttSocket") } }
    /// The Unix-domain socket for STOMP.
    public var stompSocketURL: String { get throws(TransportError) { try served(urls.stompSocket, "stompSocket") } }

    private func served(_ url: String?, _ option: String, tls: Bool = false) throws(TransportError) -> String {
        if let url { return url }
        let advice =
            tls && hub.options.tls == nil
            ? "Set LoopbackBrokerOptions.tls." : "Set LoopbackBrokerOptions.\(option) before start()."
        throw TransportError(.badURL, "The broker was started without this listener. \(advice)")
    }
}

extension LoopbackBroker {
    /// The ports that a broker listens on, named like the schemes of URLs; nil for what is not served.
    public struct Ports: Sendable, Hashable {
        /// The port for MQTT.
        public internal(set) var mqtt: Int?
        /// The port for STOMP.
        public internal(set) var stomp: Int?
        /// The port for both over WebSocket.
        public internal(set) var ws: Int?
        /// The port for MQTT over TLS.
        public internal(set) var mqtts: Int?
        /// The port for STOMP over TLS.
        public internal(set) var stomps: Int?
        /// The port for both over WebSocket over TLS.
        public internal(set) var wss: Int?

        var all: [Int] { [mqtt, stomp, ws, mqtts, stomps, wss].compactMap { $0 } }
    }

    /// URLs to hand to clients, one per listener; nil for what is not served.
    ///
    /// Those with TLS name `localhost`, which certificates for this machine tend to be for; the others 127.0.0.1.
    public struct URLs: Sendable, Hashable {
        /// For MQTT clients.
        public let mqtt: String?
        /// For STOMP clients.
        public let stomp: String?
        /// For clients of both protocols, web pages included.
        public let ws: String?
        /// For MQTT clients, with TLS.
        public let mqtts: String?
        /// For STOMP clients, with TLS.
        public let stomps: String?
        /// For clients of both protocols, web pages included.
        public let wss: String?
        /// The Unix-domain socket for MQTT.
        public let mqttSocket: String?
        /// The Unix-domain socket for STOMP.
        public let stompSocket: String?

        /// - Parameter host: in place of the names of this machine.
        init(_ ports: Ports, _ options: LoopbackBrokerOptions, host: String?) {
            let (address, name) = (host ?? "127.0.0.1", host ?? "localhost")
            mqtt = ports.mqtt.map { "mqtt://\(address):\($0)" }
            stomp = ports.stomp.map { "stomp://\(address):\($0)" }
            ws = ports.ws.map { "ws://\(address):\($0)" }
            mqtts = ports.mqtts.map { "mqtts://\(name):\($0)" }
            stomps = ports.stomps.map { "stomps://\(name):\($0)" }
            wss = ports.wss.map { "wss://\(name):\($0)" }
            mqttSocket = options.mqttSocket.map(Self.url(ofSocket:))
            stompSocket = options.stompSocket.map(Self.url(ofSocket:))
        }

        /// Percent-encoded, but for what paths mostly consist of.
        private static func url(ofSocket path: String) -> String {
            let bytes = path.utf8.map { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x5F: String(UnicodeScalar(byte))
                default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
                }
            }
            return "unix:" + bytes.joined()
        }
    }
}
