import MessagingWire
import TestSupport
import Testing

@testable import MQTTCore

/// Many messages published one after the other, as a client publishes an array: their packets, their ends and their order.
@Suite(.heavy) struct PublishManyTests {
    private static func message(_ number: Int, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(Array("\(number)".utf8), to: "a/topic/of/some/length", qos: qos, retain: retain)
    }

    /// Publishes messages with the tokens from `token` on, at most as many as the window has room for; returns how many.
    @discardableResult
    private static func publish(
        _ messages: some Collection<MQTTOutgoingMessage>, token: UInt64, _ pair: EnginePair
    ) throws -> Int {
        var count = 0
        for message in messages where pair.client.engine.inFlightCount < pair.client.engine.windowLimit {
            _ = try pair.client.engine.publish(
                topic: message.topic, payload: message.payload, qos: message.qos, retain: message.retain,
                properties: message.properties, token: token + UInt64(count), at: pair.now)
            count += 1
        }
        return count
    }

    /// The packets of messages with the identifiers from 1 on, as the codec writes them by themselves.
    private static func encoded(_ messages: some Sequence<MQTTOutgoingMessage>, _ version: MQTTVersion) throws
        -> [UInt8]
    {
        var bytes: [UInt8] = []
        for (index, message) in messages.enumerated() {
            let packet = MQTTPacket.Publish(
                topic: message.topic, payload: message.payload, qos: message.qos, isRetained: message.retain,
                packetID: message.qos == .atMostOnce ? 0 : UInt16(index + 1), properties: message.properties)
            try MQTTPacket.publish(packet).encode(into: &bytes, version: version)
        }
        return bytes
    }

    private static func puback(_ ids: some Sequence<Int>) -> [UInt8] {
        ids.flatMap { [0x40, 2, UInt8($0 >> 8), UInt8($0 & 0xFF)] }
    }

    private static func receive(_ bytes: [UInt8], _ end: EnginePair.End) {
        end.run(bytes) { engine, effects in
            let consumed = engine.receive(bytes.span.bytes, at: 0, into: &effects)
            #expect(consumed == bytes.count)
        }
    }

    /// Every message that completed, by its token.
    private static func ends(_ end: EnginePair.End) -> [UInt64] { end.completions.map(\.token) }

    @Test func `messages are written up to the window, and the others under identifiers that were given back`() throws {
        for version in MQTTVersion.allCases {
            let messages = (0..<100).map { Self.message($0, retain: $0 % 3 == 0) }
            let pair = EnginePair(version: version, client: { $0.maximumInFlight = 80 })
            try pair.connect()
            #expect(try Self.publish(messages, token: 7, pair) == 80)
            #expect(pair.client.engine.inFlightCount == 80)
            #expect(pair.client.engine.output == (try Self.encoded(messages[..<80], version)))
            pair.settle()
            #expect(Self.ends(pair.client) == Array(7..<87))
            #expect(pair.client.engine.inFlightCount == 0)
            #expect(try Self.publish(messages[80...], token: 87, pair) == 20)
            pair.settle()
            #expect(Self.ends(pair.client) == Array(7..<107))
            #expect(pair.server.messages.map(\.payload) == messages.map(\.payload))
        }
    }

    @Test(arguments: QoS.allCases)
    func `each message has its own properties`(_ qos: QoS) throws {
        let lists: [MQTTProperties] = [
            [], [.userProperty("source", "sensor7"), .userProperty("region", "north")], [.contentType("text")],
            [
                .messageExpiryInterval(60), .payloadFormatIndicator(true), .correlationData([1, 2]),
                .responseTopic("a"),
            ],
            [.contentType(String(repeating: "long", count: 50))],
        ]
        var messages = (0..<40).map { Self.message($0 / 3, qos: qos) }
        for index in messages.indices { messages[index].properties = lists[index / 2 % lists.count] }
        let pair = EnginePair()
        try pair.connect()
        #expect(try Self.publish(messages, token: 1, pair) == 40)
        #expect(pair.client.engine.output == (try Self.encoded(messages, .v5_0)))
        pair.settle()
        #expect(pair.server.messages.map(\.payload) == messages.map(\.payload))
    }

    @Test func `messages of QoS 2 end once each, in their order`() throws {
        for version in MQTTVersion.allCases {
            let messages = (0..<60).map { Self.message($0, qos: .exactlyOnce) }
            let pair = EnginePair(version: version)
            try pair.connect()
            #expect(try Self.publish(messages, token: 1, pair) == 60)
            #expect(pair.client.engine.output == (try Self.encoded(messages, version)))
            pair.settle()
            #expect(Self.ends(pair.client) == Array(1...60))
            #expect(pair.client.types.filter { $0 == .pubrel }.count == 60)
            #expect(pair.server.messages.map(\.payload) == messages.map(\.payload))
            #expect(pair.client.engine.inFlightCount == 0)
        }
    }

