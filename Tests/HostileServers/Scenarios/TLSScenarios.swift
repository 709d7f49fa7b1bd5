import MQTT
import Transport

extension Scenario {
    /// Servers without a certificate: what can go wrong before TLS has begun.
    static let tlsAll: [Scenario] = [
        tls("never-accepts", serve: nil),
        tls("frozen-after-client-hello") {
            _ = try $0.receive()
            try $0.freeze()
        },
        tls("closes-after-client-hello") { _ = try $0.receive() },
        tls("resets-after-client-hello") {
            _ = try $0.receive()
            $0.reset()
        },
        tls("half-closes-after-client-hello") {
            _ = try $0.receive()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        tls("garbage") { try $0.flood([0xFF, 0x00, 0xAA]) },
        tls("speaks-http") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 400 Bad Request\r\n\r\n")
        },
        tls("speaks-mqtt") {
            _ = try $0.receive()
            try $0.send(MQTTBytes.connack)
        },
        tls("alerts-forever") { try $0.flood([21, 3, 3, 0, 2, 1, 0]) },
        tls("empty-records-forever") { try $0.flood([22, 3, 3, 0, 0]) },
        tls("change-cipher-spec-forever") { try $0.flood([20, 3, 3, 0, 1, 1]) },
        tls("a-handshake-message-of-16-MB") { peer in
            _ = try peer.receive()
            let content = [UInt8](repeating: 0, count: 16_384)
            try peer.send([22, 3, 3, 0x40, 0, 2, 0xFF, 0xFF, 0xFF] + content.dropFirst(4))
            try peer.flood([22, 3, 3, 0x40, 0] + content)
        },
        tls("a-record-of-64-KB") {
            _ = try $0.receive()
            try $0.send([22, 3, 3, 0xFF, 0xFF] + [UInt8](repeating: 0, count: 65_535))
            try $0.freeze(reads: true)
        },
        tls("slow-loris-record") {
            _ = try $0.receive()
            try $0.drip([22, 3, 3, 0x40, 0] + [UInt8](repeating: 0, count: 200))
        },
        tls("hello-request-forever") { try $0.flood([22, 3, 3, 0, 4, 0, 0, 0, 0]) },
    ]

    private static func tls(_ name: String, serve: Listener.Script?) -> Scenario {
        mqtt(name, url: "mqtts://127.0.0.1:PORT", serve: serve).named("tls")
    }
}
