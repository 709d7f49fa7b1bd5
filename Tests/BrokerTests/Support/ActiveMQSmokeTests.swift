import TestSupport
import Testing

/// Proof that the test support's ActiveMQ does what the tests built on it assume.
@Suite(.serialized, .turns)
struct ActiveMQSmokeTests {
    @Test(.requires(.activeMQ)) func answersBothProtocolsAndSurvivesAKillAndAFreeze() async throws {
        let broker = try await ActiveMQ.start {
            $0.users = [BrokerUser("ann", password: "secret")]
            $0.persistence = true
        }
        let connect = "CONNECT\naccept-version:1.2\nhost:localhost\nlogin:ann\npasscode:secret\n\n\0"
        let first = try await RawConnection.open(port: broker.stompPort)
        try await first.send(connect)
        #expect(try await first.receiveFrame().hasPrefix("CONNECTED\n"))

        let wrong = try await RawConnection.open(port: broker.stompNIOPort)
        try await wrong.send("CONNECT\naccept-version:1.2\nhost:localhost\nlogin:ann\npasscode:wrong\n\n\0")
        #expect(try await wrong.receiveFrame().hasPrefix("ERROR\n"))

        await broker.freeze()
        try await first.send("SEND\ndestination:/queue/smoke\nreceipt:1\npersistent:true\n\nkept\0")
        await #expect(throws: TimeoutError.self) { try await first.receiveFrame(timeout: .milliseconds(300)) }
        broker.thaw()
        #expect(try await first.receiveFrame().hasPrefix("RECEIPT\n"))

        await broker.kill()
        #expect(!broker.isRunning)
        try await broker.restart()
        let second = try await RawConnection.open(port: broker.stompPort)
        try await second.send(connect + "SUBSCRIBE\nid:0\nack:auto\ndestination:/queue/smoke\n\n\0")
        #expect(try await second.receiveFrame().hasPrefix("CONNECTED\n"))
        #expect(try await second.receiveFrame().contains("kept"), "a persistent message survives a kill")
        await broker.stop()
        #expect(!broker.isRunning)
    }

    @Test(.requires(.activeMQWithMQTT), .requires(program: "mosquitto_pub"))
    func carriesAnMQTTMessageToASTOMPTopic() async throws {
        let broker = try await SharedBrokers.activeMQ()
        let subscriber = try await RawConnection.open(port: broker.stompPort)
        try await subscriber.send(
            "CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"
                + "SUBSCRIBE\nid:0\ndestination:/topic/smoke.*.place\nreceipt:1\n\n\0")
        #expect(try await subscriber.receiveFrame().hasPrefix("CONNECTED\n"))
        #expect(try await subscriber.receiveFrame().hasPrefix("RECEIPT\n"))
        try await MosquittoClients.publish("here", to: "smoke/B/place", port: broker.mqttPort, ["-q", "1"])
        let message = try await subscriber.receiveFrame()
        #expect(message.hasPrefix("MESSAGE\n") && message.contains("here"))
    }
}
