import ClientTestSupport
import LoopbackBroker
import MQTTCore
import MQTTRecords
import MessagingShell
import MessagingWire
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite(.turns)
struct LogTests {
    private func configuration(_ version: MQTTVersion) -> MQTTConfiguration {
        var configuration = MQTTConfiguration(clientID: "c")
        configuration.version = version
        configuration.fallbackVersions = []
        configuration.credentials = Credentials(userName: "ann", password: "hush-hush")
        return configuration
    }

    /// A conversation with every type of packet that a client and a server exchange without enhanced authentication.
    private func converse(_ client: MQTTClient, _ log: FrameLog) async throws {
        try await client.connect()
        let messages = try await client.subscribe(to: "kitchen/+", qos: .exactlyOnce)
        let payloads = ["on", "off", String(repeating: "long ", count: 1000)]
        for (payload, qos) in zip(payloads, [QoS.atMostOnce, .atLeastOnce, .exactlyOnce]) {
            try await client.publish(payload, to: "kitchen/light", qos: qos)
        }
        var count = 0
        for try await _ in messages {
            count += 1
            if count == 3 { break }
        }
        try client.core.link.perform { try $0.engine.ping(at: MonotonicClock.now) }
        // Both exchanges of QoS 2 have come to their end, and the ping to its answer.
        let isComplete = await eventually {
            let types = log.snapshot().frames.map(\.type)
            return types.contains("PINGRESP") && types.count { $0 == "PUBCOMP" } == 2
        }
        #expect(isComplete)
        try await messages.unsubscribe()
        await client.disconnect()
    }

    /// Puts bytes into a log as a client's inspector does.
    private func keep(
        _ bytes: [UInt8], version: MQTTVersion, _ direction: FrameDirection = .sent, in log: FrameLog,
        from source: FrameLogSource = FrameLogSource("c")
    ) {
        var cuts = FrameCuts()
        MQTTRecordDecoder.cut(bytes.span.bytes, version: version, direction, MQTTSeenAliases(), into: &cuts)
        log.append(cuts, of: bytes.span.bytes, at: FrameMoment(direction), from: source)
    }

    private func logged(_ bytes: [UInt8], version: MQTTVersion, bytes limit: Int = 1 << 20) -> [LoggedFrame] {
        let log = FrameLog(bytes: limit)
        keep(bytes, version: version, in: log)
        return log.snapshot().frames
    }

    private static let types = [
        "CONNECT", "CONNACK", "SUBSCRIBE", "SUBACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "PINGREQ",
        "PINGRESP", "UNSUBSCRIBE", "UNSUBACK", "DISCONNECT",
    ]

