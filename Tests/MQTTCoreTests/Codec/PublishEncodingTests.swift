import MessagingWire
import TestSupport
import Testing

@testable import MQTTCore

/// PUBLISH is written byte by byte as section 3.3 says, or refused with nothing written.
@Suite("PUBLISH", .heavy)
struct PublishEncodingTests {
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

    private static let lists: [MQTTProperties] = [
        [], [.contentType("text")], [.userProperty("a", "b"), .userProperty("a", "c"), .messageExpiryInterval(9)],
        [.subscriptionIdentifier(300)], [.userProperty("long", String(repeating: "x", count: 200))],
    ]

    /// The packet, field by field.
    private static func packet(
        _ head: PublishHead, _ properties: MQTTProperties, _ payload: [UInt8], _ version: MQTTVersion
    ) -> [UInt8] {
        func variable(_ value: Int) -> [UInt8] {
            value < 128 ? [UInt8(value)] : [UInt8(value % 128 + 128)] + variable(value / 128)
        }
        func integer(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }
        var body = integer(UInt16(head.topic.utf8.count)) + Array(head.topic.utf8)
        if head.flags.qos != .atMostOnce { body += integer(head.packetID) }
        if version == .v5_0 {
            let fields = (head.alias == 0 ? [] : [0x23] + integer(head.alias)) + properties.publishBytes
            body += variable(fields.count) + fields
        }
        body += payload
        let flags = (head.flags.isDuplicate ? 8 : 0) + head.flags.qos.rawValue * 2 + (head.flags.isRetained ? 1 : 0)
        return [0x30 + flags] + variable(body.count) + body
    }

    @Test func `writes the bytes of the specification, and refuses the rest`() {
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
                topic: topic, flags: MQTTPublishFlags(qos, retain: retain, isDuplicate: isDuplicate), packetID: id,
                alias: version == .v5_0 && Bool.random(using: &random) ? 0x1234 : 0)
            let properties = version == .v5_0 ? Self.lists.randomElement(using: &random) ?? [] : []
            let result = written { output throws(MQTTEncodingError) in
                try MQTTPacket.Publish.encode(
                    head, properties, payload: payload.span.bytes, into: &output, version: version,
                    maximumPacketSize: limit)
            }
            let expected = Self.packet(head, properties, payload, version)
            let note: Comment = "seed \(Campaign.seed &+ round)"
            if topic.utf8.contains(where: { [0, 0x2B, 0x23].contains($0) }) || topic.isEmpty && head.alias == 0 {
                #expect(result == .failure(.topicName(topic)) || expected.count > limit, note)
            } else {
                let refusal = MQTTEncodingError.packetTooLarge(.publish, expected.count, limit)
                #expect(result == (expected.count > limit ? .failure(refusal) : .success(expected)), note)
            }
        }
    }
}
