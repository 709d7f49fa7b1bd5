import LoopbackBroker
import MQTT
import TestSupport
import Testing

// The example of the documentation, whole.
private struct Reading: Codable, Sendable, Equatable {
    var celsius: Double
}

extension MQTTTopic<Reading> {
    fileprivate static var readings: MQTTTopic { MQTTTopic("house/+/+/reading", as: .json) }
}

@Suite("Delivery: typed topics", .turns)
struct TypedTopicTests {
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `values go to topics of their type and come back with what the wildcards stand for`(
        version: MQTTVersion
    ) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let readings = try await client.subscribe(to: .readings)
        #expect(readings.subscription.grantedQoS == .atLeastOnce)
        let reading = Reading(celsius: 21.5)
        try await client.publish(reading, to: .readings.at("kitchen", "lamp"))
        try await client.publish("no reading", to: "house/hall/lamp/reading", qos: .atLeastOnce)
        var count = 0
        for try await element in readings {
            count += 1
            if count == 1 {
                #expect(try element.get() == reading)
                #expect(element.captures == ["kitchen", "lamp"])
                #expect(element.message.properties.contentType == (version == .v5_0 ? "application/json" : nil))
            } else {
                #expect(throws: DecodeFailure.self) { try element.get() }
                #expect(element.captures == ["hall", "lamp"])
                break
            }
        }
        try await readings.subscription.unsubscribe()
        await client.disconnect()
        await bench.stop()
    }

    @Test func `text, bytes, and formats of one's own`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let text = MQTTTopic.text("text", qos: .exactlyOnce, retain: true)
        let bytes = MQTTTopic.bytes("$share/group/bytes")
        struct NoNumber: Error {}
        let numbers = MQTTTopic<Int>("numbers", contentType: "text/x-number; charset=ascii") { number in
            Array("\(number)".utf8)
        } decode: { bytes in
            guard let number = Int(String(decoding: bytes, as: UTF8.self)) else { throw NoNumber() }
            return number
        }
        try await client.publish("früh", to: text)
        let texts = try await client.subscribe(to: text)
        var textIterator = texts.makeAsyncIterator()
        let first = try #require(await textIterator.next())
        #expect(try first.get() == "früh")
        #expect(first.message.isRetained && first.message.qos == .atLeastOnce)
        #expect(first.message.properties.payloadFormatIndicator == true)
        try await client.publish([0xFF], to: "text", qos: .atLeastOnce)
        let broken = try #require(await textIterator.next())
        #expect(throws: DecodeFailure.self) { try broken.get() }
        let shared = try await client.subscribe(to: bytes)
        try await client.publish([0, 255], to: bytes)
        var byteIterator = shared.makeAsyncIterator()
        #expect(try await byteIterator.next()?.get() == [0, 255])
        let counted = try await client.subscribe(to: numbers)
        try await client.publish(17, to: numbers)
        var other = MQTTProperties()
        other.contentType = "application/json"
        try await client.publish(18, to: numbers, properties: other)
        try await client.publish("x", to: "numbers", qos: .atLeastOnce)
        var iterator = counted.makeAsyncIterator()
        #expect(try await iterator.next()?.get() == 17)
        let foreign = try #require(await iterator.next())
        #expect { try foreign.get() } throws: { ($0 as? DecodeFailure)?.message.contains("application/json") == true }
        let none = try #require(await iterator.next())
        #expect { try none.get() } throws: { ($0 as? DecodeFailure)?.underlying is NoNumber }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a sequence of values counts what was dropped, and ends with its subscription`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let values = try await client.subscribe(
            to: "a", as: Int.self, qos: .atMostOnce, buffer: BufferPolicy(messages: 10))
        for number in 0..<100 { try await client.publish(number, to: "a") }
        #expect(await eventually { values.droppedCount == 90 })
        try await values.unsubscribe()
        var numbers: [Int] = []
        for try await element in values { numbers.append(try element.value) }
        #expect(numbers == Array(90..<100))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `messages to publish are equal if all their parts are, topics by their bytes`() {
        let message = MQTTOutgoingMessage("x", to: "caf\u{E9}", properties: [.contentType("t")])
        #expect(message == MQTTOutgoingMessage([0x78], to: "caf\u{E9}", properties: [.contentType("t")]))
        let changes: [(inout MQTTOutgoingMessage) -> Void] = [
            { $0.topic = "cafe\u{301}" }, { $0.payload = [] }, { $0.qos = .atMostOnce }, { $0.retain = true },
            { $0.properties = [] },
        ]
        for change in changes {
            var other = message
            change(&other)
            #expect(other != message)
        }
    }

    @Test func `wildcards are filled with what may stand for them`() throws {
        let topic = MQTTTopic<String>.text("a/+//b/#")
        #expect(try topic.at("x", "y/z").name == "a/x//b/y/z")
        #expect(try MQTTTopic<String>.text("$share/g/a/+").at("x").name == "a/x")
        #expect(try MQTTTopic<String>.text("+").at("").name.isEmpty)
        let mistakes: [(MQTTTopic<String>, [String])] = [
            (topic, ["x"]), (topic, ["x/y", "z"]), (topic, ["+", "z"]), (topic, ["x", "z/#"]), (topic, ["x", "\u{0}"]),
        ]
        for (topic, captures) in mistakes {
            #expect {
                _ = captures.count == 1 ? try topic.at(captures[0]) : try topic.at(captures[0], captures[1])
            } throws: {
                ($0 as? MQTTError)?.code == .invalidRequest
            }
        }
        #expect(throws: MQTTError.self) { try topic.at("x", "y", "z") }
    }
}
