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

    @Test func `a topic keeps its index while a batch lasts, however many there are`() throws {
        var cache = TopicCache()
        for round in 0..<6 {
            cache.beginBatch()
            var indexes: [(String, Int, UInt64)] = []
            for number in 0..<3000 {
                let topic = "round/\(number % 1500)/of/\(round % 2)"
                let index = try cache.index(of: Array(topic.utf8).span.bytes)
                indexes.append((topic, index, cache.generation(at: index)))
            }
            for (topic, index, generation) in indexes {
                #expect(cache.string(at: index) == topic)
                #expect(cache.generation(at: index) == generation)
                #expect(generation != 0)
            }
        }
    }

    @Test func `a topic that stays keeps index and generation over batches`() throws {
        var cache = TopicCache()
        let topic = Array("devices/one/temperature".utf8)
        cache.beginBatch()
        let index = try cache.index(of: topic.span.bytes)
        let generation = cache.generation(at: index)
        for _ in 0..<100 {
            cache.beginBatch()
            #expect(try cache.index(of: topic.span.bytes) == index)
            #expect(cache.generation(at: index) == generation)
        }
    }

    @Test func `a topic that is none is refused and leaves nothing behind`() throws {
        var cache = TopicCache()
        for bytes in [[0xC3, 0x28], [0x61, 0], [0x61, 0x2B], [0xED, 0xA0, 0x80]] as [[UInt8]] {
            for _ in 0..<2 { #expect(throws: MQTTProtocolError.self) { try cache.index(of: bytes.span.bytes) } }
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

    @Test func `a record of a message is 32 bytes of plain data`() {
        #expect(MemoryLayout<MQTTMessageRecord>.stride == 32)
        #expect(_isPOD(MQTTMessageRecord.self))
        #expect(MemoryLayout<MQTTPublishCompletion>.stride <= 16)
    }
}
