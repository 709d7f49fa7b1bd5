import MQTTCore
import MessagingWire
import TestSupport
import Testing

@Suite("Damaged packets", .heavy)
struct MutationTests {
    /// Every damaged packet is either refused or read as something that encodes again, to bytes that read the same;
    /// nothing traps, and what is kept is never larger than the packet.
    @Test("refuses or reads damaged packets, never traps", arguments: MQTTVersion.allCases)
    func damage(version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed ^ 0xDA ^ UInt64(version.rawValue))
        var bytes: [UInt8] = []
        var refused = 0
        let rounds = Campaign.rounds(10_000_000 / MQTTVersion.allCases.count)
        for round in 0..<rounds {
            if round % 8 == 0 {
                bytes = []
                try random.packet(version).encode(into: &bytes, version: version)
            }
            var damaged = bytes
            random.damage(&damaged)
            let run = DecodingRun(whole: damaged, version: version, maximumPacketSize: 1 << 15)
            if run.violation != nil { refused += 1 }
            for packet in run.packets {
                var again: [UInt8] = []
                do {
                    try packet.encode(into: &again, version: version)
                } catch {
                    Issue.record("seed \(Campaign.seed), round \(round): \(packet) was read, but \(error)")
                    return
                }
                let second = DecodingRun(whole: again, version: version, maximumPacketSize: 1 << 15)
                guard again.count <= damaged.count, second.packets == [packet] else {
                    Issue.record("seed \(Campaign.seed), round \(round): \(packet) became \(second)")
                    return
                }
            }
        }
        #expect(refused > rounds / 20, "the damage has to hurt")
    }

    @Test("reads PUBLISH in place as it reads it into a packet", arguments: MQTTVersion.allCases)
    func viewsAgree(version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed ^ 0x71 ^ UInt64(version.rawValue))
        for round in 0..<Campaign.rounds(1_000_000) {
            var bytes = random.bytes(3)
            let start = bytes.count
            try MQTTPacket.publish(random.publish(version)).encode(into: &bytes, version: version)
            if random.chance(50) {
                let index = Int.random(in: start..<bytes.count, using: &random)
                bytes[index] = UInt8.random(in: 0...255, using: &random)
            }
            let whole = DecodingRun(whole: Array(bytes[start...]), version: version)
            let viewed = Self.view(bytes, at: start, version)
            if case .publish(let publish)? = whole.packets.first {
                guard viewed == publish else {
                    Issue.record(
                        "seed \(Campaign.seed), round \(round): \(publish) became \(String(describing: viewed))")
                    return
                }
            } else if viewed != nil {
                Issue.record("seed \(Campaign.seed), round \(round): only the view was read")
                return
            }
        }
    }

    private static func view(_ bytes: [UInt8], at start: Int, _ version: MQTTVersion) -> MQTTPacket.Publish? {
        let span = bytes.span.bytes
        guard
            let header = try? MQTTFrameHeader.parse(span, at: start, maximumPacketSize: 1 << 20, version: version),
            header.type == .publish, header.packetCount <= bytes.count - start,
            let view = try? MQTTPublishView.parse(header, in: span, at: start, version: version),
            let scan = try? view.scanProperties(in: span), let topic = try? view.topic(in: span),
            let properties = try? view.properties(in: span), !topic.isEmpty || scan.topicAlias != 0
        else { return nil }
        #expect(scan.topicAlias == properties.topicAlias ?? 0)
        #expect(scan.subscriptionIdentifierCount == properties.subscriptionIdentifiers.count)
        return .init(
            topic: topic, payload: Array(bytes[view.payloadRange]), qos: view.flags.qos,
            isRetained: view.flags.isRetained,
            isDuplicate: view.flags.isDuplicate, packetID: view.packetID, properties: properties)
    }
}

extension SeededGenerator {
    /// Changes, cuts, doubles or lengthens.
    mutating func damage(_ bytes: inout [UInt8]) {
        for _ in 0..<Int.random(in: 1...3, using: &self) where !bytes.isEmpty {
            let index =
                chance(70)
                ? Int.random(in: 0..<min(24, bytes.count), using: &self) : bytes.indices.randomElement(using: &self)!
            switch Int.random(in: 0..<7, using: &self) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &self)
            case 1: bytes[index] ^= 1 << UInt8.random(in: 0...7, using: &self)
            case 2: bytes[index] = [0x00, 0x7F, 0x80, 0xFF].randomElement(using: &self)!
            case 3: bytes.insert(UInt8.random(in: 0...255, using: &self), at: index)
            case 4: bytes.remove(at: index)
            case 5: bytes[index] &+= 1
            default: bytes.removeSubrange(index...)
            }
        }
        // The remaining length mostly fits again, so that the damage behind it is looked at.
        if bytes.count > 2, bytes.count < 130, chance(60) { bytes[1] = UInt8(bytes.count - 2) }
    }
}
