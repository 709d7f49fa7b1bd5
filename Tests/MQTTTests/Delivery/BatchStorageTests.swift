import MQTTCore
import MessagingWire
import TestSupport
import Testing

@testable import MQTT

@Suite("Delivery: what a batch keeps", .turns)
struct BatchStorageTests {
    private static let topics = ["a", "exactly/16/bytes", "b/with/a/longer/name/than/others"]

    /// What an engine makes of these messages.
    private func received(
        _ messages: [MQTTOutgoingMessage], _ version: MQTTVersion = .v5_0
    ) throws -> (bytes: [UInt8], effects: MQTTEffects) {
        var bytes: [UInt8] = version.hasProperties ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]
        for (number, message) in messages.enumerated() {
            try MQTTPacket.publish(
                .init(
                    topic: message.topic, payload: message.payload, qos: message.qos,
                    packetID: message.qos == .atMostOnce ? 0 : UInt16(number + 1), properties: message.properties)
            ).encode(into: &bytes, version: version)
        }
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        engine.configuration.version = version
        try engine.connectionOpened(at: 0)
        var effects = MQTTEffects()
        #expect(engine.receive(bytes.span.bytes, at: 0, into: &effects) == bytes.count)
        #expect(effects.messages.count == messages.count)
        return (bytes, effects)
    }

    private func message(_ random: inout SeededGenerator) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            (0..<Int.random(in: 0...80, using: &random)).map { _ in .random(in: 0...9, using: &random) },
            to: Self.topics.randomElement(using: &random)!,
            qos: Bool.random(using: &random) ? .atMostOnce : .atLeastOnce,
            properties: Bool.random(using: &random) ? [] : [.userProperty("name", "value"), .contentType("text")])
    }

    private func expectSame(_ batch: MQTTBatch, _ sent: [MQTTOutgoingMessage]) {
        let messages = MQTTSubscription.Batch(batch, from: 0)
        #expect(messages.map(\.topic) == sent.map(\.topic))
        #expect(messages.map(\.topicName.description) == sent.map(\.topic))
        #expect(messages.map(\.bytes) == sent.map(\.payload))
        #expect(messages.map(\.qos) == sent.map(\.qos))
        #expect(messages.map(\.properties) == sent.map(\.properties))
    }

    private func all(_ effects: MQTTEffects, of bytes: [UInt8]) -> MQTTBatchStorage {
        var effects = effects
        let count = effects.messages.count
        var storage = MQTTBatchStorage()
        storage.takeAll(&effects, of: bytes.span.bytes)
        #expect(storage.records.count == count && storage.records.capacity < 4 * (count + 1))
        return storage
    }

    private func some(_ places: [UInt32], _ effects: MQTTEffects, of bytes: [UInt8]) -> MQTTBatchStorage {
        let messages = effects.messages
        var storage = MQTTBatchStorage()
        storage.fill(messages.span, places.span, of: bytes.span.bytes)
        return storage
    }

    @Test func `all messages of a read and any of them arrive as they were sent`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(200) {
            let sent = (0..<Int.random(in: 1...60, using: &random)).map { _ in message(&random) }
            let (bytes, effects) = try received(sent)
            let places = sent.indices.filter { _ in Bool.random(using: &random) }
            let chosen = some(places.map { UInt32($0) }, effects, of: bytes)
            expectSame(MQTTBatch(chosen, version: .v5_0, core: nil), places.map { sent[$0] })
            let topic = effects.commonTopic(in: bytes.span.bytes)
            if let topic { #expect(sent.allSatisfy { $0.topic == topic }) }
            expectSame(MQTTBatch(all(effects, of: bytes), commonTopic: topic, version: .v5_0, core: nil), sent)
        }
    }

    @Test func `one message behind much else is copied without it`() throws {
        let sent = [MQTTOutgoingMessage([1, 2, 3], to: "a", qos: .atMostOnce)]
        var (bytes, effects) = try received(sent)
        // The same packet far behind in a read.
        let before = [UInt8](repeating: 0, count: 100_000)
        bytes = before + bytes
        effects.messages = effects.messages.map { $0.moved(to: $0.range.lowerBound + before.count) }
        let storage = all(effects, of: bytes)
        #expect(storage.bytes.count < 16)
        expectSame(MQTTBatch(storage, version: .v5_0, core: nil), sent)
    }

    @Test func `messages that are dropped leave the others in their places`() throws {
        var random = SeededGenerator(seed: 5)
        var sent = (0..<5).map { _ in message(&random) }
        for index in sent.indices { sent[index].qos = index == 2 || index == 4 ? .atLeastOnce : .atMostOnce }
        let (bytes, effects) = try received(sent)
        let batch = MQTTBatch(all(effects, of: bytes), version: .v5_0, core: nil)
        // QoS 1 stays.
        #expect(batch.dropOldest(4) == 3)
        expectSame(batch, [sent[2], sent[4]])
        #expect(MQTTSubscription.Batch(batch, from: 0).map(\.packetID) == [3, 5])
    }

    @Test func `a topic compares with strings byte by byte and has levels`() throws {
        let (bytes, effects) = try received([MQTTOutgoingMessage([1], to: "house/kitchen//lamp", qos: .atMostOnce)])
        let name = MQTTBatch(all(effects, of: bytes), version: .v5_0, core: nil)[0].topicName
        #expect(name == "house/kitchen//lamp" && name != "house/kitchen//lamp/" && name != "house/kitchen")
        #expect(name.hasPrefix("house/") && !name.hasPrefix("house/k/") && !name.hasPrefix("house/kitchen//lamp/x"))
        #expect(name.levels.map(\.description) == ["house", "kitchen", "", "lamp"])
        #expect(name.levels[1] == "kitchen" && name.levels[2] == "")
        #expect(name.matches("house/+/#") && name.matches("$share/g/house/#") && !name.matches("house/+"))
        switch name {
        case "house": Issue.record("another topic matched")
        case "house/kitchen//lamp": break
        default: Issue.record("the topic did not match")
        }
        #expect(Set([name, name]).count == 1)
    }

    #if os(Linux)
        @Test func `receiving a payload of 64 MiB takes the memory of two payloads at most`() async {
            await #expect(processExitsWith: .success) {
                let count = 64 << 20
                let port = try LargeMessageServer.start(
                    answers: [
                        { _ in [0x20, 2, 0, 0] },
                        { request in
                            var answer = [0x90, 3, request[2], request[3], 0, 0x30]
                            var length = count + 3
                            while length > 127 {
                                answer.append(UInt8(length & 127) | 128)
                                length >>= 7
                            }
                            return answer + [UInt8(length), 0, 1, 97]
                        },
                    ], count: count, end: { _ in [0x30, 7, 0, 1, 97, 110, 101, 120, 116] })
                var configuration = MQTTConfiguration()
                configuration.maximumPacketSize = 2 * count
                configuration.maximumUnreadBytes = 2 * count
                let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
                try await client.connect()
                let peak = try await LargeMessageServer.peak {
                    let subscription = try await client.subscribe(to: "a", qos: .atMostOnce)
                    var messages: [MQTTMessage] = []
                    for try await message in subscription {
                        messages.append(message)
                        if messages.count == 2 { break }
                    }
                    #expect(messages[0].payload.count == count)
                    #expect(messages[0].topic == "a")
                    #expect(messages[1].text == "next")
                }
                // The address sanitizer needs memory of its own.
                let isSanitized = Campaign.environment("ASAN_OPTIONS") != nil
                #expect(peak < 2 * count + 12_000_000 || isSanitized, "\(peak) bytes")
            }
        }

        @Test func `a payload of 256 MiB that does not arrive takes no memory`() async {
            await #expect(processExitsWith: .success) {
                // The largest packet there is, of which only ten bytes of payload arrive.
                let beginning: [UInt8] = [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 97] + [UInt8](repeating: 1, count: 10)
                let port = try LargeMessageServer.start(
                    answers: [
                        { _ in [0x20, 2, 0, 0] },
                        { request in [0x90, 3, request[2], request[3], 0] + beginning },
                    ], count: 0, end: { _ in [] })
                var configuration = MQTTConfiguration()
                configuration.maximumPacketSize = .max
                let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
                try await client.connect()
                let peak = try await LargeMessageServer.peak {
                    let subscription = try await client.subscribe(to: "a", qos: .atMostOnce)
                    #expect(await eventually { client.counters.bytesReceived == 4 + 5 + beginning.count })
                    withExtendedLifetime(subscription) {}
                }
                #expect(client.state.isConnected)
                #expect(peak < 8_000_000, "\(peak) bytes")
            }
        }
    #endif
}
