import Foundation

/// A RabbitMQ with its STOMP, MQTT and WebSocket plugins.
///
/// The first start takes 8 to 12 seconds: the MQTT plugin waits 3 to 6 of them for other members of a cluster. Share
/// one where tests do not disturb each other (`SharedBrokers.rabbitMQ()`).
public final class RabbitMQ: RunningBroker {
    /// The wrapper in `/usr/sbin` changes user and directory; this is what it calls.
    static let program = "/usr/lib/rabbitmq/bin/rabbitmq-server"

    public struct Options: Sendable {
        /// All may do everything in every virtual host. The first is also who anonymous MQTT clients are.
        public var users = [BrokerUser("guest", password: "guest")]
        public var virtualHosts = ["/"]
        /// The MQTT and web-MQTT plugins; a start without them is twice as fast.
        public var mqtt = true
        /// A STOMP and (with `mqtt`) an MQTT listener with TLS.
        public var tls: BrokerTLS?
        /// By user name a regular expression of the topics that MQTT clients may publish and subscribe to, with dots in place
        /// of slashes; all for other users.
        public var topics: [String: String] = [:]
        /// More lines for `rabbitmq.conf`.
        public var extraLines: [String] = []

        public init() {}
    }

    /// What makes a node one of a cluster.
    struct Membership {
        var name: String
        /// Where the port mapper listens that all nodes use.
        var mapperPort: Int
        /// The node that this one becomes a member with; nil for the first.
        var joins: String?
    }

    public let stompPort: Int
    /// `ws://127.0.0.1:PORT/ws`, with binary frames.
    public let webStompPort: Int
    /// Nil without the MQTT plugins.
    public let mqttPort: Int?
    /// `ws://127.0.0.1:PORT/ws`.
    public let webMQTTPort: Int?
    public let stompTLSPort: Int?
    public let mqttTLSPort: Int?
    /// `wss://localhost:PORT/ws`, with `tls`.
    public let webStompTLSPort: Int?
    public let webMQTTTLSPort: Int?
    public let options: Options
    public let server: BrokerServer
    /// The port mapper of Erlang nodes, which would otherwise be started by the node and outlive it.
    private let portMapper: ChildProcess?
    private let environment: [String: String]

    /// Starts a broker on free ports; it ends with the last reference.
    public static func start(_ options: Options = Options()) async throws -> RabbitMQ {
        try Broker.rabbitMQ.requireInstalled()
        let broker = try await RabbitMQ(options)
        try await broker.server.start()
        return broker
    }

    /// Starts a broker with options set in place.
    public static func start(_ configure: (inout Options) -> Void) async throws -> RabbitMQ {
        var options = Options()
        configure(&options)
        return try await start(options)
    }

    /// The first user.
    public var user: BrokerUser { options.users[0] }

