import MQTTCore
import TestSupport
import Testing

@testable import MQTT

@Suite("Delivery: what a batch keeps", .turns)
struct BatchStorageTests {
    private func record(_ payload: Range<Int>, properties: Int = 0, delivery: UInt64 = 0) -> MQTTMessageRecord {
        MQTTMessageRecord(
            delivery: delivery, topic: 9, propertiesStart: UInt32(payload.lowerBound - properties),
            payloadStart: UInt32(payload.lowerBound), payloadCount: UInt32(payload.count),
            packetID: delivery == 0 ? 0 : 7, flags: MQTTPublishFlags(rawValue: delivery == 0 ? 1 : 0b0010))
    }

    @Test func `payloads of all sizes are packed one behind the other, up to both ends of what was read`() {
        var random = SeededGenerator(seed: Campaign.seed)
        for round in 0..<200 {
            let gap = round % 4 * 20
            var source: [UInt8] = []
            var records: [MQTTMessageRecord] = []
            var payloads: [[UInt8]] = []
            for _ in 0..<Int.random(in: 1...60, using: &random) {
                source += [UInt8](repeating: 0xFF, count: gap)
                let payload = (0..<Int.random(in: 0...80, using: &random)).map { _ in UInt8.random(in: 0...9) }
                records.append(record(source.count..<source.count + payload.count))
                payloads.append(payload)
                source += payload
            }
            var storage = MQTTBatchStorage()
            let total = payloads.reduce(0) { $0 + $1.count }
            storage.fill(records.span, of: source.span.bytes, payloadBytes: total)
            #expect(storage.bytes == payloads.flatMap(\.self))
            #expect(storage.details.isEmpty)
            let batch = MQTTBatch(storage, topics: ["t"], version: .v3_1_1, core: nil)
            let messages = MQTTSubscription.Batch(batch, from: 0)
            #expect(messages.map(\.bytes) == payloads)
            #expect(messages.allSatisfy { $0.isRetained && $0.qos == .atMostOnce && $0.packetID == nil })
            #expect(batch.byteCount == total + 16 * payloads.count)
        }
    }

    @Test func `only messages that have more to say cost more, and all keep their places`() {
        let source = (0..<200).map { UInt8($0) }
        let deliveries: [UInt64] = [0, 0, 5, 0, 6]
        let records = deliveries.enumerated().map { index, delivery in
            record(index * 10 + 2..<index * 10 + 6, properties: index == 3 ? 2 : 0, delivery: delivery)
        }
        var storage = MQTTBatchStorage()
        var number: UInt32 = 0
        storage.fill(records.span, of: source.span.bytes) { _ in
            defer { number += 1 }
            return number
        }
        #expect(storage.details.map(\.delivery) == deliveries)
        #expect(storage.details.map(\.propertiesCount) == [0, 0, 0, 2, 0])
        let topics = ["a", "b", "c", "d", "e"]
        let batch = MQTTBatch(storage, topics: topics, version: .v5_0, core: nil)
        let messages = MQTTSubscription.Batch(batch, from: 0)
        #expect(messages.map(\.topic) == topics)
        #expect(messages.map(\.bytes) == (0..<5).map { Array(source[$0 * 10 + 2..<$0 * 10 + 6]) })
        #expect(messages.map(\.packetID) == [nil, nil, 7, nil, 7])
        #expect(batch.message(at: 3).properties.count == 2)
        #expect(batch.copy().dropOldest(2) == 2 && batch.count == 5)
        #expect(batch.dropOldest(4) == 3)
        let left = MQTTSubscription.Batch(batch, from: 0)
        #expect(left.map(\.topic) == ["c", "e"] && left.map(\.packetID) == [7, 7])
        #expect(batch.detail(at: 1).delivery == 6)
    }
}
