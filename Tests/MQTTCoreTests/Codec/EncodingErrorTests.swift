import MQTTCore
import TestSupport
import Testing

/// A packet of ours that has to be refused, and why.
struct Mistake: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let version: MQTTVersion
    let packet: MQTTPacket
    let code: MQTTEncodingError.Code

    init(_ name: String, _ version: MQTTVersion, _ packet: MQTTPacket, _ code: MQTTEncodingError.Code) {
        testDescription = name
        self.version = version
        self.packet = packet
        self.code = code
    }

    private static let long = String(repeating: "x", count: 65_536)

    private static func publish(_ topic: String = "a", _ properties: MQTTProperties = []) -> MQTTPacket {
        .publish(.init(topic: topic, payload: [], properties: properties))
    }

    static let all: [Mistake] = [
        Mistake("empty topic", .v3_1_1, publish(""), .invalidTopicName),
        Mistake("empty topic without alias", .v5_0, publish(""), .invalidTopicName),
        Mistake("topic with a wildcard", .v5_0, publish("a/#"), .invalidTopicName),
        Mistake("topic with U+0000", .v5_0, publish("a\0"), .invalidTopicName),
        Mistake("long topic", .v5_0, publish(long), .invalidTopicName),
        Mistake("identifier at QoS 0", .v5_0, .publish(.init(topic: "a", payload: [], packetID: 1)), .invalidPacketID),
        Mistake(
            "no identifier at QoS 1", .v5_0, .publish(.init(topic: "a", payload: [], qos: .atLeastOnce)),
            .invalidPacketID),
        Mistake("DUP at QoS 0", .v5_0, .publish(.init(topic: "a", payload: [], isDuplicate: true)), .contradiction),
        Mistake("properties before 5.0", .v3_1_1, publish("a", [.init(.contentType, .string("x"))]), .notInThisVersion),
        Mistake(
            "property of another packet", .v5_0, publish("a", [.init(.reasonString, .string("x"))]), .invalidProperty),
        Mistake(
            "property twice", .v5_0, publish("a", [.init(.topicAlias, .integer(1)), .init(.topicAlias, .integer(1))]),
            .invalidProperty),
        Mistake("alias 0", .v5_0, publish("a", [.init(.topicAlias, .integer(0))]), .invalidProperty),
        Mistake("alias 65,536", .v5_0, publish("a", [.init(.topicAlias, .integer(65_536))]), .invalidProperty),
        Mistake(
            "subscription identifier too large", .v5_0,
            publish("a", [.init(.subscriptionIdentifier, .integer(268_435_456))]), .invalidProperty),
        Mistake("property of another type", .v5_0, publish("a", [.init(.topicAlias, .string("1"))]), .invalidProperty),
        Mistake("long property", .v5_0, publish("a", [.init(.contentType, .string(long))]), .valueTooLong),
        Mistake(
            "long binary property", .v5_0, publish("a", [.init(.correlationData, .binary(Array(long.utf8)))]),
            .valueTooLong),
        Mistake("property with U+0000", .v5_0, publish("a", [.init(.contentType, .string("\0"))]), .nullCharacter),
        Mistake(
            "response topic with a wildcard", .v5_0, publish("a", [.init(.responseTopic, .string("+"))]),
            .invalidTopicName),
        Mistake(
            "password alone", .v3_1_1, .connect(.init(version: .v3_1_1, clientID: "c", password: [])), .contradiction),
        Mistake("no client identifier in 3.1", .v3_1, .connect(.init(version: .v3_1, clientID: "")), .contradiction),
        Mistake(
            "no client identifier, not clean", .v3_1_1,
            .connect(.init(version: .v3_1_1, clientID: "", cleanStart: false)), .contradiction),
        Mistake("long client identifier", .v5_0, .connect(.init(clientID: long)), .valueTooLong),
        Mistake("long password", .v5_0, .connect(.init(clientID: "c", password: Array(long.utf8))), .valueTooLong),
        Mistake(
            "will topic with a wildcard", .v5_0, .connect(.init(clientID: "c", will: .init([], to: "+"))),
            .invalidTopicName),
        Mistake(
            "long will", .v5_0, .connect(.init(clientID: "c", will: .init(Array(long.utf8), to: "w"))),
            .valueTooLong),
        Mistake(
            "will properties before 5.0", .v3_1_1,
            .connect(
                .init(
                    version: .v3_1_1, clientID: "c",
                    will: .init([], to: "w", properties: [.init(.willDelayInterval, .integer(1))]))),
            .notInThisVersion),
        Mistake(
            "authentication data alone", .v5_0,
            .connect(.init(clientID: "c", properties: [.init(.authenticationData, .binary([]))])), .contradiction),
        Mistake(
            "session present in a refusal", .v5_0, .connack(.init(sessionPresent: true, reasonCode: .notAuthorized)),
            .contradiction),
        Mistake(
            "refusal without a return code", .v3_1_1, .connack(.init(reasonCode: .retainNotSupported)),
            .notInThisVersion),
        Mistake("acknowledgement 0", .v5_0, .puback(.init(packetID: 0)), .invalidPacketID),
        Mistake(
            "acknowledgement with a code before 5.0", .v3_1_1, .pubrec(.init(packetID: 1, reasonCode: .notAuthorized)),
            .notInThisVersion),
        Mistake("no filters", .v5_0, .subscribe(.init(packetID: 1, subscriptions: [])), .contradiction),
        Mistake(
            "filter with # inside", .v5_0, .subscribe(.init(packetID: 1, subscriptions: [.init(filter: "#/a")])),
            .invalidTopicFilter),
        Mistake(
            "share without filter", .v5_0, .unsubscribe(.init(packetID: 1, filters: ["$share/g"])), .invalidTopicFilter),
        Mistake(
            "no local, shared", .v5_0,
            .subscribe(.init(packetID: 1, subscriptions: [.init(filter: "$share/g/a", noLocal: true)])), .contradiction),
        Mistake(
            "no local before 5.0", .v3_1_1,
            .subscribe(.init(packetID: 1, subscriptions: [.init(filter: "a", noLocal: true)])), .notInThisVersion),
        Mistake(
            "subscription 0", .v5_0, .subscribe(.init(packetID: 0, subscriptions: [.init(filter: "a")])),
            .invalidPacketID),
        Mistake("nothing to unsubscribe", .v3_1, .unsubscribe(.init(packetID: 1, filters: [])), .contradiction),
        Mistake("SUBACK without codes", .v3_1, .suback(.init(packetID: 1, reasonCodes: [])), .contradiction),
        Mistake("UNSUBACK without codes", .v5_0, .unsuback(.init(packetID: 1)), .contradiction),
        Mistake(
            "reason in DISCONNECT before 5.0", .v3_1_1, .disconnect(.init(reasonCode: .serverBusy)), .notInThisVersion),
        Mistake("AUTH before 5.0", .v3_1_1, .auth(.init()), .notInThisVersion),
    ]
}

