import MQTTCore
import TestSupport
import Testing

/// The decoder reads packets into values, the engine reads most of them in place: what one refuses the other has to
/// refuse, whatever the packet is.
@Suite("Engine: agreement with the decoder", .heavy)
struct AgreementTests {
    /// A connection whose far end is not there, so that bytes may come in its name.
    private static func engine(_ role: MQTTRole, _ version: MQTTVersion) throws -> EnginePair {
        let pair = EnginePair(
            version: version,
            client: {
                $0.topicAliasMaximum = 65_535
                $0.cleanStart = false
                $0.sessionExpiry = 60
            }, server: { $0.topicAliasMaximum = 65_535 })
        try pair.connect()
        return pair
    }

    @Test(
        "refuses what the decoder refuses, and calls nothing malformed that the decoder reads",
        arguments: MQTTVersion.allCases)
    func damage(version: MQTTVersion) throws {
        var random = SeededGenerator(seed: Campaign.seed ^ 0xA6 ^ UInt64(version.rawValue))
        var refused = 0
        let rounds = Campaign.rounds(80_000)
        for round in 0..<rounds {
            var bytes: [UInt8] = []
            try random.packet(version).encode(into: &bytes, version: version)
            if random.chance(80) { random.damage(&bytes) }
            for role in [MQTTRole.client, .server] {
                var decoder = MQTTDecoder(
                    version: version, maximumPacketSize: 16 << 20, from: role == .client ? .server : .client)
                decoder.push(bytes)
                var violation: MQTTProtocolError?
                var first: MQTTPacket?
                do throws(MQTTProtocolError) { first = try decoder.next() } catch { violation = error }
                guard violation != nil || first != nil else { continue }
                let pair = try Self.engine(role, version)
                let end = role == .client ? pair.client : pair.server
                end.inbox = bytes
                pair.deliver(to: end)
                let comment = "CAMPAIGN_SEED=\(Campaign.seed), round \(round), \(role): \(bytes)"
                if let violation {
                    refused += 1
                    guard end.violation != nil else {
                        Issue.record("\(comment) was taken, but \(violation)")
                        return
                    }
                } else if let found = end.violation, found.reasonCode == .malformedPacket, decoder.bufferedCount == 0 {
                    Issue.record("\(comment) was read, but \(found)")
                    return
                }
            }
        }
        #expect(refused > rounds / 20, "the damage has to hurt")
    }

    @Test("neither accepts PINGREQ or PINGRESP with a body", arguments: MQTTVersion.allCases)
    func pings(version: MQTTVersion) throws {
        for (role, first) in [(MQTTRole.server, UInt8(0xC0)), (.client, 0xD0)] {
            let pair = try Self.engine(role, version)
            let end = role == .client ? pair.client : pair.server
            end.inbox = [first, 1, 0]
            pair.deliver(to: end)
            #expect(end.violation?.reasonCode == .malformedPacket)
            #expect(end.shouldClose)
        }
    }

    @Test func `PUBREC with a failure for an unknown identifier gets no PUBREL [MQTT-4.3.3-4]`() throws {
        for role in [MQTTRole.client, .server] {
            let pair = try Self.engine(role, .v5_0)
            let end = role == .client ? pair.client : pair.server
            try pair.inject(.pubrec(.init(packetID: 9, reasonCode: .notAuthorized)), into: end)
            #expect(end.engine.output.isEmpty)
            #expect(end.violation == nil)
        }
    }
}
