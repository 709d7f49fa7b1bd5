import MQTTCore
import TestSupport
import Testing

@Suite("Round trips", .heavy)
struct RoundTripTests {
    @Test("decodes what it encoded, and encodes that to the same bytes", arguments: MQTTVersion.allCases)
    func roundTrips(version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed ^ UInt64(version.rawValue))
        for round in 0..<Campaign.rounds(1_000_000) {
            let packet = random.packet(version)
            var bytes: [UInt8] = []
            try packet.encode(into: &bytes, version: version)
            let run = DecodingRun(whole: bytes, version: version)
            var again: [UInt8] = []
            try run.packets.first?.encode(into: &again, version: version)
            guard run.packets == [packet], run.waiting == 0, again == bytes else {
                Issue.record("seed \(Campaign.seed), round \(round): \(packet) became \(run)")
                return
            }
        }
    }

    @Test("reads a stream of packets however it is cut", arguments: MQTTVersion.allCases)
    func streams(version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed ^ 0x57 ^ UInt64(version.rawValue))
        for round in 0..<Campaign.rounds(20_000) {
            let packets = (0..<5).map { _ in random.packet(version) }
            var bytes: [UInt8] = []
            for packet in packets { try packet.encode(into: &bytes, version: version) }
            let run = DecodingRun(split: bytes, using: &random, version: version)
            guard run.packets == packets, run.waiting == 0 else {
                Issue.record("seed \(Campaign.seed), round \(round): \(run)")
                return
            }
        }
    }
}
