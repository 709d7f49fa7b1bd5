import Foundation

/// An ActiveMQ Classic with STOMP, and with MQTT where that is installed, ready within two seconds.
public final class ActiveMQ: RunningBroker {
    private static let home = "/usr/share/activemq"
    /// Without it an MQTT connector listens and then drops each client.
    static let mqttLibrary = "/usr/share/java/mqtt-client.jar"
    static let program = home + "/bin/activemq.jar"

    public struct Options: Sendable {
        /// Only these may connect; nobody named means that everybody may.
        public var users: [BrokerUser] = []
        /// A STOMP listener with TLS.
        public var tls: BrokerTLS?
        /// Keeps messages in KahaDB, on disk, through `stop()` and `kill()`.
        public var persistence = false
        /// The folder of a KahaDB of another broker, for a pair of which one serves clients at a time; nil for an own one.
        public var sharedStore: String?
        /// A query for the STOMP connector's URI, as `transport.defaultHeartBeat=1000,1000`.
        public var stompQuery = ""
        /// More XML for the `<broker>` element, placed before the connectors in the alphabet that its schema demands.
        public var destinationPolicy = ""

        public init() {}
    }

    public let stompPort: Int
    /// STOMP on the non-blocking connector.
    public let stompNIOPort: Int
    private let mqttListener: Int
    public let stompTLSPort: Int?
    public let options: Options
    public let server: BrokerServer

    /// Throws where ActiveMQ is installed without MQTT.
    public var mqttPort: Int {
        get throws {
            try Broker.activeMQWithMQTT.requireInstalled()
            return mqttListener
        }
    }

    /// Starts a broker on free ports; it ends with the last reference.
    public static func start(_ options: Options = Options()) async throws -> ActiveMQ {
        try Broker.activeMQ.requireInstalled()
        let broker = try await ActiveMQ(options)
        try await broker.server.start()
        return broker
    }

    /// Starts a broker with options set in place.
    public static func start(_ configure: (inout Options) -> Void) async throws -> ActiveMQ {
        var options = Options()
        configure(&options)
        return try await start(options)
    }

    /// Starts two brokers over one store. The first one serves clients; the second one does when the first has ended.
    public static func startPair() async throws -> [ActiveMQ] {
        let first = try await start { $0.persistence = true }
        var options = first.options
        options.sharedStore = first.store
        let second = try await ActiveMQ(options)
        try await second.launch()
        return [first, second]
    }

    private let store: String

    private init(_ options: Options) async throws {
        self.options = options
        let scratch = try ScratchDirectory("activemq")
        store = options.sharedStore ?? scratch.file("data/kahadb")
        stompPort = FreePort.next()
        stompNIOPort = FreePort.next()
        mqttListener = FreePort.next()
        let speaksMQTT = Broker.activeMQWithMQTT.isInstalled
        stompTLSPort = options.tls == nil ? nil : FreePort.next()
        for name in ["data", "lib", "tmp"] { try scratch.makeDirectory(name) }
        try scratch.write(Self.logging, to: "conf/log4j.properties")

        let query = options.stompQuery.isEmpty ? "" : "?" + options.stompQuery.replacing("&", with: "&amp;")
        var connectors = [
            ("stomp", "stomp://127.0.0.1:\(stompPort)\(query)"),
            ("stomp+nio", "stomp+nio://127.0.0.1:\(stompNIOPort)\(query)"),
        ]
        if speaksMQTT {
            try FileManager.default.copyItem(atPath: Self.mqttLibrary, toPath: scratch.file("lib/mqtt-client.jar"))
            connectors.append(("mqtt", "mqtt://127.0.0.1:\(mqttListener)"))
        }
        var security = ""
        if let stompTLSPort, let tls = options.tls {
            security = try await Self.keyStores(tls, in: scratch)
            let clients = tls.requiresClientCertificate ? "?transport.needClientAuth=true" : ""
            connectors.append(("stomp+ssl", "stomp+ssl://127.0.0.1:\(stompTLSPort)\(clients)"))
        }
        try scratch.write(
            Self.configuration(
                options, data: scratch.file("data"), store: store, security: security, connectors: connectors),
            to: "conf/activemq.xml")
        try scratch.giveTo(user: "activemq")

        let base = scratch.path
        let command = Command(
            "java",
            [
                "-Xms64M", "-Xmx512M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData",
                "-Djava.io.tmpdir=\(base)/tmp", "-Dactivemq.home=\(Self.home)", "-Dactivemq.base=\(base)",
                "-Dactivemq.conf=\(base)/conf", "-Dactivemq.data=\(base)/data",
                "-Dlog4j.configuration=file:\(base)/conf/log4j.properties", "-jar",
                Self.program, "start", "xbean:file:\(base)/conf/activemq.xml",
            ], directory: base, user: "activemq")
        let user = options.users.first
        server = BrokerServer(command, in: scratch, ports: [stompNIOPort, stompTLSPort]) {
            [stompPort, mqttListener] in
            let stomp = try await RawConnection.open(port: stompPort)
            guard try await Readiness.stomp(stomp, user: user, host: "localhost") else { return false }
            guard speaksMQTT else { return true }
            return try await Readiness.mqtt(RawConnection.open(port: mqttListener), user: user)
        }
    }

