import MQTTCore
import MessagingWire
import Testing

@testable import MessagingJudge

/// Each rule for clients of MQTT: a conversation that breaks it and nothing else, and one like it that breaks nothing.
@Suite struct MQTTClauseTests {
    struct Case {
        let clause: Clause
        let breaks: MQTTScript
        let keeps: MQTTScript

        init(_ clause: Clause, breaks: MQTTScript, keeps: MQTTScript) {
            (self.clause, self.breaks, self.keeps) = (clause, breaks, keeps)
        }
    }

    private static let v5 = MQTTScript().connected()
    private static let v3 = MQTTScript(.v3_1_1).connected()
    private static func auth(_ method: String?, _ code: MQTTReasonCode) -> MQTTPacket {
        var properties = MQTTProperties()
        properties.authenticationMethod = method
        return .auth(.init(reasonCode: code, properties: properties))
    }
    /// A server that asks once, and accepts then.
    private static func authenticating(_ answer: MQTTPacket) -> MQTTScript {
        MQTTScript().connect(method: "m").server(auth("m", .continueAuthentication)).client(answer)
    }
    private static func allowing(_ property: MQTTProperty) -> MQTTScript {
        MQTTScript().connected(allowing: [property])
    }
    private static func expiry(_ seconds: UInt32) -> MQTTProperties { [.messageExpiryInterval(seconds)] }
    private static func leaving(_ expiry: UInt32) -> MQTTPacket {
        .disconnect(.init(properties: [.sessionExpiryInterval(expiry)]))
    }

    static let connectionCases: [Case] = [
        Case(.malformedPacket, breaks: v5.client(bytes: [0x36, 0]), keeps: v5.client(bytes: [0xC0, 0])),
        Case(
            .malformedPacket, breaks: v5.publish(1, retain: true).client(bytes: [0x80, 2, 0, 1]), keeps: v5.publish(1)),
        Case(.connectFirst, breaks: MQTTScript().publish(), keeps: MQTTScript().connect().publish()),
        Case(.connectOnce, breaks: v5.connect(), keeps: v5.lost.connected()),
        Case(
            .packetBeforeConnack, breaks: MQTTScript().connect(method: "m").client(.pingreq),
            keeps: MQTTScript().connect().client(.pingreq)),
        Case(
            .packetAfterDisconnect, breaks: v5.client(.disconnect(.init())).client(.pingreq),
            keeps: v5.client(.pingreq).client(.disconnect(.init()))),
        Case(.packetFromServer, breaks: v5.client(.pingresp), keeps: v5.client(.pingreq).server(.pingresp)),
        Case(
            .sessionPresentAfterCleanStart, breaks: MQTTScript().connected(present: true, clean: true).client(.pingreq),
            keeps: MQTTScript().connected(present: true, clean: true).client(.disconnect(.init()))),
        Case(.keepAlive, breaks: v5.wait(71).client(.pingreq), keeps: v5.wait(60).client(.pingreq)),
        Case(
            .keepAlive, breaks: allowing(.serverKeepAlive(5)).wait(16).client(.pingreq),
            keeps: allowing(.serverKeepAlive(0)).wait(1000).client(.pingreq)),
        Case(
            .expiryInDisconnect, breaks: MQTTScript().connected(expiry: 0).client(leaving(5)),
            keeps: MQTTScript().connected(expiry: 9).client(leaving(5))),
        Case(
            .authenticationWithoutMethod, breaks: v5.client(auth("m", .reauthenticate)),
            keeps: MQTTScript().connect(method: "m").server(.connack(.init())).client(auth("m", .reauthenticate))),
        Case(
            .authenticationMethodChanged, breaks: authenticating(auth("n", .continueAuthentication)),
            keeps: authenticating(auth("m", .continueAuthentication))),
        Case(
            .authenticationOutOfTurn, breaks: authenticating(auth("m", .reauthenticate)),
            keeps: authenticating(auth("m", .continueAuthentication)).server(.connack(.init()))
                .client(auth("m", .reauthenticate)).server(auth("m", .continueAuthentication))
                .client(auth("m", .continueAuthentication)).server(auth("m", .success))
                .client(auth("m", .reauthenticate))),
    ]

