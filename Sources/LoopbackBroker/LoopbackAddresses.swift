import Transport

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
    }

    /// URLs to hand to clients, one per listener; nil for what is not served.
    ///
    /// Those with TLS name `localhost`, which certificates for this machine tend to be for; the others 127.0.0.1.
    public struct URLs: Sendable, Hashable {
        public let mqtt: String?
        public let stomp: String?
        /// For clients of both protocols, web pages included.
        public let ws: String?
        public let mqtts: String?
        public let stomps: String?
        /// For clients of both protocols, web pages included.
        public let wss: String?
        /// The Unix-domain socket for MQTT.
        public let mqttSocket: String?
        /// The Unix-domain socket for STOMP.
        public let stompSocket: String?

        init(_ ports: Ports, _ options: LoopbackBrokerOptions) {
            mqtt = ports.mqtt.map { "mqtt://127.0.0.1:\($0)" }
            stomp = ports.stomp.map { "stomp://127.0.0.1:\($0)" }
            ws = ports.ws.map { "ws://127.0.0.1:\($0)" }
            mqtts = ports.mqtts.map { "mqtts://localhost:\($0)" }
            stomps = ports.stomps.map { "stomps://localhost:\($0)" }
            wss = ports.wss.map { "wss://localhost:\($0)" }
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

    var sockets: [(path: String, kind: Service.Kind)] {
        [(mqttSocket, Service.Kind.mqtt), (stompSocket, .stomp)].compactMap { path, kind in path.map { ($0, kind) } }
    }
}
