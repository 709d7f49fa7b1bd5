import MQTTCore
import MessagingWire
import TestSupport
import Testing

@Suite("Text on the wire", .heavy)
struct TextTests {
    /// The standard library's judgement is the measure; U+0000 and wildcards are kept out.
    @Test("calls the same bytes well-formed as the standard library [MQTT-1.5.4-1]")
    func wellFormed() {
        var random = SeededGenerator(seed: Campaign.seed ^ 0x8F)
        let interesting: [UInt8] = [
            0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
            0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF,
        ]
        var good = 0
        for _ in 0..<Campaign.rounds(2_000_000) {
            var bytes = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                random.chance(40) ? 0x61 : interesting.randomElement(using: &random)!
            }
            if random.chance(30) { bytes = Array(random.text(1...9).utf8) }
            let isWellFormed = String(validating: bytes, as: UTF8.self) != nil
            if isWellFormed { good += 1 }
            let isTaken = (try? MQTTTopicName.validate(bytes.span.bytes)) != nil
            if isTaken != isWellFormed { Issue.record("\(bytes)") }
        }
        #expect(good > 0)
    }

    @Test("decodes every scalar, and keeps U+FEFF [MQTT-1.5.4-3]")
    func scalars() throws {
        for value in stride(from: UInt32(1), through: 0x10FFFF, by: 97) {
            guard let scalar = Unicode.Scalar(value), scalar != "+", scalar != "#" else { continue }
            let text = "\u{FEFF}" + String(Character(scalar))
            let bytes = Array(text.utf8)
            try MQTTTopicName.validate(bytes.span.bytes)
        }
        var bytes: [UInt8] = []
        try MQTTPacket.Publish.encode(
            PublishHead(topic: "\u{FEFF}a"), payload: [UInt8]().span.bytes, into: &bytes, version: .v5_0)
        guard case .publish(let packet)? = DecodingRun(whole: bytes, version: .v5_0).packets.first else {
            Issue.record("no packet")
            return
        }
        #expect(Array(packet.topic.utf8) == [0xEF, 0xBB, 0xBF, 0x61])
    }
}