    static let limitCases: [Case] = [
        Case(
            .maximumQoS, breaks: allowing(.maximumQoS(.atLeastOnce)).publish(1, .exactlyOnce),
            keeps: allowing(.maximumQoS(.atLeastOnce)).publish(1)),
        Case(
            .retainUnavailable, breaks: allowing(.retainAvailable(false)).publish(retain: true),
            keeps: allowing(.retainAvailable(true)).publish(retain: true)),
        // PUBLISH of QoS 0 has 7 bytes here, and of QoS 1 two more.
        Case(
            .maximumPacketSize, breaks: allowing(.maximumPacketSize(8)).publish(1),
            keeps: allowing(.maximumPacketSize(9)).publish(1)),
        Case(
            .receiveMaximum,
            breaks: allowing(.receiveMaximum(2)).publish(1).publish(2, .exactlyOnce).server(.pubrec(.answer(2)))
                .client(.pubrel(.answer(2))).publish(3),
            keeps: allowing(.receiveMaximum(2)).publish(1).publish(2, .exactlyOnce).publish()
                .server(.pubrec(.answer(2, .quotaExceeded))).publish(3).server(.puback(.answer(1))).publish(4)),
        Case(
            .aliasAboveMaximum, breaks: allowing(.topicAliasMaximum(2)).publish(with: [.topicAlias(3)]),
            keeps: allowing(.topicAliasMaximum(2)).publish(with: [.topicAlias(2)])),
        Case(.aliasAboveMaximum, breaks: v5.publish(with: [.topicAlias(1)]), keeps: v5.publish()),
        Case(
            .aliasUnknown,
            breaks: allowing(.topicAliasMaximum(2)).publish(with: [.topicAlias(1)]).lost
                .connected(present: true, allowing: [.topicAliasMaximum(2)]).publish(
                    0, .atMostOnce, "", with: [.topicAlias(1)]),
            keeps: allowing(.topicAliasMaximum(2)).publish(with: [.topicAlias(1)]).publish(
                0, .atMostOnce, "", with: [.topicAlias(1)])),
        Case(
            .wildcardUnavailable, breaks: allowing(.wildcardSubscriptionAvailable(false)).subscribe(1, "a/+"),
            keeps: allowing(.wildcardSubscriptionAvailable(false)).subscribe(1, "a/b")),
        Case(
            .subscriptionIdentifierUnavailable,
            breaks: allowing(.subscriptionIdentifierAvailable(false)).subscribe(1, identifier: 4),
            keeps: allowing(.subscriptionIdentifierAvailable(false)).subscribe(1)),
        Case(
            .sharedUnavailable, breaks: allowing(.sharedSubscriptionAvailable(false)).subscribe(1, "$share/a/b"),
            keeps: v5.subscribe(1, "$share/a/b")),
        Case(
            .subscriptionIdentifierInPublish, breaks: v5.publish(with: [.subscriptionIdentifier(1)]),
            keeps: v5.subscribe(1, identifier: 1)),
    ]

    private static let twoLost = v5.publish(1).publish(2).lost.connected(present: true)
    private static func limited(_ script: MQTTScript, _ property: MQTTProperty) -> MQTTScript {
        script.lost.connected(present: true, allowing: [property]).lost.connected(present: true)
    }
    private static let received = v5.publish(1, .exactlyOnce).server(.pubrec(.answer(1)))