    @Test func `messages arrive as often as their QoS says over cut connections, whatever is cut and mixed`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(5000) {
            let pair = EnginePair.persistent(
                version: MQTTVersion.allCases.randomElement(using: &random)!, client: { $0.maximumInFlight = 30 })
            try pair.connect()
            let messages = (0..<80).map { Self.message($0, qos: $0 / 7 % 3 == 1 ? .atLeastOnce : .exactlyOnce) }
            var next = 0
            for _ in 0..<200 {
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<5: next += try Self.publish(messages[next...], token: UInt64(next), pair)
                case 5 where next < 80:
                    next += try Self.publish(messages[next...next], token: UInt64(next), pair)
                case 6:
                    pair.cut()
                    try pair.open()
                case 7..<13:
                    pair.flush()
                    pair.deliver(to: pair.server, atMost: Int.random(in: 1...200, using: &random))
                default:
                    pair.flush()
                    pair.deliver(to: pair.client, atMost: Int.random(in: 1...30, using: &random))
                }
            }
            pair.settle()
            while next < 80 {
                next += try Self.publish(messages[next...], token: UInt64(next), pair)
                pair.settle()
            }
            pair.settleInTime()
            let note: Comment = "round \(round), CAMPAIGN_SEED=\(Campaign.seed)"
            #expect(Self.ends(pair.client).sorted() == Array(0..<80) && pair.client.engine.inFlightCount == 0, note)
            #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged }, note)
            let exactlyOnce = pair.server.messages.filter { $0.qos == .exactlyOnce }.map(\.payload)
            #expect(exactlyOnce == messages.filter { $0.qos == .exactlyOnce }.map(\.payload), note)
            let others = Set(pair.server.messages.filter { $0.qos == .atLeastOnce }.map(\.payload))
            #expect(others == Set(messages.filter { $0.qos == .atLeastOnce }.map(\.payload)), note)
        }
    }

    @Test func `a message that is refused leaves the others alone`() throws {
        let pair = EnginePair()
        pair.connackProperties.retainAvailable = false
        try pair.connect()
        let good = Self.message(1)
        var (wildcard, large) = (good, good)
        wildcard.topic = "a/topic/of/#/some/length"
        large.payload = [UInt8](repeating: 0, count: 300)
        pair.client.engine.limits.maximumPacketSize = 200
        for (odd, code) in [
            (wildcard, MQTTUsageError.Code.invalidTopic), (Self.message(4, retain: true), .retainNotAvailable),
            (large, .packetTooLarge),
        ] {
            let before = pair.client.engine.output
            #expect(try Self.publish([good, good], token: 1, pair) == 2)
            let written = pair.client.engine.output
            let error = #expect(throws: MQTTUsageError.self) { try Self.publish([odd], token: 3, pair) }
            #expect(error?.code == code && pair.client.engine.output == written && written.count > before.count)
            #expect(try Self.publish([good], token: 4, pair) == 1)
        }
        pair.settle()
        #expect(Self.ends(pair.client) == [1, 2, 4, 1, 2, 4, 1, 2, 4] && pair.client.engine.inFlightCount == 0)
    }

    @Test func `a queue goes first, and so does what is sent again`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 2 })
        try pair.connect()
        for number in 0..<3 { try pair.publish("\(number)", qos: .atLeastOnce, token: UInt64(number)) }
        #expect(try pair.publish("3", qos: .atLeastOnce, token: 3) == .queued)
        pair.cut()
        try pair.open()
        pair.flush()
        #expect(try pair.publish("4", qos: .atLeastOnce, token: 4) == .queued)
        pair.settle()
        #expect(Self.ends(pair.client) == [0, 1, 2, 3, 4])
        #expect(pair.server.texts == ["0", "1", "2", "3", "4"])
    }

    @Test func `the peer may answer in any order`() throws {
        var seed = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(20_000, least: 50) {
            let pair = EnginePair(
                version: .v3_1_1, client: { $0.maximumInFlight = 500 }, server: { $0.maximumInFlight = 500 })
            try pair.connect()
            let tokens = (0..<UInt64.random(in: 1...300, using: &seed)).map { 1000 + $0 }
            let messages = [MQTTOutgoingMessage](repeating: Self.message(1), count: tokens.count)
            #expect(try Self.publish(messages, token: 1000, pair) == tokens.count)
            // Identifiers are given in order on a new connection.
            var ids = Array(1...tokens.count)
            switch round % 3 {
            case 0: break
            case 1:
                let (a, b) = (Int.random(in: 0..<ids.count, using: &seed), Int.random(in: 0..<ids.count, using: &seed))
                ids.swapAt(a, b)
            default: ids.shuffle(using: &seed)
            }
            var rest = Self.puback(ids)
            while !rest.isEmpty {
                let count = min(rest.count, Int.random(in: 1...100, using: &seed) * 4)
                Self.receive(Array(rest[..<count]), pair.client)
                rest.removeFirst(count)
            }
            let expected = ids.map { tokens[$0 - 1] }
            #expect(Self.ends(pair.client) == expected, "seed \(Campaign.seed), round \(round)")
            #expect(pair.client.engine.inFlightCount == 0 && pair.client.violation == nil)
            // Every identifier is free again, and a repeated answer finds nobody.
            Self.receive(Self.puback(1...tokens.count), pair.client)
            #expect(Self.ends(pair.client) == expected && pair.client.violation == nil)
        }
    }

    @Test func `a lost connection sends the rest again, in order`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 200 })
        try pair.connect()
        try pair.publish("first", qos: .atLeastOnce, token: 1)
        let messages = (0..<100).map { Self.message($0) }
        try Self.publish(messages, token: 2, pair)
        try pair.publish("last", qos: .exactlyOnce, token: 200)
        pair.client.engine.output = []
        // The first eleven are acknowledged.
        Self.receive(Self.puback(1...11), pair.client)
        #expect(Self.ends(pair.client) == [1] + (2..<12))
        pair.cut()
        #expect(pair.client.engine.inFlightCount == 91)
        pair.client.sent = []
        try pair.connect()
        let again = pair.client.publishes
        #expect(again.map(\.payload) == messages[10...].map(\.payload) + [Array("last".utf8)])
        #expect(again.allSatisfy { $0.isDuplicate })
        #expect(again.map(\.packetID) == Array(UInt16(12)...102))
        #expect(Self.ends(pair.client).count == 102 && pair.client.engine.inFlightCount == 0)
    }

    @Test func `a refusal and a remark among plain answers concern one message`() throws {
        let pair = EnginePair(client: { $0.maximumInFlight = 10 })
        try pair.connect()
        let messages = (0..<4).map { Self.message($0) }
        try Self.publish(messages, token: 5, pair)
        let noReceivers: [UInt8] = [0x40, 3, 0, 2, 0x10]
        let refused: [UInt8] = [0x40, 8, 0, 3, 0x97, 4, 0x1F, 0, 1, 0x6E]
        Self.receive(Self.puback([1]) + noReceivers + refused + Self.puback([4]), pair.client)
        #expect(
            pair.client.completions == [
                .init(token: 5, outcome: .acknowledged, reason: .success),
                .init(token: 6, outcome: .acknowledged, reason: .noMatchingSubscribers),
                .init(token: 7, outcome: .refused, reason: .quotaExceeded, remark: 0),
                .init(token: 8, outcome: .acknowledged, reason: .success),
            ])
        #expect(pair.client.engine.inFlightCount == 0)
    }

    @Test func `a session that is lost or given up ends each message`() throws {
        for givesUp in [true, false] {
            let pair = EnginePair.persistent(client: { $0.republishesAfterSessionLoss = false })
            pair.serverKeepsSession = false
            try pair.connect()
            try Self.publish((0..<9).map { Self.message($0) }, token: 4, pair)
            pair.cut()
            if givesUp {
                pair.client.run { engine, effects in try? engine.discardSession(into: &effects) }
            } else {
                try pair.connect()
            }
            #expect(pair.client.completions.count == 9)
            #expect(pair.client.completions.allSatisfy { $0.outcome == (givesUp ? .discarded : .sessionLost) })
        }
    }

    @Test func `acknowledgements that come together make room for as many messages, whatever stands between them`()
        throws
    {
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        engine.configuration.version = .v3_1_1
        engine.configuration.maximumInFlight = 3
        var effects = MQTTEffects()
        try engine.connectionOpened(at: 0)
        func received(_ bytes: [UInt8]) -> (completed: [UInt64], sent: [MQTTPacket]) {
            engine.output.removeAll()
            effects.removeAll()
            let consumed = engine.receive(bytes.span.bytes, at: 0, into: &effects)
            #expect(consumed == bytes.count)
            return (effects.completions.map(\.token), DecodingRun(whole: engine.output, version: .v3_1_1).packets)
        }
        _ = received([0x20, 2, 0, 0])
        for token in 1...9 {
            _ = try engine.publish(
                topic: "a/b", payload: [UInt8(token)], qos: .atLeastOnce, token: UInt64(token), at: 0)
        }
        func publish(_ number: UInt8) -> MQTTPacket {
            .publish(.init(topic: "a/b", payload: [number], qos: .atLeastOnce, packetID: UInt16(number)))
        }
        let puback = [1, 2, 3, 4, 5, 6].map { [0x40, 2, 0, $0] as [UInt8] }
        let first = received(puback[0] + puback[1] + puback[2])
        #expect(first.completed == [1, 2, 3] && first.sent == [publish(4), publish(5), publish(6)])
        // One that nobody waits for, one that comes twice, and PINGRESP.
        let second = received(puback[3] + [0x40, 2, 1, 0] + puback[3] + [0xD0, 0] + puback[5] + puback[4])
        #expect(second.completed == [4, 6, 5] && second.sent == [publish(7), publish(8), publish(9)])
    }
}
