import MQTTCore
import TestSupport
import Testing

@Suite("Store: records as bytes")
struct StoreCodingTests {
    private func random(_ generator: inout SeededGenerator) -> MQTTStoreRecord {
        let sequence = UInt64.random(in: 1...20, using: &generator)
        let id = UInt16.random(in: 1...20, using: &generator)
        switch Int.random(in: 0..<19, using: &generator) {
        case 0: return .established
        case 1: return .identified(sequence: sequence, packetID: id + 100)
        case 2: return .released(sequence: sequence)
        case 3, 4: return .finished(sequence: sequence)
        case 5: return .received(packetID: id)
        case 6: return .receivedReleased(packetID: id)
        case 7: return Int.random(in: 0..<10, using: &generator) == 0 ? .discarded : .receivedForgotten
        case 8: return .keptFinished(sequence: sequence)
        case 9: return .retired(packetID: id)
        case 10:
            return .kept(
                .init(
                    sequence: sequence, packetID: id, topic: "k/\(sequence)",
                    payload: generator.bytes(Int.random(in: 0..<30, using: &generator)),
                    qos: Bool.random(using: &generator) ? .atLeastOnce : .exactlyOnce,
                    retain: Bool.random(using: &generator), properties: [],
                    time: Int64.random(in: .min ... .max, using: &generator)))
        case 11: return .filterWanted("f/\(id % 4)/ä")
        case 12: return .filterEnded("f/\(id % 4)/ä")
        case 13: return .filterForgotten("f/\(id % 4)/ä")
        default:
            var properties = MQTTProperties()
            if Bool.random(using: &generator) { properties.userProperties = [.init("ä", "\u{FEFF}")] }
            return .message(
                .init(
                    sequence: sequence, packetID: Bool.random(using: &generator) ? 0 : UInt16(sequence),
                    topic: "t/\(sequence)", payload: generator.bytes(Int.random(in: 0..<300, using: &generator)),
                    qos: Bool.random(using: &generator) ? .atLeastOnce : .exactlyOnce,
                    retain: Bool.random(using: &generator), properties: properties,
                    time: Bool.random(using: &generator) ? 0 : Int64.random(in: .min ... .max, using: &generator)))
        }
    }

