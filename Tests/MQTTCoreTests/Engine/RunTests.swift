import TestSupport
import Testing
import Wire

@testable import MQTTCore

/// Many messages handed over at once: the same packets, the same ends and the same order as one by one.
@Suite(.heavy) struct RunTests {
    private static func message(_ number: Int, qos: QoS = .atLeastOnce, retain: Bool = false) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            topic: "a/topic/of/some/length", payload: Array("\(number)".utf8), qos: qos, retain: retain)
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

    /// Every message that completed, by its token, as often as it was counted.
    private static func ends(_ end: EnginePair.End) -> [UInt64] {
        end.completions.flatMap { end in (0..<UInt64(end.count)).map { end.token + $0 } }
    }

    @Test func `a run is written as its messages are one by one, up to the window`() throws {
        for version in MQTTVersion.allCases {
            let messages = (0..<100).map { Self.message($0, retain: $0 % 3 == 0) }
            let run = EnginePair(version: version, client: { $0.maximumInFlight = 80 })
            let single = EnginePair(version: version, client: { $0.maximumInFlight = 80 })
            try run.connect()
            try single.connect()
            let next = run.client.engine.publishRunAcknowledged(messages, from: 0, token: 7, at: run.now)
            for message in messages[..<80] {
                _ = try single.client.engine.publish(
                    topic: message.topic, payload: message.payload, qos: .atLeastOnce, retain: message.retain,
                    token: 7, at: run.now)
            }
            #expect(next == 80 && run.client.engine.inFlightCount == 80)
            #expect(run.client.engine.output == single.client.engine.output)
            run.settle()
            #expect(Self.ends(run.client) == (0..<80).map { 7 + $0 })
            #expect(run.client.completions.count < 80, "they are counted together")
            #expect(run.client.engine.inFlightCount == 0)
            #expect(run.server.messages.map(\.payload) == messages[..<80].map(\.payload))
            // And the rest, behind identifiers that were all given back.
            let end = run.client.engine.publishRunAcknowledged(messages, from: next, token: 8, at: run.now)
            run.settle()
            #expect(end == 100 && Self.ends(run.client).suffix(20) == (80..<100).map { 8 + $0 })
        }
    }

    @Test(arguments: [QoS.atMostOnce, .atLeastOnce])
    func `a run writes plain properties as single messages do`(_ qos: QoS) throws {
        let lists: [MQTTProperties] = [
            [], [.userProperty("source", "sensor7"), .userProperty("region", "north")], [.contentType("text")],
            [
                .messageExpiryInterval(60), .payloadFormatIndicator(true), .correlationData([1, 2]),
                .responseTopic("a"),
            ],
        ]
        var messages = (0..<40).map { Self.message($0 / 3, qos: qos) }
        for index in messages.indices { messages[index].properties = lists[index / 2 % lists.count] }
        let (run, single) = (EnginePair(), EnginePair())
        for pair in [run, single] { try pair.connect() }
        let end =
            qos == .atMostOnce
            ? run.client.engine.publishRunAtMostOnce(messages[...], from: 0, outputLimit: .max)
            : run.client.engine.publishRunAcknowledged(messages, from: 0, token: 1, at: run.now)
        #expect(end == 40)
        for message in messages {
            _ = try single.client.engine.publish(
                topic: message.topic, payload: message.payload, qos: qos, properties: message.properties, token: 1,
                at: single.now)
        }
        #expect(run.client.engine.output == single.client.engine.output)
        run.settle()
        #expect(run.server.messages.map(\.payload) == messages.map(\.payload))
    }

    @Test func `a run of QoS 2 is written as its messages are one by one, and ends in one completion`() throws {
        for version in MQTTVersion.allCases {
            let messages = (0..<60).map { Self.message($0, qos: .exactlyOnce) }
            let (run, single) = (EnginePair(version: version), EnginePair(version: version))
            for pair in [run, single] { try pair.connect() }
            #expect(run.client.engine.publishRunAcknowledged(messages, from: 0, token: 1, at: run.now) == 60)
            for message in messages {
                _ = try single.client.engine.publish(
                    topic: message.topic, payload: message.payload, qos: .exactlyOnce, token: 1, at: single.now)
            }
            for pair in [run, single] { pair.settle() }
            #expect(run.client.sent == single.client.sent)
            #expect(Self.ends(run.client).count == 60 && run.client.completions.count < 60)
            #expect(run.server.messages.map(\.payload) == messages.map(\.payload))
            #expect(run.client.engine.inFlightCount == 0)
        }
    }

    @Test func `QoS 2 by array arrives exactly once over cut connections, whatever is cut and mixed`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(5000) {
            let pair = EnginePair.persistent(
                version: MQTTVersion.allCases.randomElement(using: &random)!, client: { $0.maximumInFlight = 30 })
            try pair.connect()
            let messages = (0..<80).map { Self.message($0, qos: $0 / 7 % 3 == 1 ? .atLeastOnce : .exactlyOnce) }
            var next = 0
            func publishOne() throws {
                let message = messages[next]
                _ = try pair.client.engine.publish(
                    topic: message.topic, payload: message.payload, qos: message.qos, token: 1, at: pair.now)
                next += 1
            }
            for _ in 0..<200 {
                switch Int.random(in: 0..<20, using: &random) {
                case 0..<5:
                    next = pair.client.engine.publishRunAcknowledged(messages, from: next, token: 1, at: pair.now)
                case 5 where next < 80: try publishOne()
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
                try publishOne()
                pair.settle()
            }
            let note: Comment = "round \(round), CAMPAIGN_SEED=\(Campaign.seed)"
            #expect(Self.ends(pair.client).count == 80 && pair.client.engine.inFlightCount == 0, note)
            #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged }, note)
            let exactlyOnce = pair.server.messages.filter { $0.qos == .exactlyOnce }.map(\.payload)
            #expect(exactlyOnce == messages.filter { $0.qos == .exactlyOnce }.map(\.payload), note)
            let others = Set(pair.server.messages.filter { $0.qos == .atLeastOnce }.map(\.payload))
            #expect(others == Set(messages.filter { $0.qos == .atLeastOnce }.map(\.payload)), note)
        }
    }

    @Test func `a list of properties remembers what it has through every change`() {
        var list: MQTTProperties = [.contentType("a"), .userProperty("b", "c"), .topicAlias(1)]
        #expect(!list.arePlain && list.contains(.topicAlias))
        list.topicAlias = nil
        #expect(list.arePlain && !list.contains(.topicAlias))
        list.append(.contentType("d"))
        #expect(!list.arePlain)
        list.removeAll(.contentType)
        #expect(list.arePlain && list == [.userProperty("b", "c")])
        list.messageExpiryInterval = 5
        #expect(list.arePlain && list.messageExpiryInterval == 5)
        list[.payloadFormatIndicator] = .integer(7)
        #expect(!list.arePlain)
        list.payloadFormatIndicator = true
        #expect(list.arePlain)
        list.subscriptionIdentifiers = [1, 2]
        #expect(!list.arePlain && list.subscriptionIdentifiers == [1, 2])
    }

    @Test func `a run leaves to the general path what is not plain`() throws {
        let pair = EnginePair()
        let plain = Self.message(1)
        let offline = pair.client.engine.publishRunAcknowledged([plain], from: 0, token: 1, at: 0)
        #expect(offline == 0)
        pair.connackProperties.retainAvailable = false
        try pair.connect()
        var withProperties = plain
        withProperties.properties.contentType = String(repeating: "long", count: 50)
        var short = plain
        short.topic = "short"
        var wildcard = plain
        wildcard.topic = "a/topic/of/#/some/length"
        for odd in [
            withProperties, short, wildcard, Self.message(2, qos: .exactlyOnce), Self.message(3, qos: .atMostOnce),
            Self.message(4, retain: true),
        ] {
            let before = pair.client.engine.inFlightCount
            let next = pair.client.engine.publishRunAcknowledged(
                [plain, plain, odd, plain], from: 0, token: 1, at: pair.now)
            #expect(next == 2 && pair.client.engine.inFlightCount == before + 2)
            let stuck = pair.client.engine.publishRunAcknowledged([odd], from: 0, token: 1, at: pair.now)
            // Messages of QoS 2 are a run of their own.
            let own = odd.qos == .exactlyOnce ? 1 : 0
            #expect(stuck == own && pair.client.engine.inFlightCount == before + 2 + own)
        }
        pair.settle()
        #expect(Self.ends(pair.client).count == 13 && pair.client.engine.inFlightCount == 0)
    }

    @Test func `a queue goes first, and so does what is sent again`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 2 })
        try pair.connect()
        for number in 0..<3 { try pair.publish("\(number)", qos: .atLeastOnce, token: UInt64(number)) }
        let queued = pair.client.engine.publishRunAcknowledged([Self.message(9)], from: 0, token: 9, at: 0)
        #expect(queued == 0)
        pair.cut()
        try pair.open()
        pair.flush()
        let early = pair.client.engine.publishRunAcknowledged([Self.message(9)], from: 0, token: 9, at: 0)
        #expect(early == 0)
        pair.settle()
        #expect(Self.ends(pair.client).sorted() == [0, 1, 2])
    }

    @Test(arguments: [true, false])
    func `the peer may answer in any order, with single messages between the runs`(mixes: Bool) throws {
        var seed = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(20_000, least: 50) {
            let pair = EnginePair(
                version: .v3_1_1, client: { $0.maximumInFlight = 500 }, server: { $0.maximumInFlight = 500 })
            try pair.connect()
            var tokens: [UInt64] = []
            for token in UInt64(1)...UInt64.random(in: 1...6, using: &seed) {
                if mixes, Bool.random(using: &seed) {
                    try pair.publish("x", qos: .atLeastOnce, token: token)
                    tokens.append(token)
                } else {
                    let count = Int.random(in: 1...80, using: &seed)
                    let messages = [MQTTOutgoingMessage](repeating: Self.message(1), count: count)
                    let next = pair.client.engine.publishRunAcknowledged(
                        messages, from: 0, token: token * 1000, at: 0)
                    #expect(next == count)
                    tokens += (0..<UInt64(count)).map { token * 1000 + $0 }
                }
            }
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

    @Test func `a lost connection sends the rest of its runs again, in order`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 200 })
        try pair.connect()
        try pair.publish("first", qos: .atLeastOnce, token: 1)
        let messages = (0..<100).map { Self.message($0) }
        _ = pair.client.engine.publishRunAcknowledged(messages, from: 0, token: 2, at: pair.now)
        try pair.publish("last", qos: .exactlyOnce, token: 3)
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
        #expect(again.map(\.packetID) == (12...102).map(UInt16.init))
        #expect(Self.ends(pair.client).count == 102 && pair.client.engine.inFlightCount == 0)
    }

    @Test func `a refusal and a remark within a run concern one message`() throws {
        let pair = EnginePair(client: { $0.maximumInFlight = 10 })
        try pair.connect()
        let messages = (0..<4).map { Self.message($0) }
        _ = pair.client.engine.publishRunAcknowledged(messages, from: 0, token: 5, at: pair.now)
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

    @Test func `a session that is lost or given up ends each message of its runs`() throws {
        for givesUp in [true, false] {
            let pair = EnginePair.persistent(client: { $0.republishesAfterSessionLoss = false })
            pair.serverKeepsSession = false
            try pair.connect()
            _ = pair.client.engine.publishRunAcknowledged((0..<9).map { Self.message($0) }, from: 0, token: 4, at: 0)
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
}
