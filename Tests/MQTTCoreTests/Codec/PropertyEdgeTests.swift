import Testing

@testable import MQTTCore

/// Every property with the values at the edges of its type, in every packet: what can be read can be written again.
@Suite("Properties at their edges")
struct PropertyEdgeTests {
    /// Bodies with room for properties, which the closure fills in with their length.
    private static let carriers: [@Sendable ([UInt8]) -> [UInt8]] = [
        { [0x10] + length([0, 4] + "MQTT".utf8 + [5, 2, 0, 60] + $0 + [0, 1, 0x63]) },
        { [0x10] + length([0, 4] + "MQTT".utf8 + [5, 6, 0, 60, 0] + [0, 1, 0x63] + $0 + [0, 1, 0x77, 0, 0]) },
        { [0x20] + length([0, 0] + $0) },
        { [0x30] + length([0, 1, 0x61] + $0) },
        { [0x40] + length([0, 1, 0] + $0) },
        { [0x50] + length([0, 1, 0] + $0) },
        { [0x62] + length([0, 1, 0] + $0) },
        { [0x70] + length([0, 1, 0] + $0) },
        { [0x82] + length([0, 1] + $0 + [0, 1, 0x61, 0]) },
        { [0x90] + length([0, 1] + $0 + [0]) },
        { [0xA2] + length([0, 1] + $0 + [0, 1, 0x61]) },
        { [0xB0] + length([0, 1] + $0 + [0]) },
        { [0xE0] + length([0] + $0) },
        { [0xF0] + length([0x18] + $0) },
    ]

    /// What may follow an identifier, whatever its type: empty, one character, a wildcard, U+0000, numbers of each size.
    private static let values: [[UInt8]] = [
        [0], [1], [2], [0xFF], [0, 0], [0, 1], [0xFF, 0xFF], [0, 1, 0x61], [0, 1, 0x23], [0, 1, 0], [0, 1, 0xFF],
        [0, 0, 0, 0], [0, 0, 0, 1], [0xFF, 0xFF, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF, 0x7F], [0, 0, 0, 1, 0x61],
        [0, 1, 0x61, 0, 0], [0, 1, 0x61, 0, 1, 0x61], [],
    ]

    @Test("can be written again if they can be read, alone and twice")
    func edges() throws {
        var readable = 0
        for carrier in Self.carriers {
            for identifier in UInt8(0)...43 {
                for value in Self.values {
                    for count in 1...2 {
                        let properties = Array(repeatElement([identifier] + value, count: count).joined())
                        let bytes = carrier(Self.length(properties))
                        let run = DecodingRun(whole: bytes, version: .v5_0)
                        #expect(run.waiting == 0)
                        for packet in run.packets {
                            readable += 1
                            var again: [UInt8] = []
                            try packet.encode(into: &again, version: .v5_0)
                            #expect(DecodingRun(whole: again, version: .v5_0).packets == [packet])
                        }
                    }
                }
            }
        }
        #expect(readable > 150)
    }

    @Test func `an empty Response Topic is refused in PUBLISH and in the will [MQTT-4.7.3-1]`() {
        for carrier in [Self.carriers[1], Self.carriers[3]] {
            let run = DecodingRun(whole: carrier(Self.length([0x08, 0, 0])), version: .v5_0)
            #expect(run.packets == [])
            #expect(run.violation?.clause == "MQTT-4.7.3-1")
            #expect(run.violation?.reasonCode == .topicNameInvalid)
        }
    }

    private static func length(_ bytes: [UInt8]) -> [UInt8] {
        precondition(bytes.count < 128)
        return [UInt8(bytes.count)] + bytes
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
}
