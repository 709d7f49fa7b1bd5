import MQTTCore

extension Vector {
    private static let range = Outcome.refused(.protocolError, "MQTT 2.2.2.2")
    private static let unknown = Outcome.refused(.malformedPacket, "MQTT 2.2.2.2")
    private static let short = Outcome.refused(.malformedPacket, "MQTT 2.1.4")

    private static func inPublish(_ property: MQTTProperty) -> Outcome {
        .packet(.publish(.init(topic: "a", payload: [], properties: [property])))
    }

    private static func inConnack(_ property: MQTTProperty) -> Outcome {
        .packet(.connack(.init(properties: [property])))
    }

    /// Section 2.2.2: types, ranges and multiplicity of properties.
    static let properties: [Vector] = [
        Vector("payload format 0", .v5, "30 * <a> {01 00}", inPublish(.init(.payloadFormatIndicator, .integer(0)))),
        Vector("payload format 1", .v5, "30 * <a> {01 01}", inPublish(.init(.payloadFormatIndicator, .integer(1)))),
        Vector("payload format 2", .v5, "30 * <a> {01 02}", range),
        Vector(
            "message expiry 0", .v5, "30 * <a> {02 00000000}", inPublish(.init(.messageExpiryInterval, .integer(0)))),
        Vector(
            "message expiry of all bits", .v5, "30 * <a> {02 FFFFFFFF}",
            inPublish(.init(.messageExpiryInterval, .integer(.max)))),
        Vector("message expiry cut", .v5, "30 * <a> {02 FFFFFF}", short),
        Vector("empty content type", .v5, "30 * <a> {03 <>}", inPublish(.init(.contentType, .string("")))),
        Vector("content type ill-formed", .v5, "30 * <a> {03 0001 FF}", .refused(.malformedPacket, "MQTT-1.5.4-1")),
        Vector("content type with U+0000", .v5, "30 * <a> {03 0001 00}", .refused(.malformedPacket, "MQTT-1.5.4-2")),
        Vector("content type beyond the properties", .v5, "30 * <a> {03 0002 61} 'x'", short),
        Vector(
            "correlation data of any bytes", .v5, "30 * <a> {09 0002 FF00}",
            inPublish(.init(.correlationData, .binary([0xFF, 0])))),
        Vector("correlation data cut", .v5, "30 * <a> {09 00}", short),
        Vector(
            "subscription identifier of two bytes", .v5, "30 * <a> {0B 8001}",
            inPublish(.init(.subscriptionIdentifier, .integer(128)))),
        Vector("subscription identifier 0", .v5, "30 * <a> {0B 00}", range),
        Vector(
            "subscription identifier of five bytes", .v5, "30 * <a> {0B 8080808001}",
            .refused(.malformedPacket, "MQTT 1.5.5")),
        Vector(
            "subscription identifier longer than need be", .v5, "30 * <a> {0B 8100}",
            .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector("subscription identifier beyond the properties", .v5, "30 * <a> {0B 80} 01", short),
        Vector("payload format twice", .v5, "30 * <a> {01 01 01 01}", range),
        Vector("topic alias twice", .v5, "30 * <a> {23 0001 23 0001}", range),
        Vector("content type twice, apart", .v5, "30 * <a> {03 <x> 26 <k> <v> 03 <x>}", range),
        Vector("property 0", .v5, "30 * <a> {00 00}", unknown),
        Vector("property 4", .v5, "30 * <a> {04 00}", unknown),
        Vector("property 0x2B", .v5, "30 * <a> {2B 00}", unknown),
        Vector("property 0x7F", .v5, "30 * <a> {7F 00}", unknown),
        Vector("property 300", .v5, "30 * <a> {AC02 00}", unknown),
        Vector(
            "property identifier longer than need be", .v5, "30 * <a> {8100 00}",
            .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector("property without value", .v5, "30 * <a> {01}", short),
        Vector("user property without value", .v5, "30 * <a> {26 <k>}", short),
        Vector(
            "user property ill-formed", .v5, "30 * <a> {26 <k> 0001 C0}", .refused(.malformedPacket, "MQTT-1.5.4-1")),
        Vector(
            "user property with U+0000 in its name", .v5, "30 * <a> {26 0001 00 <v>}",
            .refused(.malformedPacket, "MQTT-1.5.4-2")),
        Vector("receive maximum 1", .v5, "20 * 00 00 {21 0001}", inConnack(.init(.receiveMaximum, .integer(1)))),
        Vector("receive maximum 0", .v5, "20 * 00 00 {21 0000}", range),
        Vector("receive maximum 0 in CONNECT", .v5, "10 * <MQTT> 05 02 003C {21 0000} <c>", range),
        Vector(
            "maximum packet size 1", .v5, "20 * 00 00 {27 00000001}", inConnack(.init(.maximumPacketSize, .integer(1)))),
        Vector("maximum packet size 0", .v5, "20 * 00 00 {27 00000000}", range),
        Vector("maximum QoS 1", .v5, "20 * 00 00 {24 01}", inConnack(.init(.maximumQoS, .integer(1)))),
        Vector("maximum QoS 2", .v5, "20 * 00 00 {24 02}", range),
        Vector("retain available 1", .v5, "20 * 00 00 {25 01}", inConnack(.init(.retainAvailable, .integer(1)))),
        Vector("retain available 2", .v5, "20 * 00 00 {25 02}", range),
        Vector("wildcards available 255", .v5, "20 * 00 00 {28 FF}", range),
        Vector("subscription identifiers available 2", .v5, "20 * 00 00 {29 02}", range),
        Vector("shared subscriptions available 2", .v5, "20 * 00 00 {2A 02}", range),
        Vector("topic alias maximum 0", .v5, "20 * 00 00 {22 0000}", inConnack(.init(.topicAliasMaximum, .integer(0)))),
        Vector("server keep alive 0", .v5, "20 * 00 00 {13 0000}", inConnack(.init(.serverKeepAlive, .integer(0)))),
        Vector(
            "response information", .v5, "20 * 00 00 {1A <r>}", inConnack(.init(.responseInformation, .string("r")))),
        Vector("request problem information 2", .v5, "10 * <MQTT> 05 02 003C {17 02} <c>", range),
        Vector("request response information 2", .v5, "10 * <MQTT> 05 02 003C {19 02} <c>", range),
        Vector("session expiry twice", .v5, "10 * <MQTT> 05 02 003C {11 00000001 11 00000001} <c>", range),
        Vector("reason string twice", .v5, "40 * 0001 00 {1F <a> 1F <b>}", range),
        Vector("will delay among the properties of CONNECT", .v5, "10 * <MQTT> 05 02 003C {18 00000001} <c>", unknown),
        Vector("session expiry among the will's", .v5, "10 * <MQTT> 05 06 003C {} <c> {11 00000001} <w> <>", unknown),
        Vector("will delay twice", .v5, "10 * <MQTT> 05 06 003C {} <c> {18 00000001 18 00000001} <w> <>", range),
        Vector("will with payload format 2", .v5, "10 * <MQTT> 05 06 003C {} <c> {01 02} <w> <>", range),
    ]

    /// Every property on its own in a packet that must not carry it.
    static let propertyPlaces: [Vector] = [
        Vector("payload format in CONNACK", .v5, "20 * 00 00 {01 01}", unknown),
        Vector("message expiry in SUBSCRIBE", .v5, "82 * 0001 {02 00000001} <a> 00", unknown),
        Vector("content type in CONNECT", .v5, "10 * <MQTT> 05 02 003C {03 <x>} <c>", unknown),
        Vector("response topic in PUBACK", .v5, "40 * 0001 00 {08 <x>}", unknown),
        Vector("correlation data in DISCONNECT", .v5, "E0 * 00 {09 <x>}", unknown),
        Vector("subscription identifier in SUBACK", .v5, "90 * 0001 {0B 01} 00", unknown),
        Vector("subscription identifier in UNSUBSCRIBE", .v5, "A2 * 0001 {0B 01} <a>", unknown),
        Vector("session expiry in PUBLISH", .v5, "30 * <a> {11 00000001}", unknown),
        Vector("assigned client identifier in CONNECT", .v5, "10 * <MQTT> 05 02 003C {12 <x>} <c>", unknown),
        Vector("server keep alive in CONNECT", .v5, "10 * <MQTT> 05 02 003C {13 0001} <c>", unknown),
        Vector("authentication method in PUBLISH", .v5, "30 * <a> {15 <x>}", unknown),
        Vector("authentication data in DISCONNECT", .v5, "E0 * 00 {16 <x>}", unknown),
        Vector("request problem information in CONNACK", .v5, "20 * 00 00 {17 01}", unknown),
        Vector("will delay in PUBLISH", .v5, "30 * <a> {18 00000001}", unknown),
        Vector("request response information in CONNACK", .v5, "20 * 00 00 {19 01}", unknown),
        Vector("response information in CONNECT", .v5, "10 * <MQTT> 05 02 003C {1A <x>} <c>", unknown),
        Vector("server reference in PUBACK", .v5, "40 * 0001 00 {1C <x>}", unknown),
        Vector("reason string in PUBLISH", .v5, "30 * <a> {1F <x>}", unknown),
        Vector("reason string in CONNECT", .v5, "10 * <MQTT> 05 02 003C {1F <x>} <c>", unknown),
        Vector("reason string in SUBSCRIBE", .v5, "82 * 0001 {1F <x>} <a> 00", unknown),
        Vector("receive maximum in PUBLISH", .v5, "30 * <a> {21 0001}", unknown),
        Vector("topic alias maximum in AUTH", .v5, "F0 * 18 {22 0001}", unknown),
        Vector("topic alias in the will", .v5, "10 * <MQTT> 05 06 003C {} <c> {23 0001} <w> <>", unknown),
        Vector("maximum QoS in CONNECT", .v5, "10 * <MQTT> 05 02 003C {24 01} <c>", unknown),
        Vector("retain available in CONNECT", .v5, "10 * <MQTT> 05 02 003C {25 01} <c>", unknown),
        Vector("maximum packet size in DISCONNECT", .v5, "E0 * 00 {27 00000001}", unknown),
        Vector("wildcards available in CONNECT", .v5, "10 * <MQTT> 05 02 003C {28 01} <c>", unknown),
        Vector("identifiers available in SUBACK", .v5, "90 * 0001 {29 01} 00", unknown),
        Vector("shared available in UNSUBACK", .v5, "B0 * 0001 {2A 01} 00", unknown),
    ]
}
