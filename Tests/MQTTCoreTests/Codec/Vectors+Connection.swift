import MQTTCore

extension Vector {
    private static let short = Outcome.refused(.malformedPacket, "MQTT 2.1.4")
    private static let version = Outcome.refused(.unsupportedProtocolVersion, "MQTT-3.1.2-2")
    private static let clientID = Outcome.refused(.clientIdentifierNotValid, "MQTT-3.1.3-8")

    private static func connect(
        _ version: MQTTVersion, _ id: String = "c", _ change: (inout MQTTPacket.Connect) -> Void = { _ in }
    ) -> Outcome {
        var packet = MQTTPacket.Connect(version: version, clientID: id, cleanStart: true, keepAlive: 60)
        change(&packet)
        return .packet(.connect(packet))
    }

    /// Section 3.1.
    static let connects: [Vector] = [
        Vector("CONNECT of 3.1", .all, "10 * <MQIsdp> 03 02 003C <c>", connect(.v3_1)),
        Vector("CONNECT of 3.1.1", .all, "10 * <MQTT> 04 02 003C <c>", connect(.v3_1_1)),
        Vector("CONNECT of 5.0", .all, "10 * <MQTT> 05 02 003C {} <c>", connect(.v5_0)),
        Vector("without clean session", .all, "10 * <MQTT> 04 00 003C <c>", connect(.v3_1_1) { $0.cleanStart = false }),
        Vector("keep alive 0", .all, "10 * <MQTT> 04 02 0000 <c>", connect(.v3_1_1) { $0.keepAlive = 0 }),
        Vector("keep alive 65535", .all, "10 * <MQTT> 05 02 FFFF {} <c>", connect(.v5_0) { $0.keepAlive = 65_535 }),
        Vector(
            "empty client identifier, clean [MQTT-3.1.3-6]", .all, "10 * <MQTT> 04 02 003C <>", connect(.v3_1_1, "")),
        Vector(
            "empty client identifier in 5.0, not clean", .all, "10 * <MQTT> 05 00 003C {} <>",
            connect(.v5_0, "") { $0.cleanStart = false }),
        Vector("empty client identifier, not clean [MQTT-3.1.3-8]", .all, "10 * <MQTT> 04 00 003C <>", clientID),
        Vector("empty client identifier in 3.1", .all, "10 * <MQIsdp> 03 02 003C <>", clientID),
        Vector(
            "client identifier of more than 23 bytes", .all, "10 * <MQIsdp> 03 02 003C <abcdefghijklmnopqrstuvwxyz>",
            connect(.v3_1, "abcdefghijklmnopqrstuvwxyz")),
        Vector("client identifier beyond ASCII", .all, "10 * <MQTT> 04 02 003C <ö🙂>", connect(.v3_1_1, "ö🙂")),
        Vector("user name", .all, "10 * <MQTT> 04 82 003C <c> <u>", connect(.v3_1_1) { $0.userName = "u" }),
        Vector(
            "user name and password", .all, "10 * <MQTT> 04 C2 003C <c> <u> <p>",
            connect(.v3_1_1) { ($0.userName, $0.password) = ("u", [0x70]) }),
        Vector(
            "user name and password in 3.1", .all, "10 * <MQIsdp> 03 C2 003C <c> <u> <p>",
            connect(.v3_1) { ($0.userName, $0.password) = ("u", [0x70]) }),
        Vector(
            "empty user name and password", .all, "10 * <MQTT> 04 C2 003C <c> <> <>",
            connect(.v3_1_1) { ($0.userName, $0.password) = ("", []) }),
        Vector(
            "password is any bytes", .all, "10 * <MQTT> 05 C2 003C {} <c> <u> 0003 00FF80",
            connect(.v5_0) { ($0.userName, $0.password) = ("u", [0, 0xFF, 0x80]) }),
        Vector(
            "password alone in 5.0", .all, "10 * <MQTT> 05 42 003C {} <c> <p>", connect(.v5_0) { $0.password = [0x70] }),
        Vector(
            "password alone in 3.1.1 [MQTT-3.1.2-22]", .all, "10 * <MQTT> 04 42 003C <c> <p>",
            .refused(.malformedPacket, "MQTT-3.1.2-22")),
        Vector(
            "password alone in 3.1", .all, "10 * <MQIsdp> 03 42 003C <c> <p>",
            .refused(.malformedPacket, "MQTT-3.1.2-22")),
        Vector(
            "user name missing, allowed in 3.1", .all, "10 * <MQIsdp> 03 82 003C <c>",
            .reads(.connect(.init(version: .v3_1, clientID: "c")))),
        Vector(
            "password missing, allowed in 3.1", .all, "10 * <MQIsdp> 03 C2 003C <c> <u>",
            .reads(.connect(.init(version: .v3_1, clientID: "c", userName: "u")))),
        Vector("user name missing", .all, "10 * <MQTT> 04 82 003C <c>", short),
        Vector("password missing", .all, "10 * <MQTT> 05 C2 003C {} <c> <u>", short),
        Vector(
            "will", .all, "10 * <MQTT> 04 06 003C <c> <w> <bye>",
            connect(.v3_1_1) { $0.will = .init(Array("bye".utf8), to: "w") }),
        Vector(
            "will with QoS 1", .all, "10 * <MQTT> 04 0E 003C <c> <w> <>",
            connect(.v3_1_1) { $0.will = .init([], to: "w", qos: .atLeastOnce) }),
        Vector(
            "will with QoS 2 and RETAIN", .all, "10 * <MQTT> 04 36 003C <c> <w> <>",
            connect(.v3_1_1) { $0.will = .init([], to: "w", qos: .exactlyOnce, retain: true) }),
        Vector(
            "will in 3.1", .all, "10 * <MQIsdp> 03 26 003C <c> <w> <x>",
            connect(.v3_1) { $0.will = .init([0x78], to: "w", retain: true) }),
        Vector(
            "will with properties", .all, "10 * <MQTT> 05 06 003C {} <c> {18 00000005 01 01} <w> <x>",
            connect(.v5_0) {
                var properties = MQTTProperties()
                (properties.willDelayInterval, properties.payloadFormatIndicator) = (5, true)
                $0.will = .init([0x78], to: "w", properties: properties)
            }),
        Vector(
            "will and credentials in their order [MQTT-3.1.3-1]", .all, "10 * <MQTT> 04 C6 003C <c> <w> <x> <u> <p>",
            connect(.v3_1_1) {
                $0.will = .init([0x78], to: "w")
                ($0.userName, $0.password) = ("u", [0x70])
            }),
        Vector(
            "will with QoS 3 [MQTT-3.1.2-12]", .all, "10 * <MQTT> 05 1E 003C {} <c> {} <w> <x>",
            .refused(.malformedPacket, "MQTT-3.1.2-12")),
        Vector(
            "will QoS without will [MQTT-3.1.2-11]", .all, "10 * <MQTT> 04 0A 003C <c>",
            .refused(.malformedPacket, "MQTT-3.1.2-11")),
        Vector(
            "will QoS 3 without will", .all, "10 * <MQTT> 05 1A 003C {} <c>",
            .refused(.malformedPacket, "MQTT-3.1.2-11")),
        Vector(
            "will RETAIN without will [MQTT-3.1.2-13]", .all, "10 * <MQTT> 05 22 003C {} <c>",
            .refused(.malformedPacket, "MQTT-3.1.2-13")),
        Vector(
            "will flags without will, unused in 3.1", .all, "10 * <MQIsdp> 03 2A 003C <c>",
            .reads(.connect(.init(version: .v3_1, clientID: "c")))),
        Vector(
            "will topic with a wildcard", .all, "10 * <MQTT> 04 06 003C <c> <a/#> <x>",
            .refused(.topicNameInvalid, "MQTT-3.3.2-2")),
        Vector(
            "empty will topic", .all, "10 * <MQTT> 04 06 003C <c> <> <x>", .refused(.topicNameInvalid, "MQTT-4.7.3-1")),
        Vector("will missing", .all, "10 * <MQTT> 04 06 003C <c>", short),
        Vector("will payload missing", .all, "10 * <MQTT> 04 06 003C <c> <w>", short),
        Vector("will properties missing", .all, "10 * <MQTT> 05 06 003C {} <c>", short),
        Vector(
            "reserved flag [MQTT-3.1.2-3]", .all, "10 * <MQTT> 04 03 003C <c>",
            .refused(.malformedPacket, "MQTT-3.1.2-3")),
        Vector(
            "reserved flag in 5.0", .all, "10 * <MQTT> 05 01 003C {} <c>", .refused(.malformedPacket, "MQTT-3.1.2-3")),
        Vector(
            "reserved flag, unused in 3.1", .all, "10 * <MQIsdp> 03 03 003C <c>",
            .reads(.connect(.init(version: .v3_1, clientID: "c")))),
        Vector("protocol level 6 [MQTT-3.1.2-2]", .all, "10 * <MQTT> 06 02 003C <c>", version),
        Vector("protocol level 0", .all, "10 * <MQTT> 00 02 003C <c>", version),
        Vector("name of 3.1 at level 4", .all, "10 * <MQIsdp> 04 02 003C <c>", version),
        Vector("new name at level 3", .all, "10 * <MQTT> 03 02 003C <c>", version),
        Vector("another protocol [MQTT-3.1.2-1]", .all, "10 * <AMQP> 05 02 003C {} <c>", version),
        Vector("name in lower case", .all, "10 * <mqtt> 04 02 003C <c>", version),
        Vector("bridge bit on 3.1.1", .all, "10 * <MQTT> 84 02 003C <c>", version),
        Vector("bridge bit on 3.1", .all, "10 * <MQIsdp> 83 02 003C <c>", version),
        Vector("empty CONNECT", .all, "10 00", short),
        Vector("cut in the name", .all, "10 03 0004 'M'", short),
        Vector("cut behind the name", .all, "10 * <MQTT>", short),
        Vector("cut behind the level", .all, "10 * <MQTT> 04", short),
        Vector("cut in the keep alive", .all, "10 * <MQTT> 04 02 00", short),
        Vector("cut before the client identifier [MQTT-3.1.3-3]", .all, "10 * <MQTT> 04 02 003C", short),
        Vector("cut in the client identifier", .all, "10 * <MQTT> 04 02 003C 0002 'c'", short),
        Vector("bytes behind the end", .all, "10 * <MQTT> 04 02 003C <c> 00", short),
        Vector("user name without its flag", .all, "10 * <MQTT> 04 02 003C <c> <u>", short),
        Vector(
            "client identifier ill-formed [MQTT-1.5.4-1]", .all, "10 * <MQTT> 04 02 003C 0001 FF",
            .refused(.malformedPacket, "MQTT-1.5.4-1")),
        Vector(
            "client identifier with U+0000 [MQTT-1.5.4-2]", .all, "10 * <MQTT> 04 02 003C 0002 6100",
            .refused(.malformedPacket, "MQTT-1.5.4-2")),
        Vector(
            "user name with a surrogate", .all, "10 * <MQTT> 04 82 003C <c> 0003 EDA080",
            .refused(.malformedPacket, "MQTT-1.5.4-1")),
        Vector("properties longer than the packet", .all, "10 * <MQTT> 05 02 003C 7F <c>", short),
        Vector(
            "authentication data without method", .all, "10 * <MQTT> 05 02 003C {16 <x>} <c>",
            .refused(.protocolError, "MQTT 3.1.2.11.10")),
        Vector(
            "authentication method and data", .all, "10 * <MQTT> 05 02 003C {15 <m> 16 <x>} <c>",
            connect(.v5_0) {
                $0.properties.authenticationMethod = "m"
                $0.properties.authenticationData = [0x78]
            }),
        Vector(
            "session that never expires", .all, "10 * <MQTT> 05 02 003C {11 FFFFFFFF} <c>",
            connect(.v5_0) { $0.properties.sessionExpiryInterval = .max }),
    ]

