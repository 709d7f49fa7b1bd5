import MQTT
import STOMP
import TestSupport
import Testing

/// All the ways to RabbitMQ and ActiveMQ.
@Suite(.serialized, .turns)
struct STOMPTransportTests {
    private func client(_ url: String, _ change: (inout STOMPConfiguration) -> Void = { _ in }) -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        change(&configuration)
        return STOMPClient(url, configuration: configuration)
    }

    @Test(.requires(.rabbitMQ)) func `RabbitMQ over TLS and WebSocket, in both protocols`() async throws {
        let certificates = Certificates()
        let broker = try await SharedBrokers.rabbitMQ()
        let login = "guest:guest@"
        let secure = client("stomps://\(login)localhost:\(try #require(broker.stompTLSPort))") {
            $0.tls = .trusting(certificates)
        }
        for number in 0..<2 { try await roundTrip(secure, queue: "/queue/tls-\(number)") }

        let webURL = "ws://\(login)127.0.0.1:\(broker.webStompPort)/ws"
        let binary = client(webURL) { $0.webSocket.sendsText = false }
        try await roundTrip(binary, queue: "/queue/web-binary")
        // A large body that is text, and one that is not.
        try await roundTrip(client(webURL), queue: "/queue/web-text", large: largeBody.map { $0 & 0x3F | 0x20 })
        try await roundTrip(client(webURL), queue: "/queue/web-mixed")
        let page = client("http://\(login)127.0.0.1:\(broker.webStompPort)/nothing-here")
        do throws(STOMPError) {
            try await page.connect()
            Issue.record("there is a WebSocket at /nothing-here")
        } catch {
            #expect((error.underlying as? TransportError)?.code == .webSocketRefused)
            #expect(error.message.contains("404"))
        }

        var configuration = MQTTConfiguration(clientID: "test-%%%%")
        configuration.allowSlowBrokers()
        configuration.tls = .trusting(certificates)
        let webMQTT = MQTTClient(
            "ws://\(login)127.0.0.1:\(try #require(broker.webMQTTPort))/ws", configuration: configuration)
        try await roundTrip(webMQTT, topic: "web-mqtt")
        let secureMQTT = MQTTClient(
            "mqtts://\(login)localhost:\(try #require(broker.mqttTLSPort))", configuration: configuration)
        try await roundTrip(secureMQTT, topic: "secure-mqtt")
    }

    @Test(.requires(.activeMQ), arguments: [false, true])
    func `ActiveMQ over TLS`(requiresClientCertificate: Bool) async throws {
        let certificates = Certificates()
        let broker = try await ActiveMQ.start {
            $0.tls = certificates.brokerTLS(requiresClientCertificate: requiresClientCertificate)
        }
        let url = "stomps://localhost:\(try #require(broker.stompTLSPort))"
        let named = client(url) {
            $0.tls = .trusting(certificates)
            $0.tls.identity = TLSIdentity(
                certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
        }
        for number in 0..<2 { try await roundTrip(named, queue: "/queue/tls-\(number)") }
        let anonymous = client(url) { $0.tls = .trusting(certificates) }
        if requiresClientCertificate {
            do throws(STOMPError) {
                try await anonymous.connect()
                Issue.record("no certificate was needed")
            } catch {
                #expect((error.underlying as? TransportError)?.code == .clientCertificateRefused, "\(error)")
            }
        } else {
            for number in 0..<2 { try await roundTrip(anonymous, queue: "/queue/tls-\(number)") }
        }
        await broker.stop()
    }
}
