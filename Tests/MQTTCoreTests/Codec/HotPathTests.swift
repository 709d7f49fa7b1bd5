import MQTTCore
import MessagingWire
import TestSupport
import Testing

@Suite("Packets in place", .heavy)
struct HotPathTests {
    @Test(
        "appends acknowledgements in their shortest form",
        arguments: [MQTTPacketType.puback, .pubrec, .pubrel, .pubcomp])
    func acknowledgements(type: MQTTPacketType) throws {
        for version in MQTTVersion.allCases {
            for code in [MQTTReasonCode.success, .packetIdentifierNotFound] {
                var output: [UInt8] = [0xFF]
                MQTTPacket.Acknowledgement.encode(
                    type, packetID: 0x1234, reasonCode: code, into: &output, version: version)
                let header = try #require(try MQTTFrameHeader.parse(output.span.bytes, at: 1, maximumPacketSize: 10))
                #expect(header.type == type)
                #expect(header.packetCount == output.count - 1)
                let view = try MQTTAcknowledgementView.parse(header, in: output.span.bytes, at: 1, version: version)
                #expect(view.packetID == 0x1234)
                #expect(view.reasonCode == (version == .v5_0 ? code : .success))
                #expect(output.count == (version == .v5_0 && code != .success ? 6 : 5))
            }
        }
    }

    @Test("appends pings")
    func pings() {
        var output: [UInt8] = []
        MQTTPacket.encodePingreq(into: &output)
        MQTTPacket.encodePingresp(into: &output)
        #expect(output == [0xC0, 0, 0xD0, 0])
    }

    @Test("puts an alias in front of the other properties, with or without a topic", arguments: ["", "a/b"])
    func alias(topic: String) throws {
        var output: [UInt8] = []
        try MQTTPacket.Publish.encode(
            PublishHead(topic: topic, alias: 7), [.contentType("x")], payload: [UInt8]([1, 2]).span.bytes,
            into: &output, version: .v5_0)
        let run = DecodingRun(whole: output, version: .v5_0)
        let expected: MQTTProperties = [.init(.topicAlias, .integer(7)), .init(.contentType, .string("x"))]
        #expect(run.packets == [.publish(.init(topic: topic, payload: [1, 2], properties: expected))])
        #expect(throws: MQTTEncodingError.self) {
            try MQTTPacket.Publish.encode(
                PublishHead(topic: topic, alias: 7), expected, payload: [UInt8]([1, 2]).span.bytes, into: &output,
                version: .v5_0)
        }
    }

    @Test(
        "writes remaining lengths of one to four bytes",
        arguments: [
            (124, 1), (125, 2), (16_380, 2), (16_381, 3), (2_097_148, 3), (2_097_149, 4),
        ])
    func lengths(payloadCount: Int, lengthCount: Int) throws {
        var output: [UInt8] = []
        let payload = [UInt8](repeating: 9, count: payloadCount)
        try MQTTPacket.Publish.encode(
            PublishHead(topic: "a"), payload: payload.span.bytes, into: &output, version: .v3_1_1)
        #expect(output.count == 1 + lengthCount + 3 + payloadCount)
        let run = DecodingRun(whole: output, version: .v3_1_1, maximumPacketSize: 1 << 22)
        #expect(run.packets == [.publish(.init(topic: "a", payload: payload))])
    }

    @Test("asks for more until the fixed header is whole, wherever it starts")
    func header() throws {
        let bytes: [UInt8] = [0xAA, 0xBB, 0x32, 0x80, 0x80, 0x01]
        for end in 2..<bytes.count {
            #expect(
                try MQTTFrameHeader.parse(Array(bytes[..<end]).span.bytes, at: 2, maximumPacketSize: 1 << 20) == nil)
        }
        let header = try #require(try MQTTFrameHeader.parse(bytes.span.bytes, at: 2, maximumPacketSize: 1 << 20))
        #expect(header.type == .publish)
        #expect(header.flags == 2)
        #expect(header.headerCount == 4)
        #expect(header.bodyCount == 16_384)
        #expect(try MQTTFrameHeader.parse(bytes.span.bytes, at: 99, maximumPacketSize: 9) == nil)
        #expect(throws: MQTTProtocolError.self) {
            try MQTTFrameHeader.parse(bytes.span.bytes, at: 2, maximumPacketSize: 16_387)
        }
    }
}

@Suite("Incremental decoder", .heavy)
struct DecoderTests {
    @Test("takes the version from the CONNECT that comes by")
    func version() throws {
        var decoder = MQTTDecoder()
        var bytes: [UInt8] = []
        try MQTTPacket.connect(.init(version: .v3_1_1, clientID: "c")).encode(into: &bytes, version: .v5_0)
        try MQTTPacket.publish(.init(topic: "a", payload: [1])).encode(into: &bytes, version: .v3_1_1)
        decoder.push(bytes)
        _ = try decoder.next()
        #expect(decoder.version == .v3_1_1)
        #expect(try decoder.next() == .publish(.init(topic: "a", payload: [1])))
        #expect(try decoder.next() == nil)
    }

    @Test("stays failed, and keeps nothing, after a violation")
    func failed() throws {
        var decoder = MQTTDecoder(version: .v3_1_1, maximumPacketSize: 100)
        decoder.push([0xC0, 0x00, 0x30, 0xFF, 0x7F])
        #expect(try decoder.next() == .pingreq)
        for _ in 0..<2 {
            let violation = #expect(throws: MQTTProtocolError.self) { try decoder.next() }
            #expect(violation?.reasonCode == .packetTooLarge)
            decoder.push([0xC0, 0x00])
            #expect(decoder.bufferedCount == 0)
        }
    }

    @Test("never holds more than one packet while it is asked after each piece")
    func bounded() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        var decoder = MQTTDecoder(version: .v3_1_1, maximumPacketSize: 200)
        var bytes: [UInt8] = []
        for _ in 0..<500 {
            try MQTTPacket.publish(.init(topic: "a", payload: random.bytes(Int.random(in: 0...190, using: &random))))
                .encode(into: &bytes, version: .v3_1_1)
        }
        var count = 0
        var start = 0
        while start < bytes.count {
            let end = min(bytes.count, start + 64)
            decoder.push(Array(bytes[start..<end]))
            while try decoder.next() != nil { count += 1 }
            #expect(decoder.bufferedCount < 200)
            start = end
        }
        #expect(count == 500)
    }
}
