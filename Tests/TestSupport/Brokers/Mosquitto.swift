import Foundation

/// A Mosquitto of a test's own, ready within a tenth of a second.
public final class Mosquitto: RunningBroker {
    public struct Options: Sendable {
        /// Only these may connect; nobody named means that everybody may.
        public var users: [BrokerUser] = []
        /// A second listener that speaks WebSocket.
        public var webSocket = false
        /// A listener on a Unix socket.
        public var unixSocket = false
        /// A listener with TLS.
        public var tls: BrokerTLS?
        /// A listener with TLS by pre-shared keys: identities and keys in hexadecimal digits. The identity is the user name.
        public var preSharedKeys: [String: String] = [:]
        /// A listener with TLS that speaks WebSocket.
        public var webSocketTLS: BrokerTLS?
        /// Saves sessions and retained messages at SIGTERM; what is killed has forgotten them.
        public var persistence = false
        /// More lines for the part of the configuration file that concerns all listeners, as `max_inflight_messages 1`.
        public var extraLines: [String] = []

        public init() {}
    }

    public let port: Int
    public let webSocketPort: Int?
    public let tlsPort: Int?
    public let preSharedKeyPort: Int?
    public let webSocketTLSPort: Int?
    public let unixSocketPath: String?
    public let options: Options
    public let server: BrokerServer
    private let scratch: ScratchDirectory

    /// Starts a broker on free ports; it ends with the last reference.
    public static func start(_ options: Options = Options()) async throws -> Mosquitto {
        try Broker.mosquitto.requireInstalled()
        let broker = try await Mosquitto(options)
        try await broker.server.start()
        return broker
    }

    /// Starts a broker with options set in place: `Mosquitto.start { $0.persistence = true }`.
    public static func start(_ configure: (inout Options) -> Void) async throws -> Mosquitto {
        var options = Options()
        configure(&options)
        return try await start(options)
    }

    private init(_ options: Options) async throws {
        self.options = options
        let scratch = try ScratchDirectory("mosquitto")
        self.scratch = scratch
        let port = FreePort.next()
        self.port = port
        webSocketPort = options.webSocket ? FreePort.next() : nil
        tlsPort = options.tls == nil ? nil : FreePort.next()
        preSharedKeyPort = options.preSharedKeys.isEmpty ? nil : FreePort.next()
        webSocketTLSPort = options.webSocketTLS == nil ? nil : FreePort.next()
        unixSocketPath = options.unixSocket ? scratch.file("mosquitto.sock") : nil

        var lines = ["per_listener_settings false", "log_dest stdout", "log_type all", "log_timestamp false"]
        if options.users.isEmpty {
            lines.append("allow_anonymous true")
        } else {
            let file = scratch.file("passwords")
            let entries = options.users.map { "\($0.name):\($0.password)\n" }.joined()
            try scratch.write(entries, to: "passwords")
            try await Tool.run("mosquitto_passwd", ["-U", file]).requireSuccess()
            lines += ["allow_anonymous false", "password_file \(file)"]
        }
        lines.append("persistence \(options.persistence)")
        if options.persistence { lines.append("persistence_location \(scratch.path)/") }
        if !options.preSharedKeys.isEmpty {
            let entries = options.preSharedKeys.map { "\($0.key):\($0.value)\n" }.sorted().joined()
            lines.append("psk_file \(try scratch.write(entries, to: "keys"))")
        }
        lines += options.extraLines
        lines.append("listener \(port) 127.0.0.1")
        if let webSocketPort { lines += ["listener \(webSocketPort) 127.0.0.1", "protocol websockets"] }
        if let unixSocketPath { lines.append("listener 0 \(unixSocketPath)") }
        if let tlsPort, let tls = options.tls {
            lines += try Self.tlsLines(tls, port: tlsPort, copiedTo: scratch, as: "mqtt")
        }
        if let webSocketTLSPort, let tls = options.webSocketTLS {
            lines += try Self.tlsLines(tls, port: webSocketTLSPort, copiedTo: scratch, as: "websockets")
        }
        if let preSharedKeyPort {
            lines += ["listener \(preSharedKeyPort) 127.0.0.1", "psk_hint meters", "use_identity_as_username true"]
        }
        let configuration = try scratch.write(lines.joined(separator: "\n") + "\n", to: "mosquitto.conf")
        try scratch.giveTo(user: "mosquitto")

        let user = options.users.first
        server = BrokerServer(
            Command("mosquitto", ["-c", configuration], directory: scratch.path, user: "mosquitto"), in: scratch,
            isHeavy: false, ports: [webSocketPort, tlsPort, preSharedKeyPort, webSocketTLSPort]
        ) {
            try await Readiness.mqtt(RawConnection.open(port: port), user: user)
        }
    }

    private static func tlsLines(
        _ tls: BrokerTLS, port: Int, copiedTo scratch: ScratchDirectory, as name: String
    ) throws -> [String] {
        try tls.copied(to: scratch, as: name) { files in
            [
                "listener \(port) 127.0.0.1", "protocol \(name)", "cafile \(files.authority)",
                "certfile \(files.certificate)", "keyfile \(files.key)",
                "require_certificate \(tls.requiresClientCertificate)",
            ]
        }
    }
}
