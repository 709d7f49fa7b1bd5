import MQTTCore

extension Vector {
    private static let short = Outcome.refused(.malformedPacket, "MQTT 2.1.4")
    private static let flags = Outcome.refused(.malformedPacket, "MQTT-2.1.3-1")

    /// Section 2.1: type, flags, remaining length.
    static let headers: [Vector] = [
        Vector("nothing", .all, "", .waits),
        Vector("first byte alone", .all, "C0", .waits),
        Vector("remaining length cut after one byte", .all, "30 80", .waits),
        Vector("remaining length cut after three bytes", .all, "30 80 80 80", .waits),
        Vector("body missing", .all, "30 05", .waits),
        Vector("body cut", .all, "30 05 00 01", .waits),
        Vector("remaining length of five bytes", .all, "30 80 80 80 80 01", .refused(.malformedPacket, "MQTT 1.5.5")),
        Vector(
            "remaining length of four bytes that never ends", .all, "30 FF FF FF FF",
            .refused(.malformedPacket, "MQTT 1.5.5")),
        Vector("remaining length 0 in two bytes", .all, "C0 80 00", .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector("remaining length 2 in two bytes", .all, "40 82 00 00 01", .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector("remaining length in four bytes where three do", .all, "30 80 80 01 00 00", .waits),
        Vector(
            "remaining length in three bytes where two do", .all, "30 80 81 00",
            .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector(
            "remaining length in four bytes, the last zero", .all, "30 80 80 80 00",
            .refused(.malformedPacket, "MQTT-1.5.5-1")),
        Vector(
            "largest remaining length, above our maximum", .all, "30 FF FF FF 7F",
            .refused(.packetTooLarge, "MQTT-3.1.2-24")),
        Vector("packet one byte above our maximum", .all, "30 FD FF 3F", .refused(.packetTooLarge, "MQTT-3.1.2-24")),
        Vector("packet as large as our maximum", .all, "30 FC FF 3F", .waits),
        Vector("packet type 0", .all, "00 00", .refused(.malformedPacket, "MQTT 2.1.2")),
        Vector("packet type 0 with flags, before its length", .all, "0F", .refused(.malformedPacket, "MQTT 2.1.2")),
        Vector("packet type 15 before 5.0", .v3, "F0 00", .refused(.malformedPacket, "MQTT 2.2.1")),
        Vector("PINGREQ", .all, "C0 00", .packet(.pingreq)),
        Vector("PINGRESP", .all, "D0 00", .packet(.pingresp)),
        Vector("PINGREQ with a body", .all, "C0 01 00", .refused(.malformedPacket, "MQTT 3.12.1")),
        Vector("PINGRESP with a body", .all, "D0 02 00 00", .refused(.malformedPacket, "MQTT 3.13.1")),
        Vector("CONNECT with flags", .oasis, "11 00", flags),
        Vector("CONNACK with flags", .oasis, "22 00", flags),
        Vector("PUBACK with flags", .oasis, "41 02 00 01", flags),
        Vector("PUBREC with flags", .oasis, "52 02 00 01", flags),
        Vector("PUBREL without its flags", .all, "60 02 00 01", flags),
        Vector("PUBREL with other flags", .oasis, "6A 02 00 01", flags),
        Vector("PUBREL with RETAIN", .oasis, "63 02 00 01", flags),
        Vector("PUBCOMP with flags", .oasis, "78 02 00 01", flags),
        Vector("SUBSCRIBE without its flags", .all, "80 06 00 01 <a> 00", flags),
        Vector("SUBSCRIBE with DUP", .oasis, "8A 06 00 01 <a> 00", flags),
        Vector("SUBACK with flags", .oasis, "92 03 00 01 00", flags),
        Vector("UNSUBSCRIBE without its flags", .all, "A0 05 00 01 <a>", flags),
        Vector("UNSUBSCRIBE with QoS 2", .all, "A4 05 00 01 <a>", flags),
        Vector("UNSUBACK with flags", .oasis, "B1 02 00 01", flags),
        Vector("PINGREQ with flags", .oasis, "C2 00", flags),
        Vector("PINGRESP with flags", .oasis, "D8 00", flags),
        Vector("DISCONNECT with flags", .oasis, "E1 00", flags),
        Vector("AUTH with flags", .v5, "F1 00", flags),
        Vector("PUBREL with DUP, a repetition in 3.1", .v31, "6A 02 00 01", .reads(.pubrel(.init(packetID: 1)))),
        Vector(
            "SUBSCRIBE with DUP, a repetition in 3.1", .v31, "8A * 0001 <a> 00",
            .reads(.subscribe(.init(packetID: 1, subscriptions: [.init(filter: "a", qos: .atMostOnce)])))),
        Vector(
            "UNSUBSCRIBE with DUP, a repetition in 3.1", .v31, "AA * 0001 <a>",
            .reads(.unsubscribe(.init(packetID: 1, filters: ["a"])))),
        Vector("PINGREQ with flags, which 3.1 calls unused", .v31, "C2 00", .reads(.pingreq)),
    ]
}
