import Foundation
import MQTT
import TestSupport
import Testing

/// All the ways to a Mosquitto.
@Suite(.serialized, .requires(.mosquitto), .turns)
struct MosquittoTransportTests {
    private func client(
        _ url: String, _ version: MQTTVersion = .v3_1_1, _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "test-%%%%")
        configuration.allowSlowBrokers()
        configuration.version = version
        change(&configuration)
        return MQTTClient(url, configuration: configuration)
    }

    /// The error that connecting ends with.
    private func failure(_ client: MQTTClient) async -> MQTTError? {
        do throws(MQTTError) {
            try await client.connect()
        } catch {
            return error
        }
        await client.disconnect()
        return nil
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0])
    func `TLS`(version: MQTTVersion) async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS() }
        let port = try #require(broker.tlsPort)
        let tls = TLSOptions.trusting(certificates)
        for host in ["localhost", "127.0.0.1"] {
            try await roundTrip(client("mqtts://\(host):\(port)", version) { $0.tls = tls }, topic: "tls/\(version)")
        }
        await broker.stop()
    }

    @Test(arguments: ["mqtt", "mqtts", "ws", "wss"])
    func `no will is published of a client that disconnects while messages arrive`(scheme: String) async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start {
            $0.webSocket = true
            $0.tls = certificates.brokerTLS()
            $0.webSocketTLS = certificates.brokerTLS()
        }
        let ports = [
            "mqtt": broker.port, "mqtts": broker.tlsPort, "ws": broker.webSocketPort, "wss": broker.webSocketTLSPort,
        ]
        let url = "\(scheme)://localhost:\(try #require(ports[scheme] ?? nil))"
        let watcher = client("mqtt://127.0.0.1:\(broker.port)")
        try await watcher.connect()
        let wills = try await watcher.subscribe(to: "wills/#", qos: .atLeastOnce)
        let flood = Task {
            let payload = [UInt8](repeating: 0x66, count: 1_000)
            while !Task.isCancelled { try await watcher.publish(payload, to: "flood", qos: .atLeastOnce) }
        }
        for number in 0..<20 {
            let leaving = client(url) {
                $0.clientID = "leaving-\(number)"
                $0.will = MQTTWill("gone".utf8, to: "wills/\(number)", qos: .atLeastOnce)
                $0.tls = .trusting(certificates)
            }
            try await leaving.connect()
            let messages = try await leaving.subscribe(to: "flood", qos: .atMostOnce)
            for try await _ in messages.prefix(3) {}
            await leaving.disconnect()
            withExtendedLifetime(messages) {}
        }
        flood.cancel()
        _ = await flood.result
        try await expectNoWill(wills, watcher)
        await watcher.disconnect()
        await broker.stop()
    }

    /// What the server has to read before it publishes a will was sent before this is called: it has read that when it
    /// answers for the second time.
    private func expectNoWill(_ wills: MQTTSubscription, _ watcher: MQTTClient) async throws {
        for text in ["first", "second"] { try await watcher.publish(text, to: "wills/end", qos: .atLeastOnce) }
        for try await will in wills {
            #expect(will.topic == "wills/end")
            if will.text == "second" { break }
        }
    }

    @Test func `no will is published of a program that ends at once after it has disconnected`() async throws {
        let broker = try await Mosquitto.start()
        let watcher = client("mqtt://127.0.0.1:\(broker.port)")
        try await watcher.connect()
        let wills = try await watcher.subscribe(to: "wills/#", qos: .atLeastOnce)
        let arguments = try ChildArguments(["\(broker.port)"], for: "first-message")
        defer { arguments.remove() }
        for _ in 0..<20 {
            await #expect(processExitsWith: .success) {
                var configuration = MQTTConfiguration(clientID: "first")
                configuration.will = MQTTWill("gone".utf8, to: "wills/1")
                let port = try ChildArguments.received(for: "first-message")[0]
                let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
                try await client.connect()
                try await client.publish("hello", to: "first", qos: .atLeastOnce)
                await client.disconnect()
                exit(0)
            }
        }
        try await expectNoWill(wills, watcher)
        await watcher.disconnect()
        await broker.stop()
    }

    @Test func `TLS with a client certificate, and without the one that is required`() async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS(requiresClientCertificate: true) }
        let url = "mqtts://localhost:\(try #require(broker.tlsPort))"
        var tls = TLSOptions.trusting(certificates)
        let anonymous = client(url) { $0.tls = tls }
        let error = try #require(await failure(anonymous))
        #expect(error.code == .clientCertificateRefused, "\(error) \(String(describing: error.underlying))")
        #expect((error.underlying as? TransportError)?.code == .clientCertificateRefused)
        tls.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.encryptedClientKey),
            passphrase: certificates.passphrase)
        // Twice, since the second would resume a session if that were done here.
        let named = client(url) { $0.tls = tls }
        for _ in 0..<2 { try await roundTrip(named, topic: "named") }
        await broker.stop()
    }

    @Test func `TLS with a pre-shared key`() async throws {
        let key = "0123456789abcdef0123456789ABCDEF"
        let broker = try await Mosquitto.start {
            $0.preSharedKeys = ["meter-7": key]
        }
        let url = "mqtts://localhost:\(try #require(broker.preSharedKeyPort))"
        var tls = TLSOptions()
        tls.preSharedKey = TLSPreSharedKey(identity: "meter-7", hexadecimal: key)
        let named = client(url) { $0.tls = tls }
        for _ in 0..<2 { try await roundTrip(named, topic: "keys") }
        for (identity, digits) in [("meter-8", key), ("meter-7", String(key.reversed()))] {
            tls.preSharedKey = TLSPreSharedKey(identity: identity, hexadecimal: digits)
            let error = try #require(await failure(client(url) { $0.tls = tls }))
            #expect(error.code == .preSharedKeyRefused, "\(error) \(String(describing: error.underlying))")
        }
        await broker.stop()
    }

    @Test func `a pinned key, and a check of our own`() async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS(requiresClientCertificate: true) }
        let url = "mqtts://localhost:\(try #require(broker.tlsPort))"
        var tls = TLSOptions.trusting(certificates)
        tls.identity = TLSIdentity(
            certificates: .file(certificates.client.certificate), key: .file(certificates.client.key))
        tls.pinnedKeys = [String(repeating: "A", count: 43) + "="]
        let refused = try #require(await failure(client(url) { $0.tls = tls }))
        #expect(refused.code == .certificatePinMismatch, "\(refused)")
        let pin = try #require(refused.message.firstMatch(of: /sha256\/[A-Za-z0-9+\/]{43}=/))
        tls.pinnedKeys.append(String(pin.output))
        tls.additionalCheck = { certificates, _ in
            guard certificates.count == 2 else { throw TransportError(.certificateRefused, "The chain is too short.") }
        }
        let accepted = client(url) { $0.tls = tls }
        for _ in 0..<2 { try await roundTrip(accepted, topic: "pinned") }
        await broker.stop()
    }

    @Test func `WebSocket, with TLS and without`() async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start {
            $0.webSocket = true
            $0.webSocketTLS = certificates.brokerTLS()
        }
        // Mosquitto 2.0.11 sends 4 KiB in a tenth of a second through a WebSocket, whoever the client is.
        let some = Array(largeBody[..<32_768])
        let (plain, secure) = (try #require(broker.webSocketPort), try #require(broker.webSocketTLSPort))
        let urls = ["ws://127.0.0.1:\(plain)/mqtt", "http://localhost:\(plain)", "wss://localhost:\(secure)/mqtt"]
        for url in urls {
            try await roundTrip(client(url) { $0.tls = .trusting(certificates) }, topic: "websocket", large: some)
        }
        let old = client(urls[0], .v3_1)
        try await roundTrip(old, topic: "websocket", large: some)
        let new = client(urls[2], .v5_0) {
            $0.tls = .trusting(certificates)
            $0.webSocket.maximumFrameSize = 1000
            $0.webSocket.headers = [("X-Test", "1"), ("Origin", "https://example.com")]
        }
        try await roundTrip(new, topic: "websocket", qos: .exactlyOnce, large: some)
        await broker.stop()
    }

    @Test func `a mebibyte goes out through a WebSocket in one message or in fragments`() async throws {
        let broker = try await Mosquitto.start { $0.webSocket = true }
        let receiver = client("mqtt://127.0.0.1:\(broker.port)")
        try await receiver.connect()
        var messages = try await receiver.subscribe(to: "large", qos: .atLeastOnce).makeAsyncIterator()
        for size in [Int.max, 65_536, 1000] {
            let sender = client("ws://127.0.0.1:\(try #require(broker.webSocketPort))") {
                $0.webSocket.maximumFrameSize = size
            }
            try await sender.connect()
            try await sender.publish(largeBody, to: "large", qos: .atLeastOnce)
            #expect(try await messages.next()?.bytes == largeBody)
            await sender.disconnect()
        }
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `Unix socket`() async throws {
        let broker = try await Mosquitto.start { $0.unixSocket = true }
        let path = try #require(broker.unixSocketPath)
        try await roundTrip(client("unix:\(path)"), topic: "unix")
        await broker.stop()
    }

    @Test func `many connections in a row continue TLS sessions and come back after a restart`() async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start { $0.tls = certificates.brokerTLS() }
        let client = client("mqtts://localhost:\(try #require(broker.tlsPort))") {
            $0.tls = .trusting(certificates)
            $0.reconnect.initialDelay = .milliseconds(50)
        }
        for _ in 0..<5 {
            try await client.connect()
            try await client.publish("x", to: "row", qos: .atLeastOnce)
            await client.disconnect()
        }
        try await client.connect()
        let messages = try await client.subscribe(to: "healed", qos: .atLeastOnce)
        try await broker.restart()
        // The subscription may stand later than the connection: repeat until one gets through.
        let sender = Task {
            while !Task.isCancelled {
                _ = try? await client.publish("1", to: "healed", qos: .atLeastOnce)
                try await Task.sleep(for: .milliseconds(20))
            }
        }
        for try await message in messages {
            #expect(message.text == "1")
            break
        }
        sender.cancel()
        await client.disconnect()
        await broker.stop()
    }

    @Test func `refusals have codes of their own`() async throws {
        let certificates = Certificates()
        let broker = try await Mosquitto.start {
            $0.webSocket = true
            $0.tls = certificates.brokerTLS(certificates.wrongHost)
        }
        let (tlsPort, webSocketPort) = (try #require(broker.tlsPort), try #require(broker.webSocketPort))
        let cases: [(String, TransportError.Code?)] = [
            ("mqtts://localhost:\(tlsPort)", .certificateNameMismatch),
            ("mqtts://localhost:\(broker.port)", .notTLS),
            ("stomp://localhost:\(broker.port)", .badURL),
            ("ws://localhost:\(broker.port)", .webSocketFailed),
            ("mqtt://localhost:\(tlsPort)", nil),
            ("mqtts://localhost:\(webSocketPort)", .notTLS),
        ]
        for (url, code) in cases {
            let error = try #require(
                await failure(client(url) { $0.tls = .trusting(certificates) }), Comment(rawValue: url))
            if let code { #expect((error.underlying as? TransportError)?.code == code, "\(url): \(error)") }
        }
        let missing = client("mqtts://localhost:\(tlsPort)") { $0.tls.libraryPath = "/nowhere/libssl.so.3" }
        let error = try #require(await failure(missing))
        #expect((error.underlying as? TransportError)?.code == .tlsUnavailable)
        await broker.stop()
    }
}
