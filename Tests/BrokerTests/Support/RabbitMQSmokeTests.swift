import STOMP
import TestSupport
import Testing

/// Proof that the test support's RabbitMQ does what the tests built on it assume. One after the other: it takes its
/// time to start.
@Suite(.requires(.rabbitMQ), .serialized, .turns)
struct RabbitMQSmokeTests {
    @Test func answersBothProtocolsAndSurvivesAKillAndAFreeze() async throws {
        let made = Certificates()
        let broker = try await RabbitMQ.start {
            $0.users = [BrokerUser("ann", password: "secret")]
            $0.virtualHosts = ["/", "other"]
            $0.tls = made.brokerTLS()
        }
        let connect = "CONNECT\naccept-version:1.2\nhost:other\nlogin:ann\npasscode:secret\n\n\0"
        // A new queue's definition stays in memory for a while, and a kill would take the queue with all that is in it.
        // An orderly restart writes it down.
        let declaring = try await RawConnection.open(port: broker.stompPort)
        try await declaring.send(connect + "SEND\ndestination:/queue/smoke\nreceipt:0\npersistent:true\n\ndeclares\0")
        #expect(try await declaring.receiveFrame().hasPrefix("CONNECTED\n"))
        #expect(try await declaring.receiveFrame().hasPrefix("RECEIPT\n"))
        try await broker.restart()

        let first = try await RawConnection.open(port: broker.stompPort)
        try await first.send(connect)
        #expect(try await first.receiveFrame().hasPrefix("CONNECTED\n"))

        let wrong = try await RawConnection.open(port: broker.stompPort)
        try await wrong.send("CONNECT\naccept-version:1.2\nhost:other\nlogin:ann\npasscode:wrong\n\n\0")
        #expect(try await wrong.receiveFrame().hasPrefix("ERROR\n"))

        let device = try await RawConnection.open(port: #require(broker.mqttPort))
        // CONNECT with a clean session, client identifier "s", user "ann", password "secret".
        try await device.send([
            0x10, 26, 0, 4, 77, 81, 84, 84, 4, 0xC2, 0, 30, 0, 1, 115, 0, 3, 97, 110, 110, 0, 6, 115, 101, 99, 114,
            101, 116,
        ])
        #expect(try await device.receive(atLeast: 4) == [0x20, 2, 0, 0])

        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        configuration.tls = .trusting(made)
        let secure = STOMPClient(
            "stomps://ann:secret@localhost:\(try #require(broker.stompTLSPort))", configuration: configuration)
        try await secure.connect()
        await secure.disconnect()
        #expect(broker.mqttTLSPort != nil)

        await broker.freeze()
        try await first.send("SEND\ndestination:/queue/smoke\nreceipt:1\npersistent:true\n\nkept\0")
        await #expect(throws: TimeoutError.self) { try await first.receiveFrame(timeout: .milliseconds(300)) }
        broker.thaw()
        #expect(try await first.receiveFrame().hasPrefix("RECEIPT\n"))

        await broker.kill()
        #expect(!broker.isRunning)
        #expect(try await first.receiveFrame().isEmpty, "the connection ends with the broker")
        try await broker.restart()
        let second = try await RawConnection.open(port: broker.stompPort)
        try await second.send(connect + "SUBSCRIBE\nid:0\ndestination:/queue/smoke\n\n\0")
        #expect(try await second.receiveFrame().hasPrefix("CONNECTED\n"))
        #expect(try await second.receiveFrame().contains("declares"))
        #expect(try await second.receiveFrame().contains("kept"), "a persistent message survives a kill")
        await broker.stop()
        #expect(!broker.isRunning)
    }

    @Test func theSharedOneStartsOnce() async throws {
        async let one = SharedBrokers.rabbitMQ()
        async let other = SharedBrokers.rabbitMQ()
        #expect(try await one === other)
    }
}
