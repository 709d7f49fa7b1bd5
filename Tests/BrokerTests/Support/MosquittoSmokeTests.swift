import TestSupport
import Testing

/// Proof that the test support's Mosquitto does what the tests built on it assume.
@Suite(.requires(.mosquitto), .turns)
struct MosquittoSmokeTests {
    /// CONNECT for protocol level 4 with client identifier "s" and a persistent session.
    static let persistentConnect: [UInt8] = [0x10, 13, 0, 4, 77, 81, 84, 84, 4, 0x00, 0, 0, 0, 1, 115]

    @Test func answersAHandWrittenConnect() async throws {
        let broker = try await Mosquitto.start()
        let connection = try await RawConnection.open(port: broker.port)
        try await connection.send(Self.persistentConnect)
        #expect(try await connection.receive(atLeast: 4) == [0x20, 2, 0, 0])
    }

    @Test func remembersSessionsAfterStopAndForgetsThemAfterKill() async throws {
        let broker = try await Mosquitto.start { $0.persistence = true }
        let first = try await RawConnection.open(port: broker.port)
        try await first.send(Self.persistentConnect)
        #expect(try await first.receive(atLeast: 4) == [0x20, 2, 0, 0])
        // SUBSCRIBE to "a", without which there is nothing to save.
        try await first.send([0x82, 6, 0, 1, 0, 1, 97, 1])
        #expect(try await first.receive(atLeast: 5) == [0x90, 3, 0, 1, 1])

        try await broker.restart()
        let second = try await RawConnection.open(port: broker.port)
        try await second.send(Self.persistentConnect)
        #expect(try await second.receive(atLeast: 4) == [0x20, 2, 1, 0], "session present")

        let fresh = try await Mosquitto.start { $0.persistence = true }
        let third = try await RawConnection.open(port: fresh.port)
        try await third.send(Self.persistentConnect)
        #expect(try await third.receive(atLeast: 4) == [0x20, 2, 0, 0])
        await fresh.kill()
        #expect(!fresh.isRunning)
        await #expect(throws: SystemCallError.self) { try await RawConnection.open(port: fresh.port) }
        #expect(try await third.receive(atLeast: 1).isEmpty, "the connection ends with the broker")
        try await fresh.restart()
        let fourth = try await RawConnection.open(port: fresh.port)
        try await fourth.send(Self.persistentConnect)
        #expect(try await fourth.receive(atLeast: 4) == [0x20, 2, 0, 0], "no session")
    }

    @Test func saysNothingWhileFrozenAndAnswersWhenThawed() async throws {
        let broker = try await Mosquitto.start()
        let connection = try await RawConnection.open(port: broker.port)
        try await connection.send(Self.persistentConnect)
        _ = try await connection.receive(atLeast: 4)
        await broker.freeze()
        try await connection.send([0xC0, 0])
        await #expect(throws: TimeoutError.self) {
            try await connection.receive(atLeast: 2, timeout: .milliseconds(300))
        }
        broker.thaw()
        #expect(try await connection.receive(atLeast: 2) == [0xD0, 0])
    }

    @Test func refusesAWrongPasswordAndServesAUnixSocketAndAWebSocket() async throws {
        let broker = try await Mosquitto.start {
            $0.users = [BrokerUser("ann", password: "secret")]
            $0.unixSocket = true
            $0.webSocket = true
        }
        // CONNECT with a clean session, client identifier "s", user "ann" and a password.
        func connect(_ password: String) -> [UInt8] {
            let tail: [UInt8] = [0, 3, 97, 110, 110, 0, UInt8(password.utf8.count)] + Array(password.utf8)
            return [0x10, UInt8(13 + tail.count), 0, 4, 77, 81, 84, 84, 4, 0xC2, 0, 30, 0, 1, 115] + tail
        }
        let path = try #require(broker.unixSocketPath)
        let right = try await RawConnection.open(unix: path)
        try await right.send(connect("secret"))
        #expect(try await right.receive(atLeast: 4) == [0x20, 2, 0, 0])
        let wrong = try await RawConnection.open(port: broker.port)
        try await wrong.send(connect("wrong"))
        #expect(try await wrong.receive(atLeast: 4) == [0x20, 2, 0, 5])

        let upgrade = try await RawConnection.open(port: #require(broker.webSocketPort))
        try await upgrade.send(
            "GET /mqtt HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n"
                + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
        let answer = try await upgrade.receive { $0.suffix(4) == Array("\r\n\r\n".utf8)[...] }
        #expect(String(decoding: answer, as: UTF8.self).contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    }

    @Test(.requires(program: "mosquitto_sub", "mosquitto_pub"))
    func carriesAMessageBetweenItsOwnClients() async throws {
        let broker = try await Mosquitto.start()
        let subscriber = try await MosquittoClients.subscribe(to: "greeting/#", port: broker.port, ["-q", "1"])
        try await MosquittoClients.publish("hello", to: "greeting/all", port: broker.port, ["-q", "1"])
        let line = try await subscriber.waitForLine(containing: "greeting/all hello")
        #expect(line.text == "greeting/all hello")
    }

    @Test(.requires(program: "mosquitto_pub"))
    func showsItsCertificateAndAsksForTheClients() async throws {
        let made = Certificates()
        let broker = try await Mosquitto.start {
            $0.tls = made.brokerTLS(requiresClientCertificate: true)
            $0.webSocketTLS = made.brokerTLS()
        }
        let port = try #require(broker.tlsPort)
        #expect(broker.webSocketTLSPort != nil)
        let trust = ["--cafile", made.authority.certificate]
        let identity = ["--cert", made.client.certificate, "--key", made.client.key]
        let publish = ["-h", "127.0.0.1", "-p", "\(port)", "-t", "a", "-m", "b", "-q", "1"]
        #expect(try await Tool.run("mosquitto_pub", publish + trust + identity).succeeded)
        #expect(try await !Tool.run("mosquitto_pub", publish + trust).succeeded)
    }
}