    static let exchangeCases: [Case] = [
        Case(
            .packetIdentifierInUse, breaks: v5.publish(1).publish(1),
            keeps: v5.publish(1).server(.puback(.answer(1))).publish(1)),
        Case(
            .packetIdentifierInUse, breaks: v5.publish(1).subscribe(1),
            keeps: v5.publish(1).subscribe(2).subscribe(2)),
        Case(
            .packetIdentifierInUse, breaks: v5.subscribe(1, granted: nil).publish(1),
            keeps: v5.subscribe(1, granted: nil).publish(2)),
        Case(
            .packetIdentifierInUse,
            breaks: v5.subscribe(1, granted: nil).client(.unsubscribe(.init(packetID: 1, filters: ["f"]))),
            keeps: v5.subscribe(1).client(.unsubscribe(.init(packetID: 1, filters: ["f"])))),
        Case(
            .packetIdentifierInUse, breaks: received.client(.pubrel(.answer(1))).publish(1),
            keeps: received.client(.pubrel(.answer(1))).server(.pubcomp(.answer(1))).publish(1)),
        Case(.duplicateFlagMissing, breaks: twoLost.publish(1), keeps: twoLost.publish(1, dup: true)),
        Case(
            .duplicateFlagMissing,
            breaks: v5.publish(1).server(.puback(.answer(1))).lost.connected(present: true).publish(1),
            keeps: v5.publish(1).server(.puback(.answer(1))).lost.connected(present: true).publish(1, .atLeastOnce, "u")
        ),
        Case(
            .duplicateFlagOnFirst, breaks: v5.publish(1, dup: true),
            keeps: v5.lost.connected(present: true).publish(1, dup: true)),
        Case(
            .duplicateFlagOnFirst, breaks: v5.publish(1).lost.connected().publish(1, dup: true),
            keeps: v5.publish(1).lost.connected().publish(1)),
        Case(
            .repetitionDiffers, breaks: twoLost.publish(1, .atLeastOnce, "u", dup: true),
            keeps: twoLost.publish(1, dup: true)),
        Case(
            .repetitionDiffers,
            breaks: v5.publish(1, with: [.contentType("a")]).lost.connected(present: true).publish(1, dup: true),
            keeps: v5.publish(1, with: [.contentType("a")]).lost.connected(present: true).publish(
                1, dup: true, with: [.contentType("a")])),
        Case(
            .repetitionDiffers,
            breaks: v5.publish(1, with: expiry(9)).lost.connected(present: true).publish(1, dup: true),
            keeps: v5.publish(1, with: expiry(9)).lost.connected(present: true).publish(1, dup: true, with: expiry(9))),
        Case(
            .repetitionOutOfTurn, breaks: v5.publish(1).publish(1, dup: true),
            keeps: v5.publish(1).lost.connected(present: true).publish(1, dup: true)),
        Case(
            .repetitionOutOfTurn,
            breaks: received.client(.pubrel(.answer(1))).client(.pubrel(.answer(1))),
            keeps: received.client(.pubrel(.answer(1))).server(.pubrec(.answer(1))).client(.pubrel(.answer(1))).lost
                .connected(present: true).client(.pubrel(.answer(1)))),
        Case(
            .repetitionOrder, breaks: twoLost.publish(2, dup: true).publish(1, dup: true),
            keeps: twoLost.publish(1, dup: true).publish(2, dup: true)),
        Case(
            .publishAfterPubrel,
            breaks: received.client(.pubrel(.answer(1))).lost.connected(present: true).publish(
                1, .exactlyOnce, dup: true),
            keeps: received.lost.connected(present: true).publish(1, .exactlyOnce, dup: true)),
        Case(
            .pubrelWithoutPubrec, breaks: v5.publish(1, .exactlyOnce).client(.pubrel(.answer(1))),
            keeps: received.client(.pubrel(.answer(1)))),
        Case(
            .pubrelWithoutPubrec,
            breaks: v5.publish(1, .exactlyOnce).server(.pubrec(.answer(1, .quotaExceeded))).client(.pubrel(.answer(1))),
            keeps: v5.server(.pubrec(.answer(5))).client(.pubrel(.answer(5, .packetIdentifierNotFound)))),
        Case(
            .pubrelOrder,
            breaks: v5.publish(1, .exactlyOnce).publish(2, .exactlyOnce).server(.pubrec(.answer(1)))
                .server(.pubrec(.answer(2))).client(.pubrel(.answer(2))),
            keeps: v5.publish(1, .exactlyOnce).publish(2, .exactlyOnce).server(.pubrec(.answer(2)))
                .server(.pubrec(.answer(1))).client(.pubrel(.answer(2))).client(.pubrel(.answer(1)))),
        Case(
            .pubrelOrder,
            breaks: v5.publish(1, .exactlyOnce).publish(2, .exactlyOnce).server(.pubrec(.answer(1)))
                .server(.pubrec(.answer(2))).lost.connected(present: true).client(.pubrel(.answer(2)))
                .client(.pubrel(.answer(1))),
            keeps: v5.publish(1, .exactlyOnce).publish(2, .exactlyOnce).server(.pubrec(.answer(1)))
                .server(.pubrec(.answer(2))).lost.connected(present: true).client(.pubrel(.answer(1)))
                .client(.pubrel(.answer(2)))),
        Case(
            .pubackOrder, breaks: v5.message(1).message(2).client(.puback(.answer(2))),
            keeps: v5.message(1).message(2, .exactlyOnce).client(.pubrec(.answer(2))).client(.puback(.answer(1)))),
        Case(
            .pubrecOrder, breaks: v3.message(1, .exactlyOnce).message(2, .exactlyOnce).client(.pubrec(.answer(2))),
            keeps: v3.message(1, .exactlyOnce).message(2, .exactlyOnce).client(.pubrec(.answer(1))).client(
                .pubrec(.answer(2)))),
        Case(
            .answerWithoutPublish, breaks: v5.message(1).client(.puback(.answer(1))).client(.puback(.answer(1))),
            keeps: v5.message(1).message(1).client(.puback(.answer(1))).client(.puback(.answer(1)))),
        Case(
            .answerWithoutPublish, breaks: v5.message(1).lost.connected(present: true).client(.puback(.answer(1))),
            keeps: v5.message(1).lost.connected(present: true).message(1).client(.puback(.answer(1)))),
        Case(
            .answerOfOtherQoS, breaks: v5.message(1, .exactlyOnce).client(.puback(.answer(1))),
            keeps: v5.message(1, .exactlyOnce).client(.pubrec(.answer(1)))),
        Case(
            .answerOfOtherQoS, breaks: v5.message(1).client(.pubrec(.answer(1))),
            keeps: v5.message(1).client(.puback(.answer(1)))),
        Case(
            .pubcompWithoutPubrel,
            breaks: v5.message(1, .exactlyOnce).client(.pubrec(.answer(1))).client(.pubcomp(.answer(1))),
            keeps: v5.message(1, .exactlyOnce).client(.pubrec(.answer(1))).server(.pubrel(.answer(1))).client(
                .pubcomp(.answer(1)))),
    ]

