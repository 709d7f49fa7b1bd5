import TestSupport
import Testing
import Wire

@testable import MQTTCore

/// The path that most messages take writes and refuses what the general one does.
@Suite("Plain PUBLISH", .heavy)
struct PlainPublishTests {
    private static let letters = Array("abcdefgh/äß漢🙂 $-".unicodeScalars)

    /// A topic of about `count` bytes, now and then with something that no topic name holds.
    private static func topic(_ count: Int, _ random: inout SeededGenerator) -> String {
        var scalars: [Unicode.Scalar] = []
        var bytes = 0
        while bytes < count {
            let scalar = letters.randomElement(using: &random) ?? "a"
            scalars.append(scalar)
            bytes += String(scalar).utf8.count
        }
        if !scalars.isEmpty, Int.random(in: 0..<4, using: &random) == 0 {
            let forbidden: [Unicode.Scalar] = ["+", "#", "\0", "\u{1}", "\"", "\u{22}", "*", ","]
            let place = Int.random(in: 0..<scalars.count, using: &random)
            scalars[place] = forbidden.randomElement(using: &random) ?? "+"
        }
        var topic = ""
        topic.unicodeScalars.append(contentsOf: scalars)
        return topic
    }

    @Test func `writes the same bytes as the general path, and refuses the same`() {
        for round in 0..<UInt64(Campaign.rounds(400_000)) {
            var random = SeededGenerator(seed: Campaign.seed &+ round)
            let topic = Self.topic(Int.random(in: 0...90, using: &random), &random)
            let payload = random.bytes(
                [Int.random(in: 0...80, using: &random), 16_200, 17_000][round % 50 == 0 ? 1 : 0])
            let qos = QoS(rawValue: UInt8.random(in: 0...2, using: &random)) ?? .atMostOnce
            let id = qos == .atMostOnce ? 0 : UInt16.random(in: 1...65_535, using: &random)
            let retain = Bool.random(using: &random)
            let isDuplicate = qos != .atMostOnce && Bool.random(using: &random)
            let version = MQTTVersion.allCases.randomElement(using: &random) ?? .v5_0
            let limit = Bool.random(using: &random) ? 1 << 20 : Int.random(in: 2...200, using: &random)
            func written(_ encode: (inout [UInt8]) throws(MQTTEncodingError) -> Void) -> Result<
                [UInt8], MQTTEncodingError
            > {
                var output = random.bytes(round % 3 == 0 ? 5 : 0)
                let before = output
                do throws(MQTTEncodingError) {
                    try encode(&output)
                    #expect(Array(output.prefix(before.count)) == before)
                    return .success(Array(output.dropFirst(before.count)))
                } catch {
                    #expect(output == before)
                    return .failure(error)
                }
            }
            let head = PublishHead(
                topic: topic, flags: MQTTPublishFlags(qos, retain: retain, isDuplicate: isDuplicate), packetID: id)
            let plain = written { output throws(MQTTEncodingError) in
                try MQTTPacket.Publish.encode(
                    head, payload: payload.span.bytes, into: &output, version: version, maximumPacketSize: limit)
            }
            let general = written { output throws(MQTTEncodingError) in
                try MQTTPacket.Publish.encodeAny(
                    head, [], payload: payload.span.bytes, into: &output, version: version, maximumPacketSize: limit)
            }
            #expect(plain == general, "seed \(Campaign.seed &+ round)")
        }
    }

    @Test func `an engine publishes messages of an array as it does one, or leaves them alone`() throws {
        for aliases in [false, true] {
            var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
            engine.configuration.version = .v5_0
            engine.configuration.outboundTopicAliasMaximum = 10
            let good = MQTTOutgoingMessage(topic: "a/topic/of/some/length", payload: [1, 2])
            func published(_ messages: [MQTTOutgoingMessage], limit: Int = .max) -> Int {
                // Behind another one: places are those of the whole array.
                engine.publishRunAtMostOnce(([good] + messages)[1...], from: 1, outputLimit: limit) - 1
            }
            #expect(published([good]) == 0, "there is no connection")
            try engine.connectionOpened(at: 0)
            var effects = MQTTEffects()
            // CONNACK with Retain Available 0, and Topic Alias Maximum 10 if aliases are to be used.
            let accepted: [UInt8] = aliases ? [0x20, 6, 0, 0, 3, 0x22, 0, 10] : [0x20, 5, 0, 0, 2, 0x25, 0]
            _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
            engine.output.removeAll()
            #expect(published([good, good]) == (aliases ? 0 : 2))
            guard !aliases else { continue }
            let plain = engine.output
            let wildcard = MQTTOutgoingMessage(topic: "a/topic/with/+/in/it", payload: [1])
            let retained = MQTTOutgoingMessage(topic: good.topic, payload: [1], retain: true)
            let acknowledged = MQTTOutgoingMessage(topic: good.topic, payload: [1], qos: .atLeastOnce)
            for odd in [wildcard, retained, acknowledged] {
                engine.output.removeAll()
                #expect(published([good, good, odd, good]) == 2)
                #expect(engine.output == plain)
            }
            #expect(published([good], limit: plain.count) == 0, "the outbox is full")
            engine.output.removeAll()
            for _ in 0..<2 { _ = try engine.publish(topic: good.topic, payload: good.payload, at: 1) }
            #expect(plain == engine.output)
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
