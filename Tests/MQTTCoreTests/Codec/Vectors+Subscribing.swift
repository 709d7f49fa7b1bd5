import MQTTCore

extension Vector {
    private static let short = Outcome.refused(.malformedPacket, "MQTT 2.1.4")
    private static let hash = Outcome.refused(.topicFilterInvalid, "MQTT-4.7.1-1")
    private static let plus = Outcome.refused(.topicFilterInvalid, "MQTT-4.7.1-2")
    private static let zeroID = Outcome.refused(.protocolError, "MQTT-2.2.1-3")

    private static func subscribe(_ requests: MQTTSubscriptionRequest..., properties: MQTTProperties = []) -> Outcome {
        .packet(.subscribe(.init(packetID: 10, subscriptions: requests, properties: properties)))
    }

    private static func suback(_ codes: MQTTReasonCode..., properties: MQTTProperties = []) -> Outcome {
        .packet(.suback(.init(packetID: 10, reasonCodes: codes, properties: properties)))
    }

    private static func unsuback(_ codes: MQTTReasonCode..., properties: MQTTProperties = []) -> Outcome {
        .packet(.unsuback(.init(packetID: 10, reasonCodes: codes, properties: properties)))
    }

    /// Sections 3.8 to 3.11.
    static let subscribing: [Vector] = [
        Vector("SUBSCRIBE", .v3, "82 * 000A <a> 00", subscribe(.init(filter: "a", qos: .atMostOnce))),
        Vector("SUBSCRIBE of 5.0", .v5, "82 * 000A {} <a> 00", subscribe(.init(filter: "a", qos: .atMostOnce))),
        Vector("SUBSCRIBE QoS 1", .v3, "82 * 000A <a/+> 01", subscribe(.init(filter: "a/+", qos: .atLeastOnce))),
        Vector("SUBSCRIBE QoS 2", .v3, "82 * 000A <#> 02", subscribe(.init(filter: "#", qos: .exactlyOnce))),
        Vector(
            "SUBSCRIBE of three filters", .v3, "82 * 000A <a> 00 <b> 01 <c/#> 02",
            subscribe(
                .init(filter: "a", qos: .atMostOnce), .init(filter: "b", qos: .atLeastOnce),
                .init(filter: "c/#", qos: .exactlyOnce))),
        Vector(
            "SUBSCRIBE with no local", .v5, "82 * 000A {} <a> 04",
            subscribe(.init(filter: "a", qos: .atMostOnce, noLocal: true))),
        Vector(
            "SUBSCRIBE with retain as published", .v5, "82 * 000A {} <a> 08",
            subscribe(.init(filter: "a", qos: .atMostOnce, retainAsPublished: true))),
        Vector(
            "SUBSCRIBE with retain handling 1", .v5, "82 * 000A {} <a> 10",
            subscribe(.init(filter: "a", qos: .atMostOnce, retainHandling: .sendIfNew))),
        Vector(
            "SUBSCRIBE with retain handling 2", .v5, "82 * 000A {} <a> 20",
            subscribe(.init(filter: "a", qos: .atMostOnce, retainHandling: .doNotSend))),
        Vector(
            "SUBSCRIBE with all options", .v5, "82 * 000A {} <a> 2E",
            subscribe(
                .init(
                    filter: "a", qos: .exactlyOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend))
        ),
        Vector(
            "SUBSCRIBE with an identifier", .v5, "82 * 000A {0B 8001} <a> 00",
            subscribe(.init(filter: "a", qos: .atMostOnce), properties: [.init(.subscriptionIdentifier, .integer(128))])
        ),
        Vector(
            "SUBSCRIBE with identifier 0", .v5, "82 * 000A {0B 00} <a> 00", .refused(.protocolError, "MQTT 2.2.2.2")),
        Vector(
            "SUBSCRIBE with two identifiers", .v5, "82 * 000A {0B 01 0B 02} <a> 00",
            .refused(.protocolError, "MQTT 2.2.2.2")),
        Vector(
            "SUBSCRIBE shared", .v5, "82 * 000A {} <$share/g/a/#> 01",
            subscribe(.init(filter: "$share/g/a/#", qos: .atLeastOnce))),
        Vector(
            "SUBSCRIBE shared with no local [MQTT-3.8.3-4]", .v5, "82 * 000A {} <$share/g/a> 04",
            .refused(.protocolError, "MQTT-3.8.3-4")),
        Vector(
            "SUBSCRIBE shared without filter [MQTT-4.8.2-2]", .v5, "82 * 000A {} <$share/g/> 00",
            .refused(.topicFilterInvalid, "MQTT-4.8.2-2")),
        Vector(
            "SUBSCRIBE shared without name [MQTT-4.8.2-1]", .v5, "82 * 000A {} <$share//a> 00",
            .refused(.topicFilterInvalid, "MQTT-4.8.2-1")),
        Vector(
            "SUBSCRIBE shared with a wildcard name", .v5, "82 * 000A {} <$share/+/a> 00",
            .refused(.topicFilterInvalid, "MQTT-4.8.2-2")),
        Vector(
            "SUBSCRIBE to $share, a topic as others before 5.0", .v3, "82 * 000A <$share//a> 00",
            subscribe(.init(filter: "$share//a", qos: .atMostOnce))),
        Vector(
            "SUBSCRIBE without filters [MQTT-3.8.3-3, 3.1.1]", .v311, "82 02 000A",
            .refused(.protocolError, "MQTT-3.8.3-3")),
        Vector(
            "SUBSCRIBE without filters [MQTT-3.8.3-2]", .v5, "82 * 000A {}", .refused(.protocolError, "MQTT-3.8.3-2")),
        Vector("SUBSCRIBE with packet identifier 0", .all, "82 * 0000 <a> 00", zeroID),
        Vector(
            "SUBSCRIBE with QoS 3 [MQTT-3.8.3-4, 3.1.1]", .v3, "82 * 000A <a> 03",
            .refused(.malformedPacket, "MQTT-3.8.3-4")),
        Vector("SUBSCRIBE with QoS 3", .v5, "82 * 000A {} <a> 03", .refused(.malformedPacket, "MQTT 3.8.3.1")),
        Vector(
            "SUBSCRIBE with retain handling 3", .v5, "82 * 000A {} <a> 30", .refused(.protocolError, "MQTT 3.8.3.1")),
        Vector(
            "SUBSCRIBE with a reserved option [MQTT-3.8.3-5]", .v5, "82 * 000A {} <a> 40",
            .refused(.malformedPacket, "MQTT-3.8.3-5")),
        Vector(
            "SUBSCRIBE with the other reserved option", .v5, "82 * 000A {} <a> 80",
            .refused(.malformedPacket, "MQTT-3.8.3-5")),
        Vector(
            "SUBSCRIBE with no local in 3.1.1", .v311, "82 * 000A <a> 04", .refused(.malformedPacket, "MQTT-3.8.3-4")),
        Vector(
            "SUBSCRIBE with bits that 3.1 calls unused", .v31, "82 * 000A <a> FD",
            .reads(.subscribe(.init(packetID: 10, subscriptions: [.init(filter: "a", qos: .atLeastOnce)])))),
        Vector("SUBSCRIBE without options", .v3, "82 * 000A <a>", short),
        Vector("SUBSCRIBE with a cut second filter", .v3, "82 * 000A <a> 00 0002 'b'", short),
        Vector("empty SUBSCRIBE", .all, "82 00", short),
        Vector("SUBSCRIBE of 5.0 without properties", .v5, "82 02 000A", short),
        Vector(
            "SUBSCRIBE to an empty filter [MQTT-4.7.3-1]", .v3, "82 * 000A <> 00",
            .refused(.topicFilterInvalid, "MQTT-4.7.3-1")),
        Vector("SUBSCRIBE with # inside [MQTT-4.7.1-1]", .v3, "82 * 000A <a/#/b> 00", hash),
        Vector("SUBSCRIBE with # behind text", .v3, "82 * 000A <a#> 00", hash),
        Vector("SUBSCRIBE with ##", .v5, "82 * 000A {} <##> 00", hash),
        Vector("SUBSCRIBE with + behind text [MQTT-4.7.1-2]", .v3, "82 * 000A <a+> 00", plus),
        Vector("SUBSCRIBE with + before text", .v3, "82 * 000A <+a/b> 00", plus),
        Vector("SUBSCRIBE with ++", .v5, "82 * 000A {} <++> 00", plus),
        Vector("SUBSCRIBE with U+0000", .v3, "82 * 000A 0001 00 00", .refused(.malformedPacket, "MQTT-1.5.4-2")),
        Vector("SUBSCRIBE ill-formed", .v3, "82 * 000A 0002 C328 00", .refused(.malformedPacket, "MQTT-1.5.4-1")),
        Vector("SUBACK", .v3, "90 * 000A 00", suback(.grantedQoS0)),
        Vector(
            "SUBACK of each code [MQTT-3.9.3-1]", .v3, "90 * 000A 00 01 02 80",
            suback(.grantedQoS0, .grantedQoS1, .grantedQoS2, .unspecifiedError)),
        Vector(
            "SUBACK of 5.0", .v5, "90 * 000A {} 00 02 87 A2",
            suback(.grantedQoS0, .grantedQoS2, .notAuthorized, .wildcardSubscriptionsNotSupported)),
        Vector(
            "SUBACK with a reason string", .v5, "90 * 000A {1F <x>} 80",
            suback(.unspecifiedError, properties: [.init(.reasonString, .string("x"))])),
        Vector(
            "SUBACK with code 3 [MQTT-3.9.3-2, 3.1.1]", .v3, "90 * 000A 03", .refused(.malformedPacket, "MQTT-3.9.3-2")),
        Vector("SUBACK with a code of 5.0", .v3, "90 * 000A 00 87", .refused(.malformedPacket, "MQTT-3.9.3-2")),
        Vector("SUBACK without codes", .v3, "90 02 000A", .refused(.protocolError, "MQTT-3.9.3-1")),
        Vector("SUBACK of 5.0 without codes", .v5, "90 * 000A {}", .refused(.protocolError, "MQTT-3.9.3-1")),
        Vector("SUBACK with packet identifier 0", .all, "90 * 0000 00", zeroID),
        Vector("empty SUBACK", .all, "90 00", short),
        Vector("UNSUBSCRIBE", .v3, "A2 * 000A <a>", .packet(.unsubscribe(.init(packetID: 10, filters: ["a"])))),
        Vector(
            "UNSUBSCRIBE of 5.0", .v5, "A2 * 000A {} <a> <b/#>",
            .packet(.unsubscribe(.init(packetID: 10, filters: ["a", "b/#"])))),
        Vector(
            "UNSUBSCRIBE with user properties", .v5, "A2 * 000A {26 <k> <v>} <a>",
            .packet(
                .unsubscribe(
                    .init(packetID: 10, filters: ["a"], properties: [.init(.userProperty, .pair(.init("k", "v")))])))),
        Vector(
            "UNSUBSCRIBE with a reason string", .v5, "A2 * 000A {1F <x>} <a>",
            .refused(.malformedPacket, "MQTT 2.2.2.2")),
        Vector(
            "UNSUBSCRIBE without filters [MQTT-3.10.3-2]", .v3, "A2 02 000A", .refused(.protocolError, "MQTT-3.10.3-2")),
        Vector("UNSUBSCRIBE of 5.0 without filters", .v5, "A2 * 000A {}", .refused(.protocolError, "MQTT-3.10.3-2")),
        Vector("UNSUBSCRIBE with packet identifier 0", .all, "A2 * 0000 <a>", zeroID),
        Vector("UNSUBSCRIBE with a bad filter", .v3, "A2 * 000A <a/#/b>", hash),
        Vector("UNSUBSCRIBE cut", .v3, "A2 * 000A 0005 'a'", short),
        Vector("UNSUBACK before 5.0", .v3, "B0 02 000A", unsuback()),
        Vector("UNSUBACK with codes before 5.0", .v3, "B0 03 000A 00", short),
        Vector("UNSUBACK of 5.0", .v5, "B0 * 000A {} 00 11", unsuback(.success, .noSubscriptionExisted)),
        Vector(
            "UNSUBACK with a reason string", .v5, "B0 * 000A {1F <x>} 00",
            unsuback(.success, properties: [.init(.reasonString, .string("x"))])),
        Vector(
            "UNSUBACK of 5.0 without codes [MQTT-3.11.3-1]", .v5, "B0 * 000A {}",
            .refused(.protocolError, "MQTT-3.11.3-1")),
        Vector("UNSUBACK with packet identifier 0", .all, "B0 * 0000 00", zeroID),
    ]
}