    /// What tshark reads agrees with the log in the type and topic of every packet.
    private func expectAgreement(_ log: FrameLog) async throws {
        let frames = log.snapshot().frames
        let capture = try Capture(log.pcapng())
        #expect(try await capture.problems() == [])
        #expect(try await capture.information().contains("Raw IP"))
        let read = try await capture.packets("mqtt", fields: ["mqtt.msgtype", "mqtt.topic"])
        #expect(
            read.map { $0[0] }
                == frames.map { frame in
                    "\(MQTTPacketType.allCases.first { $0.description == frame.type }?.rawValue ?? 0)"
                })
        #expect(read.map { $0[1] } == frames.map { $0.destination ?? "" })
    }

    @Test(.requires(program: "tshark", "capinfos"), arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `tshark reads an exported conversation with the embedded broker`(version: MQTTVersion) async throws {
        let broker = try await LoopbackBroker.judged()
        let log = FrameLog()
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration(version))
        client.inspect(into: log)
        try await converse(client, log)
        await broker.stop()
        let frames = log.snapshot().frames
        #expect(Set(frames.map(\.type)) == Set(Self.types))
        #expect(Set(frames.map(\.protocolName)) == ["MQTT \(version)"])
        #expect(frames.filter { $0.type == "PUBLISH" && $0.direction == .sent }.map(\.qos) == [0, 1, 2])
        #expect(frames.allSatisfy { $0.isWhole && $0.client == "c" && $0.connection == 1 })
        try await expectAgreement(log)
    }

    @Test(.requires(.mosquitto), .requires(program: "tshark", "capinfos"), arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `tshark reads an exported conversation with Mosquitto`(version: MQTTVersion) async throws {
        let broker = try await Mosquitto.start { $0.users = [BrokerUser("ann", password: "hush-hush")] }
        let log = FrameLog()
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.port)", configuration: configuration(version))
        client.inspect(into: log, as: "kitchen")
        try await converse(client, log)
        #expect(Set(log.snapshot().frames.map(\.type)) == Set(Self.types))
        #expect(log.snapshot().frames.allSatisfy { $0.client == "kitchen" })
        try await expectAgreement(log)
        #expect(!String(decoding: log.pcapng(), as: UTF8.self).contains("hush"))
    }

    @Test func `masks secrets in fields and bytes, and leaves the rest where it is`() throws {
        var properties = MQTTProperties()
        properties.authenticationMethod = "PLAIN"
        properties.authenticationData = Array("secret-data".utf8)
        let packets: [MQTTPacket] = [
            .connect(
                .init(
                    clientID: "c", userName: "ann", password: Array("hush-hush".utf8),
                    will: MQTTWill(Array("gone".utf8), to: "will"), properties: properties)),
            .auth(.init(reasonCode: .continueAuthentication, properties: properties)),
            .connack(.init(properties: properties)),
        ]
        for packet in packets {
            let bytes = try packet.encoded(version: .v5_0)
            let frame = try #require(logged(bytes, version: .v5_0).first)
            #expect(frame.bytes.count == bytes.count)
            let text = String(decoding: frame.bytes, as: UTF8.self)
            #expect(!text.contains("hush") && !text.contains("secret"))
            #expect(text.contains("PLAIN") && text.contains("***********"))
            #expect(frame.fields.contains(.init("Authentication Data", "\"***\"")))
            #expect(!frame.contains("hush") && !frame.contains("secret"))
            // Only stars differ.
            #expect(zip(bytes, frame.bytes).allSatisfy { $0 == $1 || $1 == UInt8(ascii: "*") })
        }
        let connect = try packets[0].encoded(version: .v5_0)
        let frame = try #require(logged(connect, version: .v3_1_1).first)
        #expect(frame.protocolName == "MQTT 5.0")
        #expect(frame.fields.contains(.init("Password", "***")))
        #expect(frame.fields.contains(.init("User Name", "***")))
        #expect(frame.fields.contains(.init("Will Payload", "\"***\"")))
        // The lengths of the three stay readable, and the will's topic before them.
        #expect(
            String(decoding: frame.bytes, as: UTF8.self).hasSuffix("will\0\u{4}****\0\u{3}***\0\u{9}*********"))
    }

    @Test(.requires(program: "tshark")) func `tshark reads enhanced authentication with its data masked`() async throws
    {
        var properties = MQTTProperties()
        properties.authenticationMethod = "PLAIN"
        properties.authenticationData = Array("secret-data".utf8)
        let log = FrameLog()
        let source = FrameLogSource("c")
        let authentication = MQTTPacket.auth(.init(reasonCode: .continueAuthentication, properties: properties))
        let packets: [(MQTTPacket, FrameDirection)] = [
            (.connect(.init(clientID: "c", properties: properties)), .sent), (authentication, .received),
            (authentication, .sent), (.connack(.init(properties: properties)), .received),
        ]
        for (packet, direction) in packets {
            keep(try packet.encoded(version: .v5_0), version: .v5_0, direction, in: log, from: source)
        }
        try await expectAgreement(log)
    }

    @Test func `keeps the start of a packet that is too large, and nothing of its password`() throws {
        let packet = MQTTPacket.publish(.init(topic: "t", payload: Array(repeating: 7, count: 100_000)))
        let bytes = try packet.encoded(version: .v3_1_1)
        let frame = try #require(logged(bytes, version: .v3_1_1, bytes: 400_000).first)
        #expect(frame.bytes == Array(bytes.prefix(4096)))
        #expect(frame.size == bytes.count)
        #expect(!frame.isWhole)
        #expect(frame.destination == "t" && frame.payloadCount == 100_000 && frame.payload?.hasPrefix("07 07") == true)
        let connect = MQTTPacket.connect(
            .init(version: .v3_1_1, clientID: "c", userName: "ann", password: Array(repeating: 0x41, count: 60_000)))
        let whole = try connect.encoded(version: .v3_1_1)
        let masked = try #require(logged(whole, version: .v3_1_1, bytes: 400_000).first)
        #expect(masked.bytes.count == 4096)
        #expect(!masked.bytes.contains(0x41))
        #expect(masked.type == "CONNECT")
        #expect(masked.note == "The 4096 bytes that were kept of this frame are too few to decode it.")
    }

    @Test func `keeps nothing but the type of an invalid packet that may have secrets`() throws {
        let bytes: [UInt8] = [0x10, 12, 0, 4, 77, 81, 84, 84, 9, 0, 0, 0, 65, 65, 0xC0, 0]
        let frames = logged(bytes, version: .v5_0)
        #expect(frames.map(\.type) == ["CONNECT", "PINGREQ"])
        #expect(frames.first?.bytes == [0x10, 12] + Array(repeating: UInt8(ascii: "*"), count: 12))
        #expect(frames.first?.note == "These bytes are not a valid frame.")
    }

    @Test func `a log knows the topics of messages that carry an alias instead`() async throws {
        let broker = try await LoopbackBroker.judged()
        var configuration = configuration(.v5_0)
        configuration.connectProperties = []
        configuration.topicAliasMaximum = 10
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
        let log = FrameLog()
        client.inspect(into: log)
        try await client.connect()
        for number in 0..<50 { try await client.publish("\(number)", to: "a/long/topic", qos: .atLeastOnce) }
        await client.disconnect()
        let frames = log.snapshot().frames
        #expect(frames.count { $0.type == "PUBLISH" && $0.destination == "a/long/topic" } == 50)
        #expect(frames.filter { $0.type == "PUBLISH" }.map(\.payload) == (0..<50).map { "\"\($0)\"" })
        #expect(!String(decoding: log.pcapng(), as: UTF8.self).contains("hush"))
        await broker.stop()
    }

    @Test func `bytes that are not a packet are kept as they are`() {
        let bytes: [UInt8] = [0x32, 3, 0, 9, 65, 0xC0, 0]
        let log = FrameLog()
        keep(bytes, version: .v5_0, .received, in: log)
        #expect(log.snapshot().frames.map(\.type) == ["PUBLISH", "PINGREQ"])
        #expect(log.snapshot().frames.first?.note == "These bytes are not a valid frame.")
        #expect(log.snapshot().frames.first?.bytes == [0x32, 3, 0, 9, 65])
    }

    @Test func `clients of one template have names of their own in a log`() async throws {
        let broker = try await LoopbackBroker.judged()
        let log = FrameLog()
        let clients = (0..<2).map { _ in
            MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", clientID: "meter-%%%%")
        }
        for client in clients {
            client.inspect(into: log)
            try await client.connect()
        }
        #expect(Set(log.snapshot().frames.map(\.client)) == Set(clients.map(\.clientID)))
        for client in clients { await client.disconnect() }
        await broker.stop()
    }

    @Test func `a client that is told to stop feeds a log no more`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", clientID: "c")
        let (log, other) = (FrameLog(), FrameLog())
        for log in [log, log, other] { client.inspect(into: log) }
        try await client.connect()
        #expect(await eventually { other.snapshot().frames.count == 2 })
        client.stopInspecting(into: log)
        try await client.publish("on", to: "a", qos: .atLeastOnce)
        #expect(log.snapshot().frames.map(\.type) == ["CONNECT", "CONNACK"])
        #expect(other.snapshot().frames.map(\.type) == ["CONNECT", "CONNACK", "PUBLISH", "PUBACK"])
        await client.disconnect()
        await broker.stop()
    }
}

extension MQTTPacket {
    fileprivate func encoded(version: MQTTVersion) throws -> [UInt8] {
        var bytes: [UInt8] = []
        try encode(into: &bytes, version: version)
        return bytes
    }
}
