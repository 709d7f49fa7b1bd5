import MQTT
import MessagingShell
import STOMP
import TestSupport
import Testing

/// Through real proxies, with and without a login.
@Suite(.serialized, .requires(program: "tinyproxy", "microsocks"), .turns)
struct ProxyTests {
    private static let ann = BrokerUser("ann", password: "pass")

    private func option(_ kind: TestProxy.Kind, _ url: String) -> Proxy {
        kind == .tinyproxy ? .http(url) : .socks5(url)
    }

    private func failure(_ url: String, _ proxy: Proxy, timeout: Duration = .seconds(150)) async -> TransportError? {
        var configuration = MQTTConfiguration(clientID: "proxy-%%%%")
        configuration.proxy = proxy
        configuration.connectTimeout = timeout
        let client = MQTTClient(url, configuration: configuration)
        do throws(MQTTError) {
            try await client.connect()
            await client.disconnect()
            return nil
        } catch {
            return error.underlying as? TransportError
        }
    }

    @Test(.requires(.mosquitto, .activeMQ), arguments: TestProxy.Kind.allCases, [ann, nil])
    func `both clients reach their brokers`(kind: TestProxy.Kind, user: BrokerUser?) async throws {
        let proxy = try await TestProxy.start(kind, user: user)
        let (mosquitto, activeMQ) = (try await SharedBrokers.mosquitto(), try await SharedBrokers.activeMQ())
        var mqtt = MQTTConfiguration(clientID: "proxy-%%%%")
        mqtt.allowSlowBrokers()
        mqtt.proxy = option(kind, proxy.url())
        // A name, which the proxy looks up.
        try await roundTrip(
            MQTTClient("mqtt://localhost:\(mosquitto.port)", configuration: mqtt), topic: "proxy/\(proxy.port)")
        var stomp = STOMPConfiguration()
        stomp.allowSlowBrokers()
        stomp.proxy = option(kind, proxy.url())
        try await roundTrip(
            STOMPClient("stomp://127.0.0.1:\(activeMQ.stompPort)", configuration: stomp),
            queue: "/queue/proxy-\(proxy.port)")
        await proxy.stop()
    }

    @Test(.requires(.mosquitto), arguments: TestProxy.Kind.allCases)
    func `TLS and WebSocket run through it, and their names are still verified`(kind: TestProxy.Kind) async throws {
        let proxy = try await TestProxy.start(kind, user: Self.ann)
        let certificates = Certificates()
        let broker = try await Mosquitto.start { $0.webSocketTLS = certificates.brokerTLS() }
        let port = try #require(broker.webSocketTLSPort)
        var configuration = MQTTConfiguration(clientID: "proxy-%%%%")
        configuration.allowSlowBrokers()
        configuration.proxy = option(kind, proxy.url())
        configuration.tls = .trusting(certificates)
        // Not the long conversation of the other tests, which takes half a minute here.
        let client = MQTTClient("wss://localhost:\(port)", configuration: configuration)
        try await client.connect()
        let messages = try await client.subscribe(to: "tunnel", qos: .atLeastOnce)
        try await client.publish(Array(largeBody.prefix(50_000)), to: "tunnel", qos: .atLeastOnce)
        for try await message in messages {
            #expect(message.bytes == Array(largeBody.prefix(50_000)))
            break
        }
        await client.disconnect()
        configuration.tls.serverName = "elsewhere.example"
        let misled = MQTTClient("wss://localhost:\(port)", configuration: configuration)
        await #expect { try await misled.connect() } throws: {
            (($0 as? MQTTError)?.underlying as? TransportError)?.code == .certificateNameMismatch
        }
        await proxy.stop()
        await broker.stop()
    }

    @Test(.requires(.mosquitto), arguments: TestProxy.Kind.allCases)
    func `what a proxy refuses is told by its name`(kind: TestProxy.Kind) async throws {
        let proxy = try await TestProxy.start(kind, user: Self.ann, ports: [1883])
        let broker = try await SharedBrokers.mosquitto()
        let url = "mqtt://127.0.0.1:\(broker.port)"
        let wrong = await failure(url, option(kind, proxy.url(as: BrokerUser("ann", password: "guess"))))
        #expect(wrong?.code == .proxyCredentialsRefused, "\(wrong?.message ?? "nothing")")
        #expect(wrong?.message.contains("guess") == false)
        let nobody = await failure(url, option(kind, proxy.anonymousURL))
        #expect(nobody?.code == .proxyCredentialsRefused, "\(nobody?.message ?? "nothing")")
        switch kind {
        case .tinyproxy:
            let forbidden = await failure(url, option(kind, proxy.url()))
            #expect(forbidden?.code == .proxyRefused && forbidden?.message.contains("403") == true)
        case .microsocks:
            let closed = await failure("mqtt://127.0.0.1:\(FreePort.next())", option(kind, proxy.url()))
            #expect(closed?.code == .proxyRefused && closed?.message.contains("connection refused") == true)
        }
        await proxy.stop()
    }

    @Test func `names are the proxy's to look up, and a proxy of no use is told from a broker of none`() async throws {
        let proxy = try await TestProxy.start(.tinyproxy)
        let unknown = await failure("mqtt://broker.invalid", .http(proxy.url()))
        #expect(unknown?.code == .proxyRefused, "\(unknown?.message ?? "nothing")")
        await proxy.stop()
        let url = "mqtt://localhost:1"
        let gone = await failure(url, .http(proxy.url()))
        #expect(gone?.code == .connectionRefused && gone?.message.contains("proxy") == true)
        let garbage = try BadServer.start(.garbage)
        for option in [Proxy.http("http://127.0.0.1:\(garbage.port)"), .socks5("socks5://127.0.0.1:\(garbage.port)")] {
            let error = await failure(url, option)
            #expect(error?.code == .proxyFailed, "\(error?.message ?? "nothing")")
        }
        let mute = try BadServer.start(.mute)
        let silent = await failure(url, .socks5("127.0.0.1:\(mute.port)"), timeout: .seconds(3))
        #expect(silent?.code == .timedOut && silent?.message.contains("proxy") == true)
    }
}