    private static let held = v5.subscribe(1, identifier: 4).client(.pingreq).lost

    /// One message was released on the connection before, and is again where the server accepts two.
    private static let releasedOfTwo = received.client(.pubrel(.answer(1))).lost
        .connected(present: true, allowing: [.receiveMaximum(2)]).client(.pubrel(.answer(1)))

    static let promiseCases: [Case] = [
        Case(
            .repetitionOnSameConnection, breaks: v3.publish(1).publish(1, dup: true),
            keeps: v3.publish(1).lost.connected(present: true).publish(1, dup: true)),
        Case(
            .unfinishedFirst, breaks: twoLost.publish(1, dup: true).publish(3),
            keeps: twoLost.publish(1, dup: true).publish(2, dup: true).publish(3)),
        Case(
            .unfinishedFirst, breaks: received.lost.connected(present: true).publish(3),
            keeps: received.lost.connected(present: true).client(.pubrel(.answer(1))).publish(3)),
        Case(
            .unfinishedFirst, breaks: limited(v5.publish(1), .maximumQoS(.atLeastOnce)).publish(3),
            keeps: limited(v5.publish(1, .exactlyOnce), .maximumQoS(.atLeastOnce)).publish(3)),
        Case(
            .unfinishedFirst,
            breaks: limited(received.client(.pubrel(.answer(1))), .maximumPacketSize(8)).publish(3),
            keeps: limited(received, .maximumPacketSize(8)).publish(3)),
        Case(
            .unfinishedFirst,
            breaks: limited(v5.publish(1, retain: true), .retainAvailable(false)).publish(1, dup: true, retain: true)
                .lost.connected(present: true).publish(3),
            keeps: limited(v5.publish(1, retain: true), .retainAvailable(false)).publish(3)),
        Case(
            .expiryNotReduced,
            breaks: v5.publish(1, with: expiry(100)).wait(30).lost.connected(present: true).publish(
                1, dup: true, with: expiry(100)),
            keeps: v5.publish(1, with: expiry(100)).wait(30).lost.connected(present: true).publish(
                1, dup: true, with: expiry(70))),
        Case(
            .willChanged, breaks: MQTTScript().connected(will: MQTTWill("a", to: "w")).lost.connected(),
            keeps: MQTTScript().connected(will: MQTTWill("a", to: "w")).client(.disconnect(.init())).lost.connected()),
        Case(
            .sessionExpiryChanged, breaks: v5.lost.connected(expiry: 99),
            keeps: v5.lost.connected().client(.disconnect(.init())).lost.connected(expiry: 99)),
        Case(
            .connectChanged, breaks: MQTTScript().connected(with: [.receiveMaximum(9)]).lost.connected(present: true),
            keeps: MQTTScript().connected(with: [.receiveMaximum(9)]).lost
                .connected(present: true, with: [.receiveMaximum(9)])),
        Case(
            .connectChanged, breaks: v3.lost.connected(keepAlive: 61),
            keeps: v3.client(.disconnect(.init())).lost.connected(keepAlive: 61)),
        Case(
            .releaseNotCounted,
            breaks: releasedOfTwo.publish(3).publish(4),
            keeps: releasedOfTwo.publish(3).server(.pubcomp(.answer(1))).publish(4).server(.puback(.answer(3))).publish(
                5)),
        Case(
            .needlessSubscribe,
            breaks: held.connected(present: true).subscribe(1, identifier: 4).lost.connected(present: true)
                .subscribe(1, identifier: 4),
            keeps: held.connected(present: true).publish().subscribe(1, identifier: 4).lost.connected()
                .subscribe(1, identifier: 4)),
        Case(
            .subscriptionIdentifierChanged, breaks: held.connected().subscribe(1, identifier: 5),
            keeps: held.connected().subscribe(1, identifier: 4)),
    ]

