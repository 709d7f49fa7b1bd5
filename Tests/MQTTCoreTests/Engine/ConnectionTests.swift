import MQTTCore
import TestSupport
import Testing

@Suite("Engine: connecting and closing", .heavy)
struct ConnectionTests {
    @Test(arguments: MQTTVersion.allCases)
    func `a client connects to a server in each version`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        try pair.connect()
        #expect(pair.client.engine.phase == .connected)
        #expect(pair.server.engine.phase == .connected)
        #expect(pair.server.engine.version == version)
        #expect(pair.client.info?.sessionPresent == false)
        #expect(pair.client.types == [.connect])
        #expect(pair.server.types == [.connack])
    }

    @Test func `nothing is published before CONNACK`() throws {
        let pair = EnginePair()
        try pair.open()
        let error = #expect(throws: MQTTUsageError.self) { try pair.publish("early") }
        #expect(error?.code == .notConnected)
        #expect(try pair.publish("queued", qos: .atLeastOnce, token: 1) == .queued)
        pair.settle()
        #expect(pair.server.texts == ["queued"])
        #expect(pair.client.types == [.connect, .publish])
    }

    @Test func `a refusal is reported and the connection closes`() throws {
        let pair = EnginePair(version: .v3_1_1)
        pair.serverAnswers = false
        try pair.connect()
        try pair.server.engine.refuseConnection(.notAuthorized, at: pair.now)
        pair.settle()
        guard case .connectionRefused(let connack) = pair.client.events.last else {
            Issue.record("no refusal")
            return
        }
        #expect(connack.reasonCode == .notAuthorized)
        #expect(pair.client.shouldClose)
        #expect(pair.server.engine.phase == .closing)
    }

    @Test func `CONNACK that does not come is noticed at the deadline and not before`() throws {
        let pair = EnginePair(client: { $0.connectTimeout = 5_000_000_000 })
        pair.serverAnswers = false
        try pair.connect()
        #expect(pair.client.engine.nextDeadline == pair.now + 5_000_000_000)
        pair.advance(seconds: 4.9)
        #expect(pair.client.failure == nil)
        pair.advance(seconds: 0.1)
        #expect(pair.client.failure == .connectTimeout)
        #expect(pair.client.shouldClose)
        pair.advance(seconds: 10)
        #expect(pair.client.events.count == 1)
    }

    @Test func `a server waits for CONNECT no longer than its timeout`() throws {
        let pair = EnginePair(server: { $0.connectTimeout = 1_000_000_000 })
        try pair.open()
        pair.advance(seconds: 1)
        #expect(pair.server.failure == .connectTimeout)
    }

    @Test func `a packet before CONNECT ends the connection [MQTT-3.1.0-1]`() throws {
        let pair = EnginePair()
        try pair.open()
        pair.client.engine.output = []
        try pair.inject(.pingreq, into: pair.server)
        #expect(pair.server.violation?.clause == "MQTT-3.1.0-1")
        #expect(pair.server.shouldClose)
    }

    @Test func `a second CONNECT is a protocol error [MQTT-3.1.0-2]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.inject(.connect(.init(clientID: "x")), into: pair.server)
        #expect(pair.server.violation?.clause == "MQTT-3.1.0-2")
        pair.flush()
        #expect(pair.server.sent.last == .disconnect(.init(reasonCode: .protocolError)))
    }

    @Test func `a packet before CONNACK ends the connection [MQTT-3.2.0-1]`() throws {
        let pair = EnginePair()
        pair.serverAnswers = false
        try pair.connect()
        try pair.inject(.publish(.init(topic: "t", payload: [])), into: pair.client)
        #expect(pair.client.violation?.clause == "MQTT-3.2.0-1")
    }

    @Test func `DISCONNECT is the last packet and the session's messages stay [MQTT-3.14.4-1]`() throws {
        let pair = EnginePair.persistent()
        try pair.connect()
        try pair.client.engine.disconnect(at: pair.now)
        #expect(throws: MQTTUsageError.self) { try pair.publish("late") }
        #expect(try pair.publish("kept", qos: .atLeastOnce) == .queued)
        #expect(throws: MQTTUsageError.self) { try pair.client.engine.ping(at: pair.now) }
        pair.settle()
        #expect(pair.client.types == [.connect, .disconnect])
        guard case .disconnectReceived(let disconnect) = pair.server.events.last else {
            Issue.record("no DISCONNECT")
            return
        }
        #expect(disconnect.reasonCode == .normalDisconnection)
        #expect(pair.server.shouldClose)
        pair.cut()
        try pair.connect()
        #expect(pair.server.texts == ["kept"])
    }

    @Test func `DISCONNECT may not revive a session that CONNECT let die [MQTT 5.0 3.14.2.2.2]`() throws {
        let pair = EnginePair()
        try pair.connect()
        let error = #expect(throws: MQTTUsageError.self) {
            try pair.client.engine.disconnect(
                properties: [MQTTProperty(.sessionExpiryInterval, .integer(60))], at: pair.now)
        }
        #expect(error?.code == .propertyNotAllowed)
        try pair.inject(
            .disconnect(.init(properties: [MQTTProperty(.sessionExpiryInterval, .integer(60))])), into: pair.server)
        #expect(pair.server.violation?.reasonCode == .protocolError)
    }

    @Test func `a server's DISCONNECT is reported with its reason`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.server.engine.disconnect(reason: .serverShuttingDown, at: pair.now)
        pair.settle()
        guard case .disconnectReceived(let disconnect) = pair.client.events.last else {
            Issue.record("no DISCONNECT")
            return
        }
        #expect(disconnect.reasonCode == .serverShuttingDown)
        #expect(pair.client.shouldClose)
    }

    @Test func `before 5.0 an empty client identifier needs a clean session [MQTT-3.1.3-7]`() {
        let pair = EnginePair(
            version: .v3_1_1,
            client: {
                $0.clientID = ""
                $0.cleanStart = false
            })
        let error = #expect(throws: MQTTUsageError.self) { try pair.connect() }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func `before 5.0 a password needs a user name [MQTT-3.1.2-22]`() throws {
        let old = EnginePair(version: .v3_1_1, client: { $0.password = [1] })
        let error = #expect(throws: MQTTUsageError.self) { try old.connect() }
        #expect(error?.code == .invalidConfiguration)
        let new = EnginePair(client: { $0.password = [1] })
        try new.connect()
        #expect(new.client.engine.phase == .connected)
    }

    @Test func `the assigned client identifier is adopted [MQTT-3.2.2-16]`() throws {
        let pair = EnginePair(client: { $0.clientID = "" })
        pair.connackProperties.assignedClientIdentifier = "given"
        try pair.connect()
        #expect(pair.client.info?.clientID == "given")
        pair.cut()
        try pair.connect()
        guard case .connect(let connect)? = pair.client.sent.last(where: { $0.type == .connect }) else {
            Issue.record("no CONNECT was sent")
            return
        }
        #expect(connect.clientID == "given")
    }

    @Test func `malformed bytes end a 5.0 connection with a reason [MQTT-4.13.1-1]`() throws {
        let pair = EnginePair()
        try pair.connect()
        pair.client.inbox = [0x36, 0x03, 0, 1, 0x61]
        pair.deliver(to: pair.client)
        pair.flush()
        #expect(pair.client.violation?.reasonCode == .malformedPacket)
        #expect(pair.client.sent.last == .disconnect(.init(reasonCode: .malformedPacket)))
        #expect(pair.client.shouldClose)
    }

    @Test func `malformed bytes end a 3.1.1 connection without a word [MQTT-4.8.0-1]`() throws {
        let pair = EnginePair(version: .v3_1_1)
        try pair.connect()
        pair.client.inbox = [0x36, 0x03, 0, 1, 0x61]
        pair.deliver(to: pair.client)
        pair.flush()
        #expect(pair.client.types == [.connect])
        #expect(pair.client.shouldClose)
    }

    @Test func `a packet above our maximum is refused from its header alone`() throws {
        let pair = EnginePair(client: { $0.maximumPacketSize = 100 })
        try pair.connect()
        pair.client.inbox = [0x30, 0x80, 0x01]
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.reasonCode == .packetTooLarge)
    }

    @Test func `every split of the bytes gives the same`() throws {
        for size in 1...7 {
            let pair = EnginePair()
            try pair.open()
            for index in 0..<3 { try pair.publish("\(index)", qos: .atLeastOnce) }
            var quiet = 0
            while quiet < 2 {
                pair.flush()
                let before = pair.server.inbox.count + pair.client.inbox.count
                // What was not consumed is presented again with more behind it.
                var window = size
                while pair.server.inbox.count >= window {
                    let left = pair.server.inbox.count
                    pair.deliver(to: pair.server, atMost: window)
                    window = pair.server.inbox.count == left ? window + size : size
                }
                pair.deliver(to: pair.server)
                pair.flush()
                pair.deliver(to: pair.client)
                quiet = before == 0 ? quiet + 1 : 0
            }
            #expect(pair.server.texts == ["0", "1", "2"])
            #expect(pair.client.completions.count == 3)
        }
    }

    @Test(arguments: [1, 2, 7]) func `a server that answers in TLS is recognised, however its alert is cut`(
        length: Int
    ) throws {
        let pair = EnginePair()
        try pair.open()
        pair.client.inbox = [0x15, 3, 1, 0, 2, 2, 10]
        pair.deliver(to: pair.client, atMost: length)
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.message.contains("TLS") == true)
        #expect(pair.client.shouldClose)
    }

    @Test(arguments: [1, 2, 5, 13, 100]) func `a web server is recognised by its status line, however that is cut`(
        length: Int
    ) throws {
        let pair = EnginePair()
        try pair.open()
        pair.client.inbox = Array("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n".utf8)
        pair.deliver(to: pair.client, atMost: length)
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.message.contains("\"HTTP/1.1 400 Bad Request\"") == true)
        #expect(pair.client.shouldClose)
    }

    @Test(arguments: [
        ("SSH-2.0-OpenSSH_9.2\r\n", "SSH-2.0-OpenSSH_9.2"),
        ("<!DOCTYPE HTML>\n<html lang=\"en\">\n<head><title>Error</title></head>\n", "<!DOCTYPE HTML>"),
        ("Hello", "Hello"), (String(repeating: "x", count: 200), String(repeating: "x", count: 80)),
    ]) func `the beginning of an answer in text is in the error`(answer: String, line: String) throws {
        let pair = EnginePair()
        try pair.open()
        pair.client.inbox = Array(answer.utf8)
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.message.contains("\"\(line)\"") == true)
        // After CONNACK it is a packet like any other.
        let accepted = EnginePair()
        try accepted.connect()
        accepted.client.inbox = Array(answer.utf8)
        accepted.deliver(to: accepted.client)
        #expect(accepted.client.violation?.message.contains("text") == false)
    }

    @Test(
        arguments: [
            [0x48, 0xFF, 0x54, 0x54, 0x50], [0x48, 0x0A], [0x41, 0x42, 0x43, 0x0A], [0x48, 0x54, 0x54, 0x00],
        ] as [[UInt8]])
    func `an answer that is no text is the violation that it was`(bytes: [UInt8]) throws {
        let pair = EnginePair()
        try pair.open()
        pair.client.inbox = bytes
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.message.contains("text") == false)
    }

    @Test func `a server does not tell a client that it answers in TLS`() throws {
        let pair = EnginePair()
        try pair.open()
        pair.server.inbox = [0x15, 3, 1]
        pair.deliver(to: pair.server)
        #expect(pair.server.violation?.message.contains("TLS") == false)
    }
}
