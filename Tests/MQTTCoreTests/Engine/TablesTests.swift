import MessagingWire
import TestSupport
import Testing

@testable import MQTTCore

@Suite("Engine: tables", .heavy)
struct TablesTests {
    @Test func `packet identifiers are non-zero, unused, and used up only all together [MQTT-2.2.1-3]`() {
        var set = PacketIDSet()
        var seen: Set<UInt16> = []
        for _ in 0..<65_535 {
            guard let id = set.reserve() else {
                Issue.record("used up at \(seen.count)")
                return
            }
            #expect(id != 0 && seen.insert(id).inserted)
        }
        #expect(set.reserve() == nil)
        set.release(777)
        #expect(set.reserve() == 777)
    }

    @Test func `an identifier just freed is not taken at once, and few in use need little memory`() {
        var set = PacketIDSet()
        var last: UInt16 = 0
        for _ in 0..<10_000 {
            let id = set.reserve() ?? 0
            #expect(id != last)
            set.release(id)
            last = id
        }
        #expect(set.span <= 128)
        #expect(set.count == 0)
    }

    @Test func `identifiers behave as a model set under random use`() {
        var random = SeededGenerator(seed: Campaign.seed)
        var set = PacketIDSet()
        var model: Set<UInt16> = []
        for _ in 0..<Campaign.rounds(1_000_000) {
            switch Int.random(in: 0..<5, using: &random) {
            case 0...2:
                guard let id = set.reserve() else {
                    // A long campaign takes them all.
                    #expect(model.count == 65_535)
                    continue
                }
                #expect(id != 0 && model.insert(id).inserted)
            case 3:
                guard let id = model.randomElement(using: &random) else { continue }
                model.remove(id)
                set.release(id)
            default:
                let id = UInt16.random(in: 0...300, using: &random)
                #expect(set.insert(id) == (id != 0 && model.insert(id).inserted))
            }
            #expect(set.count == model.count)
        }
    }