    static let cases = connectionCases + limitCases + exchangeCases + promiseCases

    @Test(arguments: cases.indices)
    func `A conversation breaks this rule, and another keeps it`(index: Int) {
        let found = Self.cases[index]
        for pieces in [Int.max, 1, 3] {
            #expect(found.breaks.judged(pieces: pieces) == [found.clause], "\(found.breaks.violations())")
            #expect(found.keeps.judged(pieces: pieces) == [], "\(found.clause): \(found.keeps.violations())")
        }
    }

    @Test func `Each rule of MQTT has a conversation that breaks it`() {
        #expect(Set(Self.cases.map(\.clause)) == Set(Clause.allCases.filter { !$0.isOfSTOMP }))
    }

    @Test func `Promises of our clients are not examined in others`() {
        var options = JudgeOptions()
        (options.judgesPromises, options.judgesTime) = (false, true)
        for found in Self.cases {
            let clauses = found.breaks.violations(options).map(\.clause)
            #expect(!clauses.contains { $0.isPromise }, "\(found.clause)")
            // What may be the same message once more is no violation of every client.
            guard !found.clause.isPromise, found.clause != .duplicateFlagMissing else { continue }
            #expect(clauses == [found.clause])
        }
        // A client may use the identifier of an answered message for an equal one.
        let again = Self.v5.publish(1).server(.puback(.answer(1))).lost.connected(present: true).publish(1)
        #expect(again.violations(options).isEmpty)
        #expect(Self.twoLost.publish(1).violations(options).map(\.clause) == [.duplicateFlagMissing])
    }

    @Test func `A late packet is no violation by the clock of a real machine`() {
        #expect(MQTTScript().connected().wait(1000).client(.pingreq).violations(JudgeOptions()).isEmpty)
    }

    @Test func `A violation names the client, the rule, its clause and the packet`() {
        let found = MQTTScript().connected().wait(3).publish(7, dup: true).violations()
        #expect(found.count == 1)
        #expect(found.first?.time == 3_000_000_000)
        #expect(
            found.first?.description
                == "'c' broke the rule 'duplicateFlagOnFirst' on connection 1. The session has no earlier "
                + "connection that may have lost it. PUBLISH id 7 QoS 1 DUP to 't' \"a\" [v5 MQTT-4.3.2-2 and MQTT-4.3.3-2, "
                + "v3 MQTT-4.3.2-1 and MQTT-4.3.3-1]"
        )
    }

    @Test func `A client whose session another connection has taken over is judged no more`() {
        var judge = MQTTJudge()
        func bytes(_ packet: MQTTPacket) -> [UInt8] {
            var bytes: [UInt8] = []
            try? packet.encode(into: &bytes, version: .v5_0)
            return bytes
        }
        for connection in [1, 2] {
            judge.opened(connection)
            judge.clientWrote(
                bytes(.connect(.init(clientID: "c", cleanStart: false))).span.bytes, on: connection, at: 0)
            judge.serverWrote(bytes(.connack(.init(sessionPresent: connection == 2))).span.bytes, on: connection, at: 0)
        }
        judge.clientWrote(bytes(.pingresp).span.bytes, on: 1, at: 0)
        #expect(judge.takeViolations().isEmpty)
        judge.clientWrote(bytes(.pingresp).span.bytes, on: 2, at: 0)
        #expect(judge.takeViolations().map(\.clause) == [.packetFromServer])
        #expect(judge.takeViolations().isEmpty)
    }
}
