import MQTTCore

extension Vector {
    private static let short = Outcome.refused(.malformedPacket, "MQTT 2.1.4")
    private static let illFormed = Outcome.refused(.malformedPacket, "MQTT-1.5.4-1")
    private static let null = Outcome.refused(.malformedPacket, "MQTT-1.5.4-2")
    private static let wildcard = Outcome.refused(.topicNameInvalid, "MQTT-3.3.2-2")
    private static let zeroID = Outcome.refused(.protocolError, "MQTT-2.2.1-3")

    private static func publish(
        _ topic: String, _ payload: String = "", _ change: (inout MQTTPacket.Publish) -> Void = { _ in }
    ) -> Outcome {
        var packet = MQTTPacket.Publish(topic: topic, payload: Array(payload.utf8))
        change(&packet)
        return .packet(.publish(packet))
    }

    /// Section 3.3.
    static let publishes: [Vector] = [
        Vector("PUBLISH", .v3, "30 * <a> 'x'", publish("a", "x")),
        Vector("PUBLISH of 5.0", .v5, "30 * <a> {} 'x'", publish("a", "x")),
        Vector("no payload", .v3, "30 03 <a>", publish("a")),
        Vector("no payload in 5.0", .v5, "30 04 <a> {}", publish("a")),
        Vector("RETAIN without payload clears [MQTT-3.3.1-6]", .v3, "31 03 <a>", publish("a") { $0.isRetained = true }),
        Vector("QoS 1", .v3, "32 * <a> 0001 'x'", publish("a", "x") { ($0.qos, $0.packetID) = (.atLeastOnce, 1) }),
        Vector(
            "QoS 1 in 5.0", .v5, "32 * <a> 0001 {} 'x'", publish("a", "x") { ($0.qos, $0.packetID) = (.atLeastOnce, 1) }
        ),
        Vector("QoS 2", .v3, "34 * <a> FFFF 'x'", publish("a", "x") { ($0.qos, $0.packetID) = (.exactlyOnce, 65_535) }),
        Vector(
            "QoS 2 repeated and retained", .v5, "3D * <a> 0100 {}",
            publish("a") { ($0.qos, $0.packetID, $0.isDuplicate, $0.isRetained) = (.exactlyOnce, 256, true, true) }),
        Vector(
            "QoS 1 repeated [MQTT-3.3.1-1]", .v3, "3A * <a> 0001",
            publish("a") { ($0.qos, $0.packetID, $0.isDuplicate) = (.atLeastOnce, 1, true) }),
        Vector("QoS 3 [MQTT-3.3.1-4]", .all, "36 * <a> 0001", .refused(.malformedPacket, "MQTT-3.3.1-4")),
        Vector(
            "QoS 3 repeated and retained, before its length", .all, "3F", .refused(.malformedPacket, "MQTT-3.3.1-4")),
        Vector("QoS 0 with DUP [MQTT-3.3.1-2]", .oasis, "38 * <a>", .refused(.malformedPacket, "MQTT-3.3.1-2")),
        Vector(
            "QoS 0 with DUP, without a meaning in 3.1", .v31, "38 * <a>",
            .reads(.publish(.init(topic: "a", payload: [])))),
        Vector("QoS 1 with packet identifier 0 [MQTT-2.2.1-3]", .all, "32 * <a> 0000 00", zeroID),
        Vector("QoS 2 with packet identifier 0", .all, "34 * <a> 0000 00", zeroID),
        Vector("QoS 1 without packet identifier", .all, "32 * <a>", short),
        Vector("QoS 1 with half a packet identifier", .all, "32 * <a> 00", short),
        Vector("empty PUBLISH", .all, "30 00", short),
        Vector("topic length cut", .all, "30 01 00", short),
        Vector("topic cut", .all, "30 03 0002 'a'", short),
        Vector("topic longer than the packet", .all, "30 03 FFFF 'a'", short),
        Vector("no property length in 5.0 [MQTT-2.2.2-1]", .v5, "30 03 <a>", short),
        Vector("property length cut", .v5, "30 * <a> 80", short),
        Vector("properties longer than the packet", .v5, "30 * <a> 02 01", short),
        Vector("property length of five bytes", .v5, "30 * <a> 8080808001", .refused(.malformedPacket, "MQTT 1.5.5")),
        Vector("property length longer than need be", .v5, "30 * <a> 8000", .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector("empty topic before 5.0 [MQTT-4.7.3-1]", .v3, "30 * <> 'x'", .refused(.malformedPacket, "MQTT-4.7.3-1")),
        Vector("empty topic without alias", .v5, "30 * <> {} 'x'", .refused(.protocolError, "MQTT 3.3.2.1")),
        Vector(
            "empty topic with other properties", .v5, "30 * <> {01 01} 'x'", .refused(.protocolError, "MQTT 3.3.2.1")),
        Vector(
            "empty topic with alias", .v5, "30 * <> {23 0001} 'x'", publish("", "x") { $0.properties.topicAlias = 1 }),
        Vector(
            "topic and alias", .v5, "30 * <a> {23 FFFF} 'x'", publish("a", "x") { $0.properties.topicAlias = 65_535 }),
        Vector("alias 0 [MQTT-3.3.2-8]", .v5, "30 * <a> {23 0000}", .refused(.topicAliasInvalid, "MQTT-3.3.2-8")),
        Vector("topic with # [MQTT-3.3.2-2]", .all, "30 * <a/#> 00", wildcard),
        Vector("topic with +", .all, "30 * <a/+/b> 00", wildcard),
        Vector("topic with + in the middle of a level", .all, "30 * <a+b> 00", wildcard),
        Vector("topic with + behind eight bytes", .all, "30 * <12345678+> 00", wildcard),
        Vector("topic with + and a combining mark", .all, "30 * 0003 2BCC81 00", wildcard),
        Vector("topic with U+0000 [MQTT-1.5.4-2]", .all, "30 * 0001 00 00", null),
        Vector("topic with U+0000 behind eight bytes", .all, "30 * 000A '12345678' 0031 00", null),
        Vector("topic with a lone continuation [MQTT-1.5.4-1]", .all, "30 * 0001 80 00", illFormed),
        Vector("topic with a cut sequence", .all, "30 * 0001 C3 00", illFormed),
        Vector("topic with a cut sequence of three", .all, "30 * 0002 E282 00", illFormed),
        Vector("topic with a cut sequence of four", .all, "30 * 0003 F09F99 00", illFormed),
        Vector("topic with an overlong slash", .all, "30 * 0002 C0AF 00", illFormed),
        Vector("topic with an overlong U+0000", .all, "30 * 0002 C080 00", illFormed),
        Vector("topic with an overlong sequence of three", .all, "30 * 0003 E09F80 00", illFormed),
        Vector("topic with an overlong sequence of four", .all, "30 * 0004 F08F8080 00", illFormed),
        Vector("topic with the first surrogate", .all, "30 * 0003 EDA080 00", illFormed),
        Vector("topic with a pair of surrogates", .all, "30 * 0006 EDA081EDB080 00", illFormed),
        Vector("topic above U+10FFFF", .all, "30 * 0004 F4908080 00", illFormed),
        Vector("topic with 0xFE", .all, "30 * 0001 FE 00", illFormed),
        Vector("topic of five-byte form", .all, "30 * 0005 F888808080 00", illFormed),
        Vector("topic with U+FEFF, which stays [MQTT-1.5.4-3]", .v3, "30 * 0004 EFBBBF61", publish("\u{FEFF}a")),
        Vector("topic with U+10FFFF", .v3, "30 * 0004 F48FBFBF", publish("\u{10FFFF}")),
        Vector("topic with U+FFFF, a noncharacter", .v3, "30 * 0003 EFBFBF", publish("\u{FFFF}")),
        Vector("topic with a control character", .v3, "30 * 0001 01", publish("\u{1}")),
        Vector("topic of a slash", .v3, "30 * </>", publish("/")),
        Vector("topic with a space and capitals", .v3, "30 * <A b>", publish("A b")),
        Vector("topic of the server", .v3, "30 * <$SYS/x>", publish("$SYS/x")),
        Vector("payload of any bytes", .v3, "30 * <a> 00FF80C0", publish("a") { $0.payload = [0, 0xFF, 0x80, 0xC0] }),
        Vector("payload that looks like a packet", .v3, "30 * <a> C000", publish("a") { $0.payload = [0xC0, 0] }),
        Vector(
            "subscription identifiers [MQTT-3.3.4-4]", .v5, "30 * <a> {0B 01 0B FFFFFF7F}",
            publish("a") { $0.properties.subscriptionIdentifiers = [1, 268_435_455] }),
        Vector(
            "user properties in order, repeated [MQTT-3.3.2-18]", .v5, "30 * <a> {26 <k> <1> 26 <k> <2> 26 <> <>}",
            publish("a") {
                $0.properties.userProperties = [.init("k", "1"), .init("k", "2"), .init("", "")]
            }),
        Vector(
            "request", .v5, "30 * <a> {08 <r/1> 09 0002 00FF}",
            publish("a") { ($0.properties.responseTopic, $0.properties.correlationData) = ("r/1", [0, 0xFF]) }),
        Vector(
            "response topic with a wildcard [MQTT-3.3.2-14]", .v5, "30 * <a> {08 <r/+>}",
            .refused(.protocolError, "MQTT-3.3.2-14")),
    ]

    private static func ack(
        _ code: MQTTReasonCode = .success, _ id: UInt16 = 1, _ properties: MQTTProperties = []
    ) -> MQTTPacket.Acknowledgement {
        .init(packetID: id, reasonCode: code, properties: properties)
    }

    /// Sections 3.4 to 3.7.
    static let acknowledgements: [Vector] = [
        Vector("PUBACK", .all, "40 02 0001", .packet(.puback(ack()))),
        Vector("PUBREC", .all, "50 02 0001", .packet(.pubrec(ack()))),
        Vector("PUBREL", .all, "62 02 0001", .packet(.pubrel(ack()))),
        Vector("PUBCOMP", .all, "70 02 FFFF", .packet(.pubcomp(ack(.success, 65_535)))),
        Vector("PUBACK with a code", .v5, "40 03 0001 10", .packet(.puback(ack(.noMatchingSubscribers)))),
        Vector("PUBREC with a code", .v5, "50 03 0001 97", .packet(.pubrec(ack(.quotaExceeded)))),
        Vector("PUBREL with a code", .v5, "62 03 0001 92", .packet(.pubrel(ack(.packetIdentifierNotFound)))),
        Vector("PUBCOMP with a code", .v5, "70 03 0001 92", .packet(.pubcomp(ack(.packetIdentifierNotFound)))),
        Vector("PUBACK with code 0 written out", .v5, "40 03 0001 00", .reads(.puback(ack()))),
        Vector("PUBREC with no properties written out", .v5, "50 * 0001 00 {}", .reads(.pubrec(ack()))),
        Vector(
            "PUBREL with code and no properties written out", .v5, "62 * 0001 92 {}",
            .reads(.pubrel(ack(.packetIdentifierNotFound)))),
        Vector(
            "PUBACK with a failure without a name", .v5, "40 03 0001 F2", .packet(.puback(ack(.init(rawValue: 0xF2))))),
        Vector("PUBACK with a success of no packet", .v5, "40 03 0001 42", .refused(.protocolError, "MQTT-3.4.2-1")),
        Vector(
            "PUBACK with a reason string", .v5, "40 * 0001 87 {1F <no>}",
            .packet(.puback(ack(.notAuthorized, 1, [.init(.reasonString, .string("no"))])))),
        Vector(
            "PUBCOMP with user properties", .v5, "70 * 0001 00 {26 <a> <b>}",
            .packet(.pubcomp(ack(.success, 1, [.init(.userProperty, .pair(.init("a", "b")))])))),
        Vector("PUBACK with packet identifier 0", .all, "40 02 0000", zeroID),
        Vector("PUBREC with packet identifier 0", .all, "50 02 0000", zeroID),
        Vector("PUBREL with packet identifier 0", .all, "62 02 0000", zeroID),
        Vector("PUBCOMP with packet identifier 0", .all, "70 02 0000", zeroID),
        Vector("empty PUBACK", .all, "40 00", short),
        Vector("PUBREC of one byte", .all, "50 01 00", short),
        Vector("empty PUBREL", .all, "62 00", short),
        Vector("PUBCOMP of one byte", .all, "70 01 01", short),
        Vector("PUBACK with a code before 5.0", .v3, "40 03 0001 00", short),
        Vector("PUBREC with a code before 5.0", .v3, "50 03 0001 00", short),
        Vector("PUBREL with a code before 5.0", .v3, "62 03 0001 00", short),
        Vector("PUBCOMP with a code before 5.0", .v3, "70 03 0001 00", short),
        Vector("PUBACK with bytes behind", .v5, "40 * 0001 00 {} 00", short),
        Vector("PUBREC with cut properties", .v5, "50 * 0001 00 04 1F", short),
        Vector("PUBACK with a topic alias", .v5, "40 * 0001 00 {23 0001}", .refused(.malformedPacket, "MQTT 2.2.2.2")),
    ]
}
