import MessagingWire
import TestSupport
import Testing

@testable import MQTTCore

@Suite("Engine: reading PUBLISH in place", .heavy)
struct PublishReaderTests {
    private struct Message: Equatable {
        var topic: String
        var payload: [UInt8]
        var flags: UInt8 = 0
        var packetID: UInt16 = 0
        var properties: MQTTProperties = []
    }

    private func bytes(_ messages: [Message], _ version: MQTTVersion) throws -> [UInt8] {
        var output: [UInt8] = []
        for message in messages {
            try MQTTPacket.Publish.encode(
                PublishHead(
                    topic: message.topic, flags: MQTTPublishFlags(rawValue: message.flags), packetID: message.packetID),
                message.properties, payload: message.payload.span.bytes, into: &output, version: version)
        }
        return output
    }

    /// An engine that a server has accepted.
    private func engine(_ version: MQTTVersion) throws -> MQTTEngine {
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        engine.configuration.version = version
        try engine.connectionOpened(at: 0)
        var effects = MQTTEffects()
        let accepted: [UInt8] = version.hasProperties ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]
        _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
        return engine
    }

    /// What an engine makes of bytes, and how many of them it takes.
    private func received(
        _ bytes: ArraySlice<UInt8>, _ engine: inout MQTTEngine, _ effects: inout MQTTEffects
    ) -> ([Message], Int) {
        effects.removeAll()
        let consumed = engine.receive(bytes.span.bytes, at: 1, into: &effects)
        let base = bytes.startIndex
        let messages = effects.messages.map { record in
            Message(
                topic: effects.topic(of: record, in: bytes.span.bytes),
                payload: Array(bytes[base + record.payload.lowerBound..<base + record.payload.upperBound]),
                flags: record.flags.rawValue, packetID: record.packetID,
                properties: record.decodeProperties(in: bytes.span.bytes))
        }
        return (messages, consumed)
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `messages of all sizes arrive as they were sent, however they are cut`(_ version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(200) {
            let topics = (0..<Int.random(in: 1...3, using: &random)).map { number in
                String(repeating: "t", count: Int.random(in: 0...80, using: &random)) + "\(number)"
            }
            let sent = (0..<60).map { _ in
                Message(
                    topic: topics.randomElement(using: &random) ?? "",
                    payload: [UInt8](
                        repeating: UInt8.random(in: 0...255, using: &random),
                        count: Int.random(in: 0...(Bool.random(using: &random) ? 40 : 400), using: &random)),
                    flags: Int.random(in: 0..<10, using: &random) == 0 ? 1 : 0)
            }
            let bytes = try bytes(sent, version)
            var engine = try engine(version)
            var effects = MQTTEffects()
            var arrived: [Message] = []
            var (start, end) = (0, 0)
            while start < bytes.count {
                end = min(bytes.count, end + Int.random(in: 1...bytes.count, using: &random))
                let (messages, consumed) = received(bytes[start..<end], &engine, &effects)
                arrived += messages
                start += consumed
                #expect(effects.events.isEmpty)
                // What is known of all messages together agrees with each of them.
                #expect(effects.messageBytes == consumed)
                let changes = messages.indices.count { $0 == 0 || messages[$0].topic != messages[$0 - 1].topic }
                #expect(effects.topicChanges == effects.messages.count { !$0.repeatsTopic })
                #expect(effects.topicChanges >= changes)
                for (index, record) in effects.messages.enumerated() where record.repeatsTopic {
                    #expect(index > 0 && messages[index].topic == messages[index - 1].topic)
                }
            }
            #expect(arrived == sent)
        }
    }

    @Test func `a topic that differs in one byte is another one, wherever that is and however long it is`() throws {
        for count in 1...100 {
            let topic = String(repeating: "a", count: count)
            for place in Set([0, 1, count / 2, count - 17, count - 16, count - 8, count - 1]) where place >= 0 {
                guard place < count else { continue }
                let other = String(topic.enumerated().map { $0.offset == place ? "b" : $0.element })
                let sent = [topic, topic, other, other, topic].map { Message(topic: $0, payload: [1, 2, 3]) }
                let bytes = try bytes(sent, .v3_1_1)
                var engine = try engine(.v3_1_1)
                var effects = MQTTEffects()
                #expect(received(bytes[...], &engine, &effects).0 == sent)
                #expect(effects.messages.map(\.repeatsTopic) == [false, true, false, true, false])
            }
        }
    }

    @Test func `messages have the numbers that a table gives their topics, and others are checked`() throws {
        let known = ["a/b", "a/longer/topic/name", "ä"]
        var table = TopicTable(seed: Campaign.seed)
        for (index, topic) in known.enumerated() {
            topic.withUTF8Span { table.insert($0, number: UInt16(index + 7)) }
        }
        let topics = ["a/b", "a/b", "a/c", "ä", "a/longer/topic/name", "a/c", "a/c", "a/b", "a/longer/topic/names"]
        let numbers: [UInt16] = [7, 7, 0, 9, 8, 0, 0, 7, 0]
        let bytes = try bytes(topics.map { Message(topic: $0, payload: [1]) }, .v3_1_1)
        var engine = try engine(.v3_1_1)
        var effects = MQTTEffects()
        #expect(engine.receive(bytes.span.bytes, at: 1, into: &effects, knowing: table) == bytes.count)
        #expect(effects.messages.map(\.destination) == numbers)
        #expect(effects.messages.map { effects.topic(of: $0, in: bytes.span.bytes) } == topics)
        // One that is not among them, and that no topic may be.
        effects.removeAll()
        let wrong: [UInt8] = [0x30, 5, 0, 3, 0x61, 0x2F, 0x2B]
        _ = engine.receive(wrong.span.bytes, at: 1, into: &effects, knowing: table)
        let shouldClose = engine.shouldClose
        #expect(effects.messages.isEmpty && shouldClose)
    }

    @Test(arguments: [0, 1, 2])
    func `one byte wrong among others is judged as it is alone`(_ kind: Int) throws {
        var message = Message(topic: "a/topic/of/some/length", payload: [1, 2, 3, 4])
        if kind > 0 { message.properties = [.userProperty("name", "value"), .messageExpiryInterval(7)] }
        if kind > 1 { (message.flags, message.packetID) = (0b0010, 5) }
        let one = try bytes([message], .v5_0)
        for place in one.indices {
            for bit in 0..<8 {
                var wrong = one
                wrong[place] ^= 1 << bit
                var alone = try engine(.v5_0)
                var among = try engine(.v5_0)
                var (effects, others) = (MQTTEffects(), MQTTEffects())
                // Enough behind it for any length that it may claim by now.
                let behind = try bytes([Message](repeating: message, count: 20), .v5_0)
                let expected = received((wrong + behind)[...], &alone, &effects)
                let found = received((one + one + wrong + behind)[...], &among, &others)
                #expect(found.0 == [message, message] + expected.0, "byte \(place), bit \(bit)")
                let ends = (among.shouldClose, alone.shouldClose)
                #expect(ends.0 == ends.1 && others.events.count == effects.events.count)
            }
        }
    }

    @Test func `properties that equal checked ones, and all others, are what was sent`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        let lists: [MQTTProperties] = [
            [], [.userProperty("a", "b")], [.userProperty("a", "c")],
            [.contentType("text"), .correlationData([0, 1])],
            [.userProperty("long", String(repeating: "x", count: 200))], [.subscriptionIdentifier(7)],
        ]
        let sent = (0..<500).map { number in
            let isQoS1 = Bool.random(using: &random)
            return Message(
                topic: "t/\(number % 3)", payload: [UInt8](repeating: 1, count: number % 40), flags: isQoS1 ? 2 : 0,
                packetID: isQoS1 ? UInt16(number + 1) : 0, properties: lists.randomElement(using: &random)!)
        }
        var engine = try engine(.v5_0)
        var effects = MQTTEffects()
        #expect(received(try bytes(sent, .v5_0)[...], &engine, &effects).0 == sent)
        #expect(effects.events.isEmpty)
    }

    @Test func `acknowledgements of one read leave together and in order`() throws {
        let sent = (1...100).map { Message(topic: "a/b", payload: [1], flags: 2, packetID: UInt16($0)) }
        var engine = try engine(.v3_1_1)
        var effects = MQTTEffects()
        #expect(received(try bytes(sent, .v3_1_1)[...], &engine, &effects).0.count == 100)
        engine.output = []
        let tokens = effects.messages.map(\.delivery)
        engine.acknowledge(tokens[10]...tokens[99], at: 2)
        // Those before them come first.
        #expect(engine.output.isEmpty)
        engine.acknowledge(tokens[0]...tokens[9], at: 2)
        let expected: [UInt8] = (UInt8(1)...100).flatMap { [0x40, 2, 0, $0] }
        #expect(engine.output == expected)
    }

    @Test func `QoS 1 beyond an enforced Receive Maximum ends the connection wherever it is found`() throws {
        for count in [9, 10, 11, 12] {
            var configuration = MQTTEngineConfiguration()
            configuration.receiveMaximum = 10
            configuration.enforcesReceiveMaximum = true
            var engine = MQTTEngine(configuration: configuration)
            try engine.connectionOpened(at: 0)
            let sent = (1...count).map { Message(topic: "a/b", payload: [1], flags: 2, packetID: UInt16($0)) }
            var effects = MQTTEffects()
            let bytes = [0x20, 3, 0, 0, 0] + (try bytes(sent, .v5_0))
            #expect(received(bytes[...], &engine, &effects).0.count == min(count, 10))
            let shouldClose = engine.shouldClose
            #expect(shouldClose == (count > 10))
        }
    }

    @Test func `messages with one topic alias share one copy of a long topic`() throws {
        var configuration = MQTTEngineConfiguration()
        configuration.topicAliasMaximum = 2
        var engine = MQTTEngine(configuration: configuration)
        try engine.connectionOpened(at: 0)
        let topics = ["a", "b"].map { String(repeating: $0, count: 60_000) }
        var bytes: [UInt8] = [0x20, 3, 0, 0, 0]
        for number in 0..<1000 {
            let alias = UInt16(number % 2 + 1)
            try MQTTPacket.Publish.encode(
                PublishHead(topic: number < 2 ? topics[number] : "", alias: alias),
                payload: [UInt8(number % 2)].span.bytes,
                into: &bytes, version: .v5_0)
        }
        var effects = MQTTEffects()
        let (messages, consumed) = received(bytes[...], &engine, &effects)
        #expect(consumed == bytes.count && messages.count == 1000)
        #expect(messages.allSatisfy { $0.topic == topics[Int($0.payload[0])] })
        #expect(effects.aliasTopics.count == 120_000)
        // They are copied again for the next read.
        let more = Array(bytes.suffix(100))
        effects.removeAll()
        let start = more.count - 2 * 9
        #expect(received(more[start...], &engine, &effects).0.map(\.topic) == topics)
        #expect(effects.aliasTopics.count == 120_000)
    }
}