    private static func connack(
        _ code: MQTTReasonCode = .success, present: Bool = false, _ properties: MQTTProperties = []
    ) -> Outcome {
        .packet(.connack(.init(sessionPresent: present, reasonCode: code, properties: properties)))
    }

    /// Section 3.2.
    static let connacks: [Vector] = [
        Vector("CONNACK before 5.0", .v3, "20 02 00 00", connack()),
        Vector("CONNACK of 5.0", .v5, "20 * 00 00 {}", connack()),
        Vector("session present", .v311, "20 02 01 00", connack(present: true)),
        Vector("session present in 5.0", .v5, "20 * 01 00 {}", connack(present: true)),
        Vector("session present, unused in 3.1", .v31, "20 02 01 00", .reads(.connack(.init()))),
        Vector("flags unused in 3.1", .v31, "20 02 FF 00", .reads(.connack(.init()))),
        Vector("reserved flags [MQTT-3.2.2-1]", .v311, "20 02 02 00", .refused(.malformedPacket, "MQTT 3.2.2.1")),
        Vector("reserved flags in 5.0", .v5, "20 * 81 00 {}", .refused(.malformedPacket, "MQTT 3.2.2.1")),
        Vector("return code 1", .v3, "20 02 00 01", connack(.unsupportedProtocolVersion)),
        Vector("return code 2", .v3, "20 02 00 02", connack(.clientIdentifierNotValid)),
        Vector("return code 3", .v3, "20 02 00 03", connack(.serverUnavailable)),
        Vector("return code 4", .v3, "20 02 00 04", connack(.badUserNameOrPassword)),
        Vector("return code 5", .v3, "20 02 00 05", connack(.notAuthorized)),
        Vector("return code 6", .v3, "20 02 00 06", .refused(.malformedPacket, "MQTT 3.2.2.3")),
        Vector("return code 0x87 before 5.0", .v3, "20 02 00 87", .refused(.malformedPacket, "MQTT 3.2.2.3")),
        Vector("reason code 0x87", .v5, "20 * 00 87 {}", connack(.notAuthorized)),
        Vector("reason code without a name", .v5, "20 * 00 FE {}", connack(.init(rawValue: 0xFE))),
        Vector(
            "session present in a refusal [MQTT-3.2.2-4, 3.1.1]", .v311, "20 02 01 05",
            .refused(.protocolError, "MQTT-3.2.2-4")),
        Vector(
            "session present in a refusal [MQTT-3.2.2-6]", .v5, "20 * 01 87 {}",
            .refused(.protocolError, "MQTT-3.2.2-6")),
        Vector("empty CONNACK", .all, "20 00", short),
        Vector("CONNACK of one byte", .all, "20 01 00", short),
        Vector("CONNACK of 5.0 without properties", .v5, "20 02 00 00", short),
        Vector(
            "CONNACK of 5.0 from a server of 3.1.1", .v5, "20 02 00 01", .refused(.protocolError, "MQTT-3.2.2-8")),
        Vector("properties before 5.0", .v3, "20 * 00 00 {}", short),
        Vector("bytes behind the properties", .v5, "20 * 00 00 {} 00", short),
        Vector(
            "assigned client identifier and keep alive", .v5, "20 * 00 00 {12 <x> 13 0004}",
            connack(
                .success,
                [
                    .init(.assignedClientIdentifier, .string("x")), .init(.serverKeepAlive, .integer(4)),
                ])),
        Vector(
            "what the server cannot", .v5, "20 * 00 00 {24 00 25 00 28 00 29 00 2A 00}",
            connack(
                .success,
                [
                    .init(.maximumQoS, .integer(0)), .init(.retainAvailable, .integer(0)),
                    .init(.wildcardSubscriptionAvailable, .integer(0)),
                    .init(.subscriptionIdentifierAvailable, .integer(0)),
                    .init(.sharedSubscriptionAvailable, .integer(0)),
                ])),
    ]