@Suite("Packets of ours that break the rules", .heavy)
struct EncodingErrorTests {
    @Test("are refused before a byte is written", arguments: Mistake.all)
    func refused(mistake: Mistake) {
        var output: [UInt8] = [1, 2, 3]
        let error = #expect(throws: MQTTEncodingError.self) {
            try mistake.packet.encode(into: &output, version: mistake.version)
        }
        #expect(error?.code == mistake.code, "\(error?.description ?? "")")
        #expect(output == [1, 2, 3])
    }

    @Test(
        "obeys the peer's maximum packet size to the byte [MQTT-3.2.2-15]",
        arguments: [
            MQTTPacket.publish(.init(topic: "a", payload: [1, 2, 3])),
            .subscribe(.init(packetID: 1, subscriptions: [.init(filter: "a")])),
            .puback(.init(packetID: 1, reasonCode: .notAuthorized, properties: [.init(.reasonString, .string("no"))])),
            .pingreq,
        ])
    func maximum(packet: MQTTPacket) throws {
        var output: [UInt8] = []
        try packet.encode(into: &output, version: .v5_0)
        let count = output.count
        try packet.encode(into: &output, version: .v5_0, maximumPacketSize: count)
        #expect(output.count == 2 * count)
        let error = #expect(throws: MQTTEncodingError.self) {
            try packet.encode(into: &output, version: .v5_0, maximumPacketSize: count - 1)
        }
        #expect(error?.code == .packetTooLarge)
        #expect(output.count == 2 * count)
    }

    @Test("says less where an old version has no words", arguments: MQTTVersion.allCases)
    func oldVersions(version: MQTTVersion) throws {
        var output: [UInt8] = []
        try MQTTPacket.suback(.init(packetID: 1, reasonCodes: [.notAuthorized, .grantedQoS1])).encode(
            into: &output, version: version)
        #expect(output == (version == .v5_0 ? [0x90, 5, 0, 1, 0, 0x87, 1] : [0x90, 4, 0, 1, 0x80, 1]))
        output = []
        try MQTTPacket.unsuback(.init(packetID: 1, reasonCodes: [.success])).encode(into: &output, version: version)
        #expect(output == (version == .v5_0 ? [0xB0, 4, 0, 1, 0, 0] : [0xB0, 2, 0, 1]))
        output = []
        try MQTTPacket.connack(.init(reasonCode: .banned)).encode(into: &output, version: version)
        #expect(output == (version == .v5_0 ? [0x20, 3, 0, 0x8A, 0] : [0x20, 2, 0, 5]))
    }
}
