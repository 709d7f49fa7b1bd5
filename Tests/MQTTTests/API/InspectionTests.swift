import ClientTestSupport
import LoopbackBroker
import MQTTCore
import MQTTRecords
import MessagingShell
import TestSupport
import Testing

@testable import MQTT

@Suite(.turns)
struct InspectionTests {
    private func packets(
        _ client: MQTTClient, showingSecrets: Bool = false, until last: String,
        _ body: () async throws -> Void
    ) async throws -> [String] {
        var frames = client.inspect(showingSecrets: showingSecrets).makeAsyncIterator()
        try await body()
        var lines: [String] = []
        while let frame = await frames.next() {
            lines.append("\(frame.direction == .sent ? ">" : "<") \(frame)")
            if lines.last == last { break }
        }
        return lines
    }

    private func client(_ broker: LoopbackBroker) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "c")
        configuration.credentials = Credentials(userName: "ann", password: "hush")
        return MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
    }

    @Test func `shows every packet of both directions in order, with user name and password masked`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = client(broker)
        let lines = try await packets(client, until: "> DISCONNECT") {
            try await client.connect()
            let messages = try await client.subscribe(to: "a/+", qos: .atLeastOnce)
            try await client.publish("on", to: "a/b", qos: .atLeastOnce, retain: true)
            try await messages.unsubscribe()
            await client.disconnect()
        }
        await broker.stop()
        #expect(lines.first == "> CONNECT 3.1.1 client-id c keep-alive 45 clean user *** password ***")
        #expect(lines.contains("< CONNACK success (0x00)"))
        #expect(lines.contains("> SUBSCRIBE id 1 a/+ QoS 1"))
        #expect(lines.contains("> PUBLISH a/b QoS 1 id 2 retain \"on\" (2 bytes)"))
        #expect(lines.contains("< PUBACK id 2"))
        #expect(!lines.contains { $0.contains("hush") })
    }

    @Test func `user properties with the names of secrets are masked in records, logs and dumps, as headers are`()
        async throws
    {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration(clientID: "c")
        configuration.version = .v5_0
        let properties: MQTTProperties = [
            .userProperty("X-Auth-Token", "hush-5ecret"), .userProperty("room", "kitchen"),
            .userProperty("API-Key", "hush-5ecret"),
        ]
        configuration.connectProperties = properties
        configuration.will = MQTTWill(Array("gone".utf8), to: "w", properties: properties)
        let client = MQTTClient("mqtt://127.0.0.1:\(broker.ports.mqtt ?? 0)", configuration: configuration)
        let log = FrameLog()
        client.inspect(into: log)
        var records: [String] = []
        var dumped = ""
        var packets = client.inspect().makeAsyncIterator()
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce, properties: properties)
        try await client.publish(MQTTOutgoingMessage("hush", to: "a", qos: .atLeastOnce, properties: properties))
        for try await message in messages {
            dump(message.properties, to: &dumped)
            dumped += "\(message.properties) \(message)"
            break
        }
        _ = try await messages.unsubscribe(properties: properties)
        await client.disconnect()
        while let packet = await packets.next() {
            var text = "\(packet) \(packet.packet)"
            dump(packet.packet, to: &text)
            records.append(text)
            if packet.type == .disconnect { break }
        }
        await broker.stop()
        let frames = log.snapshot().frames
        let bytes = frames.map { String(decoding: $0.bytes, as: UTF8.self) }
        let shown = frames.flatMap { frame in frame.fields.map { "\($0.name) \($0.value)" } }
        for text in records + bytes + shown + [dumped] { #expect(!text.contains("5ecret"), "\(text)") }
        #expect(bytes.filter { $0.contains("kitchen") && $0.contains("X-Auth-Token") }.count >= 5)
        #expect(dumped.contains("kitchen") && records.contains { $0.contains("kitchen") })
    }

    @Test func `shows the password to who asks for it`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = client(broker)
        let lines = try await packets(client, showingSecrets: true, until: "< CONNACK success (0x00)") {
            try await client.connect()
        }
        await client.disconnect()
        await broker.stop()
        #expect(lines.first?.hasSuffix("password hush") == true)
    }

    @Test func `starts in the middle of a connection`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = client(broker)
        try await client.connect()
        try await client.publish("unseen", to: "a/b", qos: .atLeastOnce)
        let lines = try await packets(client, until: "< PUBACK id 2") {
            try await client.publish("seen", to: "a/b", qos: .atLeastOnce)
        }
        await client.disconnect()
        await broker.stop()
        #expect(lines == ["> PUBLISH a/b QoS 1 id 2 \"seen\" (4 bytes)", "< PUBACK id 2"])
    }

    @Test func `keeps the start of a payload and the sizes of all`() {
        let packet = MQTTPacket.publish(.init(topic: "t", payload: Array(repeating: 7, count: 100_000)))
        let frame = RawFrame(bytes: Array(repeating: 0, count: 100_006), size: 100_006, moment: FrameMoment(.received))
        let record = MQTTPacketRecord(packet, of: frame, version: .v3_1_1, showsSecrets: false)
        guard case .publish(let kept) = record.packet else { return #expect(Bool(false), "\(record)") }
        #expect(kept.payload.count == 256)
        #expect(record.payloadCount == 100_000)
        #expect(record.size == 100_006)
        #expect("\(record)".hasSuffix("07… (100000 bytes)"))
    }
}