    /// Sections 3.14 and 3.15.
    static let endings: [Vector] = [
        Vector("DISCONNECT", .all, "E0 00", .packet(.disconnect(.init()))),
        Vector(
            "DISCONNECT with a reason", .v5, "E0 01 8B", .packet(.disconnect(.init(reasonCode: .serverShuttingDown)))),
        Vector(
            "DISCONNECT with will", .v5, "E0 01 04", .packet(.disconnect(.init(reasonCode: .disconnectWithWillMessage)))
        ),
        Vector("DISCONNECT with reason 0 written out", .v5, "E0 01 00", .reads(.disconnect(.init()))),
        Vector("DISCONNECT with no properties written out", .v5, "E0 * 00 {}", .reads(.disconnect(.init()))),
        Vector(
            "DISCONNECT with a reason string", .v5, "E0 * 89 {1F <why>}",
            .packet(.disconnect(.init(reasonCode: .serverBusy, properties: [.init(.reasonString, .string("why"))])))),
        Vector(
            "DISCONNECT to another server", .v5, "E0 * 9C {1C <b>}",
            .packet(
                .disconnect(.init(reasonCode: .useAnotherServer, properties: [.init(.serverReference, .string("b"))])))),
        Vector(
            "DISCONNECT with session expiry", .v5, "E0 * 00 {11 00000000}",
            .packet(.disconnect(.init(properties: [.init(.sessionExpiryInterval, .integer(0))])))),
        Vector("DISCONNECT with a reason before 5.0", .v3, "E0 01 00", short),
        Vector("DISCONNECT with bytes behind", .v5, "E0 * 00 {} 00", short),
        Vector("DISCONNECT with cut properties", .v5, "E0 * 00 05 11", short),
        Vector("AUTH of no bytes", .v5, "F0 00", .packet(.auth(.init()))),
        Vector(
            "AUTH to continue", .v5, "F0 * 18 {15 <m> 16 <x>}",
            .packet(
                .auth(
                    .init(
                        reasonCode: .continueAuthentication,
                        properties: [
                            .init(.authenticationMethod, .string("m")), .init(.authenticationData, .binary([0x78])),
                        ])))),
        Vector(
            "AUTH to authenticate again", .v5, "F0 * 19 {15 <m>}",
            .packet(.auth(.init(reasonCode: .reauthenticate, properties: [.init(.authenticationMethod, .string("m"))])))
        ),
        Vector("AUTH with a code alone", .v5, "F0 01 18", .packet(.auth(.init(reasonCode: .continueAuthentication)))),
        Vector("AUTH with bytes behind", .v5, "F0 * 00 {} 00", short),
        Vector("AUTH before 5.0", .v3, "F0 01 18", .refused(.malformedPacket, "MQTT 2.2.1")),
    ]
}
