import MQTT
import MessagingShell

extension Scenario {
    /// Proxies that misbehave; the listener is the proxy, and no server is ever reached.
    static let proxyAll: [Scenario] = [
        http("frozen") { try $0.freeze() },
        http("closes-after-the-request") { _ = try $0.receive() },
        http("half-closes-after-the-request") {
            _ = try $0.receive()
            $0.closeHalf()
            try $0.freeze(reads: true)
        },
        http("garbage") { try $0.flood([0xFF, 0x00, 0xAA]) },
        http("endless-status-line") { try $0.flood(Array("HTTP/1.1 200".utf8)) },
        http("endless-header-line") {
            try $0.send("HTTP/1.1 200 OK\r\nX-Long: ")
            try $0.flood(Array("long".utf8))
        },
        http("endless-head") {
            try $0.send("HTTP/1.1 200 OK\r\n")
            try $0.flood(Array("X-More: yes\r\n".utf8))
        },
        http("endless-100-continue") { try $0.flood(Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) },
        http("slow-loris-head") {
            try $0.drip(Array(("HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 50)).utf8))
        },
        http("wants-credentials-for-ever", Bounds(connections: 3)) { peer in
            while true {
                _ = try peer.receive()
                try peer.send(
                    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\n"
                        + "Content-Length: 0\r\n\r\n")
            }
        },
        http("redirects") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0\r\n\r\n")
        },
        http("refusal-with-an-endless-body") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 503 Service Unavailable\r\n\r\n")
            try $0.flood(Array("sorry ".utf8))
        },
        http("tunnel-of-garbage") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 200 OK\r\n\r\n")
            try $0.flood([0xFF, 0x00, 0xAA])
        },
        http("frozen-tunnel") {
            _ = try $0.receive()
            try $0.send("HTTP/1.1 200 OK\r\n\r\n")
            try $0.freeze()
        },
        socks("frozen") { try $0.freeze() },
        socks("closes-after-the-greeting") { _ = try $0.receive() },
        socks("garbage") { try $0.flood([0xFF, 0x00, 0xAA]) },
        socks("takes-no-method") {
            _ = try $0.receive()
            try $0.send([5, 0xFF])
            try $0.freeze(reads: true)
        },
        socks("wants-a-method-not-offered") {
            _ = try $0.receive()
            try $0.send([5, 9])
            try $0.freeze(reads: true)
        },
        socks("greetings-forever") { try $0.flood([5, 0]) },
        socks("slow-loris-reply") {
            _ = try $0.receive()
            try $0.send([5, 0])
            _ = try $0.receive()
            try $0.drip([5, 0, 0, 3, 255] + [UInt8](repeating: 0x61, count: 257))
        },
        socks("unknown-reply") {
            _ = try $0.receive()
            try $0.send([5, 0])
            _ = try $0.receive()
            try $0.send([5, 99, 0, 1, 0, 0, 0, 0, 0, 0])
            try $0.freeze(reads: true)
        },
        socks("unknown-address-type") {
            _ = try $0.receive()
            try $0.send([5, 0])
            _ = try $0.receive()
            try $0.flood([5, 0, 0, 77])
        },
        socks("frozen-tunnel") {
            _ = try $0.receive()
            try $0.send([5, 0])
            _ = try $0.receive()
            try $0.send([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            try $0.freeze()
        },
    ]

    private static func http(_ name: String, _ bounds: Bounds = .ends, serve: @escaping Listener.Script) -> Scenario {
        mqtt("http-\(name)", bounds, url: "mqtt://broker.invalid:1883") { configuration, port in
            configuration.proxy = .http("http://me:secret@127.0.0.1:\(port)")
        } serve: {
            try serve($0)
        }.named("proxy")
    }

    private static func socks(_ name: String, serve: @escaping Listener.Script) -> Scenario {
        mqtt("socks-\(name)", url: "mqtt://broker.invalid:1883") { configuration, port in
            configuration.proxy = .socks5("socks5://127.0.0.1:\(port)")
        } serve: {
            try serve($0)
        }.named("proxy")
    }
}

extension Scenario {
    /// Every scenario, in the order in which the campaign runs them.
    static let all =
        mqttConnecting + mqttRedirecting + mqttSession + mqttExchanges + stompAll + webSocketAll + tlsAll + proxyAll
}