    @Test func `every topic is found under its number, and no other`() {
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(20) {
            var table = TopicTable(seed: random.next())
            var model: [String: UInt16] = [:]
            for number in 1...UInt16.random(in: 1...5000, using: &random) {
                let topic = String(repeating: "t", count: Int.random(in: 0...40, using: &random)) + "\(number)"
                #expect(topic.withUTF8Span { table.number(of: $0) } == 0)
                topic.withUTF8Span { table.insert($0, number: number) }
                model[topic] = number
            }
            // A topic for which a search would take too long is not retained; that is rare.
            let found = model.filter { topic, number in topic.withUTF8Span { table.number(of: $0) } == number }
            #expect(found.count == table.count)
            #expect(table.count >= model.count - 2)
            for topic in model.keys { #expect((topic + "/x").withUTF8Span { table.number(of: $0) } == 0) }
            table.removeAll(keepingCapacity: Bool.random(using: &random))
            #expect(table.count == 0 && model.keys.allSatisfy { $0.withUTF8Span { table.number(of: $0) } == 0 })
        }
    }

    @Test func `topics that all collide cost a bounded search and a bounded table`() {
        // With a known seed the bytes can be chosen; the table is then merely less useful.
        var table = TopicTable(seed: 0)
        var inserted = 0
        var number: UInt16 = 0
        while inserted < 100 {
            number += 1
            let topic = "\(number)"
            // The position is taken from the upper half of the hash.
            guard topic.withUTF8Span({ $0.hashed(seed: 0) >> 32 & 0xFF }) == 7 else { continue }
            topic.withUTF8Span { table.insert($0, number: number) }
            inserted += 1
        }
        #expect((16..<100).contains(table.count))
        #expect(table.byteCount < 1 << 14)
    }

    @Test func `a table of topics notices its bound and gives its memory back`() {
        var table = TopicTable(seed: 1)
        #expect(table.byteCount == 0)
        var number = 0
        while !table.isFull {
            number += 1
            "a/topic/of/a/hostile/peer/\(number)".withUTF8Span { table.insert($0, number: 1) }
        }
        #expect(table.byteCount < 2 * TopicTable.maximumBytes)
        table.removeAll()
        #expect(table.byteCount == 0)
    }

    @Test func `names that are not topics are refused`() throws {
        for bytes in [[0xC3, 0x28], [0x61, 0], [0x61, 0x2B], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            #expect(throws: MQTTProtocolError.self) { try MQTTTopicName.validate(bytes.span.bytes) }
        }
    }

    @Test func `the order of arrival is kept over any order of answers`() {
        var random = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(10_000) {
            var order = InboundOrder()
            var waiting: [UInt64] = []
            var popped: [UInt16] = []
            for id in 1...UInt16.random(in: 1...40, using: &random) {
                waiting.append(
                    order.append(
                        .init(
                            packetID: id, isQoS2: false, isRepeat: false, isAnswered: false, reason: 0, ticket: 0)))
                while Bool.random(using: &random), let token = waiting.randomElement(using: &random) {
                    waiting.removeAll { $0 == token }
                    #expect(order.answer(token, reason: 0) != nil)
                    #expect(order.answer(token, reason: 0) == nil)
                    while let entry = order.popAnswered(persistedThrough: .max) { popped.append(entry.packetID) }
                }
            }
            #expect(popped == Array(popped.indices.map { UInt16($0 + 1) }))
            order.answerAll(through: .max) { _, _ in }
            while let entry = order.popAnswered(persistedThrough: .max) { popped.append(entry.packetID) }
            #expect(popped == popped.indices.map { UInt16($0 + 1) })
            #expect(order.count == 0)
        }
    }

    @Test func `answers of one message, of a range and of all before one leave as those of a list that is searched`() {
        struct Expected {
            var entry: InboundOrder.Entry
            var isAnswered = false
        }
        var random = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(2_000) {
            var order = InboundOrder()
            var expected: [UInt64: Expected] = [:]
            var (next, head) = (UInt64(1), UInt64(1))
            var (left, expectedLeft): ([UInt16], [UInt16]) = ([], [])
            let hasExactlyOnce = round % 2 == 0
            func answer(_ tokens: ClosedRange<UInt64>, _ taken: [UInt64], withRepeats: Bool) {
                var expectedTaken: [UInt64] = []
                for token in tokens {
                    guard let known = expected[token], !known.entry.isRepeat || withRepeats else { continue }
                    if known.entry.isQoS2, !(withRepeats && known.isAnswered) { expectedTaken.append(token) }
                    expected[token]?.isAnswered = true
                }
                #expect(taken == expectedTaken)
            }
            for _ in 0..<60 {
                switch Int.random(in: 0..<6, using: &random) {
                case 0...2:
                    for _ in 0..<Int.random(in: 1...8, using: &random) {
                        var entry = InboundOrder.Entry(packetID: UInt16(next), isQoS2: false)
                        entry.isQoS2 = hasExactlyOnce && Int.random(in: 0..<4, using: &random) == 0
                        entry.isRepeat = entry.isQoS2 && Bool.random(using: &random)
                        #expect(order.append(entry) == next)
                        expected[next] = Expected(entry: entry)
                        next += 1
                    }
                case 3:
                    let from = UInt64.random(in: 1...next, using: &random)
                    let tokens = from...UInt64.random(in: from...next + 2, using: &random)
                    var taken: [UInt64] = []
                    order.answer(tokens) { token, _ in taken.append(token) }
                    answer(tokens, taken, withRepeats: false)
                case 4:
                    let token = UInt64.random(in: 1...next, using: &random)
                    let isOpen = expected[token]?.isAnswered == false
                    #expect((order.answer(token, reason: 0) != nil) == isOpen)
                    expected[token]?.isAnswered = true
                default:
                    let token = UInt64.random(in: 1...next, using: &random)
                    var taken: [UInt64] = []
                    order.answerAll(through: token) { token, _ in taken.append(token) }
                    answer(1...token, taken, withRepeats: true)
                }
                guard Bool.random(using: &random) else { continue }
                while let known = expected[head], known.isAnswered {
                    expectedLeft.append(known.entry.packetID)
                    expected[head] = nil
                    head += 1
                }
                // As the engine does: PUBACK of as many as possible, then what needs more than that.
                while true {
                    var packets: [UInt8] = []
                    let hasWritten = order.writePubacks(into: &packets, persistedThrough: 0)
                    #expect(hasWritten == !packets.isEmpty)
                    for start in stride(from: 0, to: packets.count, by: 4) {
                        left.append(UInt16(packets[start + 2]) << 8 | UInt16(packets[start + 3]))
                    }
                    guard let entry = order.popAnswered(persistedThrough: 0) else { break }
                    #expect(entry.isQoS2)
                    left.append(entry.packetID)
                }
                #expect(left == expectedLeft)
                #expect(order.count == Int(next - head))
            }
        }
    }

    @Test func `a message that leaves the queue from behind those with an identifier is not one of them`() throws {
        var window = SendWindow()
        var head = PublishHead(topic: "a", flags: MQTTPublishFlags(.atLeastOnce))
        for token in 1...2 as ClosedRange<UInt64> {
            let id = window.reserveID()
            head.packetID = try #require(id)
            window.recordSent(head, [], [], token: token, at: 0)
        }
        head.packetID = 0
        let queued = window.enqueue(head, [], [], token: 3, at: 0)
        var (first, isIdentified) = (window.firstUnidentified(), false)
        #expect(first == queued)
        isIdentified = window.identify(first)
        #expect(isIdentified)
        window.connectionClosed()
        window.requeueAll(wereSent: true)
        window.checkInvariants(isOpen: false, passes: false)
        first = window.firstUnidentified()
        isIdentified = window.identify(first)
        #expect(isIdentified)
        window.dropQueued(queued)
        #expect(window.identifiedCount == 1)
        window.checkInvariants(isOpen: false, passes: false)
    }

    @Test func `a record of a message is 32 bytes of plain data`() {
        #expect(MemoryLayout<MQTTMessageRecord>.stride == 32)
        #expect(_isPOD(MQTTMessageRecord.self))
        #expect(MemoryLayout<MQTTPublishCompletion>.stride <= 16)
    }
}