    @Test func `the checksum is CRC-32C`() {
        #expect(CRC32C.checksum(Array("123456789".utf8)[...]) == 0xE306_9283)
        #expect(CRC32C.checksum([]) == 0)
        #expect(CRC32C.checksum([UInt8](repeating: 0, count: 32)[...]) == 0x8A91_36AA)
        #expect(CRC32C.checksum([UInt8](repeating: 0xFF, count: 32)[...]) == 0x62A8_AB43)
        #expect(CRC32C.checksum(Array(0..<32)[...]) == 0x46DD_794E)
        // Of a part of an array, wherever it begins and however long it is: bit by bit it is the same.
        let bytes = (0..<40).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 11) }
        for start in 0..<9 {
            for end in start...bytes.count {
                var value = UInt32.max
                for byte in bytes[start..<end] {
                    value ^= UInt32(byte)
                    for _ in 0..<8 { value = value & 1 == 1 ? value >> 1 ^ 0x82F6_3B78 : value >> 1 }
                }
                #expect(CRC32C.checksum(bytes[start..<end]) == ~value)
            }
        }
    }

    @Test func `every record is read as it was written, and nothing else is a record`() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(100_000) {
            let record = random(&generator)
            var bytes: [UInt8] = []
            try record.encode(into: &bytes)
            #expect(MQTTStoreRecord(decoding: bytes) == record)
            for cut in 0..<min(bytes.count, 40) { #expect(MQTTStoreRecord(decoding: Array(bytes[..<cut])) == nil) }
            #expect(MQTTStoreRecord(decoding: bytes + [0]) == nil)
            // Damaged bytes may be another record, and never a trap.
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] ^= UInt8.random(in: 1...255, using: &generator)
            _ = MQTTStoreRecord(decoding: bytes)
        }
    }

    @Test func `the image of a log restores the same session as the log`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(20_000) {
            let log = (0..<Int.random(in: 0..<60, using: &generator)).map { _ in random(&generator) }
            var image = MQTTSessionImage()
            for record in log { image.apply(record) }
            let direct = MQTTSession(restoring: log)
            let shortened = MQTTSession(restoring: image.records)
            #expect(Set(direct.records) == Set(shortened.records), "round \(round)")
            var again = MQTTSessionImage()
            for record in image.records { again.apply(record) }
            #expect(again.records == image.records, "round \(round)")
            #expect(image.messageCount == direct.queuedCount + direct.inFlightCount)
        }
    }

    @Test func `the last record of a filter counts, and a filter that no server can have is passed over`() {
        var image = MQTTSessionImage()
        for record in [
            MQTTStoreRecord.filterWanted("b"), .filterWanted("a/+"), .filterEnded("b"), .filterWanted("c"),
            .filterForgotten("c"), .filterEnded("a/#/b"), .filterWanted(""), .filterForgotten("d"),
        ] { image.apply(record) }
        #expect(image.records == [.filterWanted("a/+"), .filterEnded("b")])
        // Bytes are compared, not characters.
        image.apply(.filterForgotten("a/+"))
        image.apply(.filterWanted("\u{E9}"))
        image.apply(.filterEnded("e\u{301}"))
        #expect(image.records.count == 3)
        image.apply(.discarded)
        #expect(image.records.isEmpty)
        #expect(throws: MQTTEncodingError.self) {
            var bytes: [UInt8] = []
            try MQTTStoreRecord.filterWanted("a#").encode(into: &bytes)
        }
    }

    private func exactlyOnce(_ sequence: UInt64) -> MQTTStoreRecord {
        .message(
            .init(
                sequence: sequence, packetID: UInt16(sequence), topic: "t", payload: [], qos: .exactlyOnce,
                retain: false,
                properties: []))
    }

    @Test func `PUBREL keeps the order of PUBREC, whatever ended or began anew in between`() {
        var image = MQTTSessionImage()
        for sequence in 1...6 { image.apply(exactlyOnce(UInt64(sequence))) }
        for sequence in [5, 3, 6, 1, 3, 2] { image.apply(.released(sequence: UInt64(sequence))) }
        image.apply(.finished(sequence: 6))
        // It is sent from the start under its new identifier, and PUBREC comes again.
        image.apply(.identified(sequence: 5, packetID: 9))
        let released = { image.records.filter { if case .released = $0 { true } else { false } } }
        #expect(released() == [.released(sequence: 3), .released(sequence: 1), .released(sequence: 2)])
        image.apply(.released(sequence: 5))
        #expect(released().last == .released(sequence: 5) && released().count == 4)
    }

    /// Looking for a message among all that are released would be hundreds of times slower.
    @Test func `the end of an exchange costs the same however many are under way`() {
        func cost(released: Bool) -> Duration {
            var image = MQTTSessionImage()
            let sequences = (1...20_000).map { UInt64($0) }
            for sequence in sequences { image.apply(exactlyOnce(sequence)) }
            if released { for sequence in sequences { image.apply(.released(sequence: sequence)) } }
            return ThreadTime.measure {
                for sequence in sequences.reversed() { image.apply(.finished(sequence: sequence)) }
            }
        }
        #expect(cost(released: true) < cost(released: false) * 20)
    }

    @Test func `a kept message stands for its identifier until PUBREL`() {
        let kept = MQTTStoreRecord.kept(
            .init(
                sequence: 1, packetID: 5, topic: "k", payload: [1], qos: .exactlyOnce, retain: false, properties: [],
                time: 9))
        var image = MQTTSessionImage()
        // All that was written of the two records when the process died.
        image.apply(kept)
        #expect(image.records == [.received(packetID: 5), kept])
        image.apply(.received(packetID: 5))
        image.apply(.receivedReleased(packetID: 5))
        var shorter = MQTTSessionImage()
        for record in image.records { shorter.apply(record) }
        #expect(shorter.records.count == 1 && shorter.kept.count == 1)
        // A new message under the identifier is its own.
        shorter.apply(.received(packetID: 5))
        shorter.apply(.keptFinished(sequence: 1))
        #expect(shorter.records == [.received(packetID: 5)])
    }
}