    init(_ options: Options, _ membership: Membership? = nil) async throws {
        self.options = options
        let scratch = try ScratchDirectory("rabbitmq")
        stompPort = FreePort.next()
        webStompPort = FreePort.next()
        mqttPort = options.mqtt ? FreePort.next() : nil
        webMQTTPort = options.mqtt ? FreePort.next() : nil
        stompTLSPort = options.tls == nil ? nil : FreePort.next()
        mqttTLSPort = options.tls == nil || !options.mqtt ? nil : FreePort.next()
        webStompTLSPort = options.tls == nil ? nil : FreePort.next()
        webMQTTTLSPort = options.tls == nil || !options.mqtt ? nil : FreePort.next()

        var lines = [
            "listeners.tcp = none", "load_definitions = \(scratch.file("definitions.json"))", "log.file = false",
            "log.console = true", "log.console.level = info", "stomp.listeners.tcp.1 = 127.0.0.1:\(stompPort)",
            // The time in milliseconds until CONNECT has to be there, by default 10 s: a busy machine exceeds that.
            "stomp.login_timeout = 300000",
            "web_stomp.tcp.ip = 127.0.0.1", "web_stomp.tcp.port = \(webStompPort)", "web_stomp.ws_frame = binary",
        ]
        var plugins = ["rabbitmq_stomp", "rabbitmq_web_stomp"]
        if let mqttPort, let webMQTTPort {
            plugins += ["rabbitmq_mqtt", "rabbitmq_web_mqtt"]
            lines += [
                "mqtt.login_timeout = 300000",
                "mqtt.listeners.tcp.1 = 127.0.0.1:\(mqttPort)", "mqtt.default_user = \(options.users[0].name)",
                "mqtt.default_pass = \(options.users[0].password)", "mqtt.vhost = \(options.virtualHosts[0])",
                "web_mqtt.tcp.ip = 127.0.0.1", "web_mqtt.tcp.port = \(webMQTTPort)",
            ]
        }
        if let tls = options.tls {
            let webPorts = [("web_stomp", webStompTLSPort), ("web_mqtt", webMQTTTLSPort)]
            lines += try Self.tlsLines(tls, copiedTo: scratch, webPorts)
            if let stompTLSPort { lines.append("stomp.listeners.ssl.1 = 127.0.0.1:\(stompTLSPort)") }
            if let mqttTLSPort { lines.append("mqtt.listeners.ssl.1 = 127.0.0.1:\(mqttTLSPort)") }
        }
        if let joins = membership?.joins {
            lines += [
                "cluster_formation.peer_discovery_backend = classic_config",
                "cluster_formation.classic_config.nodes.1 = \(joins)@localhost",
            ]
        }
        lines += options.extraLines
        try scratch.write(lines.joined(separator: "\n") + "\n", to: "rabbitmq.conf")
        try scratch.write(Self.definitions(options), to: "definitions.json")
        try scratch.write("[\(plugins.joined(separator: ","))].\n", to: "enabled_plugins")
        try scratch.write("", to: "environment.conf")
        for name in ["home", "mnesia", "log"] { try scratch.makeDirectory(name) }
        try scratch.giveTo(user: "rabbitmq")

        let mapperPort = membership?.mapperPort ?? FreePort.next()
        // Who knows the cookie is one of us.
        let cookie = membership == nil ? "" : " -setcookie \(mapperPort)"
        environment = [
            "HOME": scratch.file("home"),
            "RABBITMQ_NODENAME": "\(membership?.name ?? "test")@localhost",
            "RABBITMQ_MNESIA_BASE": scratch.file("mnesia"),
            "RABBITMQ_LOG_BASE": scratch.file("log"),
            "RABBITMQ_CONFIG_FILE": scratch.file("rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": scratch.file("environment.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": scratch.file("enabled_plugins"),
            "RABBITMQ_PID_FILE": scratch.file("pid"),
            "RABBITMQ_DIST_PORT": "\(FreePort.next())",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1} -start_epmd false\(cookie)",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": "\(mapperPort)",
            "ERL_CRASH_DUMP_BYTES": "0",
            // Makes the script become the Erlang machine instead of starting and guarding it: one process id for all
            // signals.
            "RUNNING_UNDER_SYSTEMD": "true",
        ]
        portMapper = membership == nil ? try await Self.startPortMapper(mapperPort) : nil

        let (user, host) = (options.users[0], options.virtualHosts[0])
        server = BrokerServer(
            Command(Self.program, environment: environment, directory: scratch.path, user: "rabbitmq"), in: scratch,
            // Until it has tried ten to twenty times, with a pause of 0.3 seconds each.
            lastWork: "ms for cluster members to join",
            ports: [webStompPort, webMQTTPort, stompTLSPort, mqttTLSPort, webStompTLSPort, webMQTTTLSPort]
        ) { [stompPort, mqttPort] in
            let stomp = try await RawConnection.open(port: stompPort)
            guard try await Readiness.stomp(stomp, user: user, host: host) else { return false }
            guard let mqttPort else { return true }
            return try await Readiness.mqtt(RawConnection.open(port: mqttPort), user: user)
        }
    }

    static func startPortMapper(_ port: Int) async throws -> ChildProcess {
        let mapper = try await ChildProcess.start(
            Command("epmd", ["-address", "127.0.0.1", "-port", "\(port)"], user: "rabbitmq"))
        let listening = await eventually { (try? await RawConnection.open(port: port)) != nil }
        guard listening else { throw TimeoutError("epmd does not listen; \(mapper.report)") }
        return mapper
    }

    /// Whether it has said that it is a member, and lets the next one in.
    var hasJoined: Bool { server.hasSaid("Will try to unlock") }

    private static func definitions(_ options: Options) -> String {
        func list<Element>(_ elements: [Element], _ text: (Element) -> String) -> String {
            "[" + elements.map(text).joined(separator: ",") + "]"
        }
        let users = list(options.users) {
            #"{"name":"\#($0.name)","password":"\#($0.password)","tags":"administrator"}"#
        }
        let hosts = list(options.virtualHosts) { #"{"name":"\#($0)"}"# }
        let pairs = options.users.flatMap { user in options.virtualHosts.map { (user.name, $0) } }
        let permissions = list(pairs) {
            #"{"user":"\#($0)","vhost":"\#($1)","configure":".*","write":".*","read":".*"}"#
        }
        let topics = list(pairs) {
            let topics = options.topics[$0] ?? ".*"
            return #"{"user":"\#($0)","vhost":"\#($1)","exchange":"amq.topic","write":"\#(topics)","#
                + #""read":"\#(topics)"}"#
        }
        return #"{"users":\#(users),"vhosts":\#(hosts),"permissions":\#(permissions),"topic_permissions":\#(topics)}"#
    }

    private static func tlsLines(
        _ tls: BrokerTLS, copiedTo scratch: ScratchDirectory, _ webPorts: [(plugin: String, port: Int?)]
    ) throws -> [String] {
        try tls.copied(to: scratch) { files in
            let web = webPorts.flatMap { plugin, port in
                port.map {
                    [
                        "\(plugin).ssl.ip = 127.0.0.1", "\(plugin).ssl.port = \($0)",
                        "\(plugin).ssl.cacertfile = \(files.authority)",
                        "\(plugin).ssl.certfile = \(files.certificate)", "\(plugin).ssl.keyfile = \(files.key)",
                    ]
                } ?? []
            }
            return web + [
                "ssl_options.cacertfile = \(files.authority)", "ssl_options.certfile = \(files.certificate)",
                "ssl_options.keyfile = \(files.key)",
                "ssl_options.verify = \(tls.requiresClientCertificate ? "verify_peer" : "verify_none")",
                "ssl_options.fail_if_no_peer_cert = \(tls.requiresClientCertificate)",
            ]
        }
    }
}
