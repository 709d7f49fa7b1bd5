import MQTTCore
import Testing

/// What real servers send against the specification, and what a client reads it as. A decoder that does not know that
/// the bytes come from a server refuses all of it.
@Suite("Decoder: what real servers send") struct LeniencyTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let versions: [MQTTVersion]
        let bytes: [UInt8]
        let packet: MQTTPacket

        init(_ name: String, _ versions: [MQTTVersion], _ bytes: [UInt8], _ packet: MQTTPacket) {
            (self.name, self.versions, self.bytes, self.packet) = (name, versions, bytes, packet)
        }

        var testDescription: String { name }
    }

    private static func refusal(_ code: UInt8) -> MQTTPacket { .connack(.init(reasonCode: .init(rawValue: code))) }

    static let rows = [
        Row("a return code of CONNACK above 5", .v3, [0x20, 2, 0, 6], refusal(6)),
        Row("a reason code of 5.0 in CONNACK", .v3, [0x20, 2, 0, 0x87], refusal(0x87)),
        Row("a reason code without a name in CONNACK", .v3, [0x20, 2, 0, 0xC0], refusal(0xC0)),
        Row("a refusal with Session Present", .v311, [0x20, 2, 1, 5], refusal(0x87)),
        Row("a refusal with Session Present in 5.0", .v5, [0x20, 3, 1, 0x87, 0], refusal(0x87)),
        Row("a refusal with reserved flags", .v311, [0x20, 2, 2, 5], refusal(0x87)),
        Row("the refusal of 5.0 by a server older than that", .v5, [0x20, 2, 0, 1], refusal(0x84)),
        Row("a refusal of 5.0 without properties", .v5, [0x20, 2, 0, 0x87], refusal(0x87)),
        Row("Maximum QoS 2", .v5, [0x20, 5, 0, 0, 2, 0x24, 2], .connack(.init())),
        Row(
            "Maximum QoS 2 among others", .v5, [0x20, 10, 0, 0, 7, 0x25, 0, 0x24, 2, 0x21, 0, 9],
            .connack(
                .init(properties: [
                    MQTTProperty(.retainAvailable, .integer(0)), MQTTProperty(.receiveMaximum, .integer(9)),
                ]))),
        Row("UNSUBACK with a code before 5.0", .v3, [0xB0, 3, 0, 7, 0], .unsuback(.init(packetID: 7))),
        Row("UNSUBACK without codes in 5.0", .v5, [0xB0, 3, 0, 7, 0], .unsuback(.init(packetID: 7))),
        Row("SUBACK without codes before 5.0", .v3, [0x90, 2, 0, 7], .suback(.init(packetID: 7, reasonCodes: []))),
        Row("SUBACK without codes in 5.0", .v5, [0x90, 3, 0, 7, 0], .suback(.init(packetID: 7, reasonCodes: []))),
        Row(
            "SUBACK with a failure of 5.0", .v3, [0x90, 3, 0, 7, 0x87],
            .suback(.init(packetID: 7, reasonCodes: [.notAuthorized]))),
        Row(
            "DISCONNECT with a code before 5.0", .v3, [0xE0, 1, 0x8E],
            .disconnect(.init(reasonCode: .sessionTakenOver))),
        Row(
            "DISCONNECT with a code and no properties before 5.0", .v3, [0xE0, 2, 0x8E, 0],
            .disconnect(.init(reasonCode: .sessionTakenOver))),
        Row(
            "DUP at QoS 0", .v311, [0x38, 4, 0, 1, 0x61, 0x78], .publish(.init(topic: "a", payload: [0x78]))),
        Row(
            "DUP at QoS 0 in 5.0", .v5, [0x39, 5, 0, 1, 0x61, 0, 0x78],
            .publish(.init(topic: "a", payload: [0x78], isRetained: true))),
        Row("a length of 0 in two bytes", .v3, [0xD0, 0x80, 0], .pingresp),
        Row("a length of 2 in four bytes", .v3, [0x40, 0x82, 0x80, 0x80, 0, 0, 7], .puback(.init(packetID: 7))),
    ]

    @Test("is read by a client, and by nobody else", arguments: rows)
    func reads(row: Row) throws {
        for version in row.versions {
            var client = MQTTDecoder(version: version, from: .server)
            client.push(row.bytes)
            #expect(try client.next() == row.packet, "\(version)")
            #expect(client.bufferedCount == 0)
            for sender in [MQTTRole.client, nil] {
                var strict = MQTTDecoder(version: version, from: sender)
                strict.push(row.bytes)
                #expect(throws: MQTTProtocolError.self, "\(version)") { try strict.next() }
            }
        }
    }

    @Test func `what 5_0 demands of a receiver is refused`() {
        for bytes: [UInt8] in [
            [0xD0, 0x80, 0], [0x20, 5, 0, 0, 2, 0x24, 3], [0x20, 3, 2, 0, 0], [0x3E, 3, 0, 1, 0x61],
        ] {
            var client = MQTTDecoder(version: .v5_0, from: .server)
            client.push(bytes)
            #expect(throws: MQTTProtocolError.self, "\(bytes)") { try client.next() }
        }
    }
}