    private static let logging = """
        log4j.rootLogger=INFO, console
        log4j.appender.console=org.apache.log4j.ConsoleAppender
        log4j.appender.console.layout=org.apache.log4j.PatternLayout
        log4j.appender.console.layout.ConversionPattern=%d{ABSOLUTE} %-5p %c{1}: %m%n

        """

    private static func configuration(
        _ options: Options, data: String, store: String, security: String, connectors: [(name: String, uri: String)]
    ) -> String {
        let users = options.users.map {
            #"<authenticationUser username="\#($0.name)" password="\#($0.password)" groups="users"/>"#
        }
        let plugins =
            users.isEmpty
            ? ""
            : "<plugins><simpleAuthenticationPlugin><users>\(users.joined())</users>"
                + "</simpleAuthenticationPlugin></plugins>"
        let transports = connectors.map { #"<transportConnector name="\#($0.name)" uri="\#($0.uri)"/>"# }
        let schema = "http://activemq.apache.org/schema/core"
        let beans = "http://www.springframework.org/schema/beans"
        return """
            <beans xmlns="\(beans)" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="\(beans) \
            \(beans)/spring-beans-2.0.xsd \(schema) \(schema)/activemq-core.xsd">
            <broker xmlns="\(schema)" useJmx="false" brokerName="localhost" dataDirectory="\(data)" \
            persistent="\(options.persistence)">
            \(options.destinationPolicy)
            \(options.persistence ? persistence(store) : "")
            \(plugins)
            \(security)
            <transportConnectors>\(transports.joined(separator: "\n"))</transportConnectors>
            </broker>
            </beans>

            """
    }

    /// The one that waits for the lock looks each second, and not each ten.
    private static func persistence(_ store: String) -> String {
        let lock = #"<locker><shared-file-locker lockAcquireSleepInterval="1000"/></locker>"#
        return #"<persistenceAdapter><kahaDB directory="\#(store)">\#(lock)</kahaDB></persistenceAdapter>"#
    }

    /// Java reads PKCS #12: one store with the server's key, and one with the authority, which only `keytool` can mark
    /// as trusted.
    private static func keyStores(_ tls: BrokerTLS, in scratch: ScratchDirectory) async throws -> String {
        let (server, trust) = (scratch.file("server.p12"), scratch.file("trust.p12"))
        try FileManager.default.copyItem(atPath: tls.container, toPath: server)
        try await Tool.run(
            "keytool",
            [
                "-importcert", "-noprompt", "-alias", "authority", "-file", tls.authority, "-keystore", trust,
                "-storetype", "PKCS12", "-storepass", tls.passphrase,
            ]
        ).requireSuccess()
        return """
            <sslContext><sslContext keyStore="file:\(server)" keyStorePassword="\(tls.passphrase)" \
            trustStore="file:\(trust)" trustStorePassword="\(tls.passphrase)"/></sslContext>
            """
    }
}
