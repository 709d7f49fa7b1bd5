import MQTTCore
import TestSupport
import Testing

@Suite("Vocabulary", .heavy)
struct VocabularyTests {
    @Test("knows all 27 properties, each by one typed accessor that sets and removes it")
    func accessors() {
        #expect(MQTTPropertyIdentifier.allCases.count == 27)
        var all = MQTTProperties()
        all.payloadFormatIndicator = true
        all.messageExpiryInterval = 1
        all.contentType = "c"
        all.responseTopic = "r"
        all.correlationData = [1]
        all.subscriptionIdentifiers = [1, 2]
        all.sessionExpiryInterval = 2
        all.assignedClientIdentifier = "a"
        all.serverKeepAlive = 3
        all.authenticationMethod = "m"
        all.authenticationData = [2]
        all.requestProblemInformation = false
        all.willDelayInterval = 4
        all.requestResponseInformation = true
        all.responseInformation = "i"
        all.serverReference = "s"
        all.reasonString = "why"
        all.receiveMaximum = 5
        all.topicAliasMaximum = 6
        all.topicAlias = 7
        all.maximumQoS = .atLeastOnce
        all.retainAvailable = false
        all.userProperties = [.init("k", "v")]
        all.maximumPacketSize = 8
        all.wildcardSubscriptionAvailable = true
        all.subscriptionIdentifierAvailable = false
        all.sharedSubscriptionAvailable = true
        #expect(Set(all.list.map(\.identifier)) == Set(MQTTPropertyIdentifier.allCases))
        #expect(all.payloadFormatIndicator == true && all.messageExpiryInterval == 1 && all.contentType == "c")
        #expect(all.responseTopic == "r" && all.correlationData == [1] && all.subscriptionIdentifiers == [1, 2])
        #expect(all.sessionExpiryInterval == 2 && all.assignedClientIdentifier == "a" && all.serverKeepAlive == 3)
        #expect(all.authenticationMethod == "m" && all.authenticationData == [2])
        #expect(all.requestProblemInformation == false && all.willDelayInterval == 4)
        #expect(all.requestResponseInformation == true && all.responseInformation == "i")
        #expect(all.serverReference == "s" && all.reasonString == "why" && all.receiveMaximum == 5)
        #expect(all.topicAliasMaximum == 6 && all.topicAlias == 7 && all.maximumQoS == .atLeastOnce)
        #expect(all.retainAvailable == false && all.maximumPacketSize == 8)
        #expect(all.wildcardSubscriptionAvailable == true && all.subscriptionIdentifierAvailable == false)
        #expect(all.sharedSubscriptionAvailable == true && all.userProperties == [.init("k", "v")])
        all.topicAlias = 9
        #expect(all.list.filter { $0.identifier == .topicAlias }.count == 1)
        all.topicAlias = nil
        #expect(all.topicAlias == nil)
        #expect(all.list.count == 27)
    }

    @Test("writes all 27 properties as a literal, each by the factory with its accessor's name")
    func factories() {
        let all: MQTTProperties = [
            .payloadFormatIndicator(true), .messageExpiryInterval(1), .contentType("c"), .responseTopic("r"),
            .correlationData([1]), .subscriptionIdentifier(2), .sessionExpiryInterval(3),
            .assignedClientIdentifier("a"),
            .serverKeepAlive(4), .authenticationMethod("m"), .authenticationData([2]),
            .requestProblemInformation(false),
            .willDelayInterval(5), .requestResponseInformation(true), .responseInformation("i"), .serverReference("s"),
            .reasonString("why"), .receiveMaximum(6), .topicAliasMaximum(7), .topicAlias(8), .maximumQoS(.atLeastOnce),
            .retainAvailable(false), .userProperty("k", "v"), .maximumPacketSize(9),
            .wildcardSubscriptionAvailable(true),
            .subscriptionIdentifierAvailable(false), .sharedSubscriptionAvailable(true),
        ]
        #expect(all.count == 27 && Set(all.map(\.identifier)) == Set(MQTTPropertyIdentifier.allCases))
        #expect(all.payloadFormatIndicator == true && all.messageExpiryInterval == 1 && all.contentType == "c")
        #expect(all.responseTopic == "r" && all.correlationData == [1] && all.subscriptionIdentifiers == [2])
        #expect(all.sessionExpiryInterval == 3 && all.assignedClientIdentifier == "a" && all.serverKeepAlive == 4)
        #expect(all.authenticationMethod == "m" && all.authenticationData == [2])
        #expect(all.requestProblemInformation == false && all.willDelayInterval == 5)
        #expect(all.requestResponseInformation == true && all.responseInformation == "i")
        #expect(all.serverReference == "s" && all.reasonString == "why" && all.receiveMaximum == 6)
        #expect(all.topicAliasMaximum == 7 && all.topicAlias == 8 && all.maximumQoS == .atLeastOnce)
        #expect(all.retainAvailable == false && all.maximumPacketSize == 9)
        #expect(all.wildcardSubscriptionAvailable == true && all.subscriptionIdentifierAvailable == false)
        #expect(all.sharedSubscriptionAvailable == true && all.userProperty("k") == "v")
    }

    @Test("keeps user properties in order and finds them byte by byte")
    func userProperties() {
        var properties = MQTTProperties()
        properties.userProperties = [.init("cafe\u{301}", "1"), .init("caf\u{E9}", "2"), .init("caf\u{E9}", "3")]
        #expect(properties.userProperty("caf\u{E9}") == "2")
        #expect(properties.userProperty("cafe\u{301}") == "1")
        #expect(properties.userProperty("cafe") == nil)
        #expect(properties.userProperties.map(\.value) == ["1", "2", "3"])
    }

    @Test("translates connect return codes there and back", arguments: 0...5)
    func returnCodes(code: Int) throws {
        let reason = try #require(MQTTReasonCode(connectReturnCode: UInt8(code)))
        #expect(reason.connectReturnCode == UInt8(code))
        #expect(reason.isError == (code != 0))
    }

    @Test("describes reason codes in words and as a number")
    func reasonCodes() {
        #expect(MQTTReasonCode.notAuthorized.description == "not authorized (0x87)")
        #expect(MQTTReasonCode.success.description == "success (0x00)")
        #expect(MQTTReasonCode(rawValue: 0x7E).description == "unnamed reason (0x7E)")
        #expect(!MQTTReasonCode(rawValue: 0x7F).isError)
        #expect(MQTTReasonCode(rawValue: 0x80).isError)
        #expect(MQTTReasonCode(connectReturnCode: 6) == nil)
        #expect((0x80...0xA2).allSatisfy { MQTTReasonCode(rawValue: UInt8($0)).name != nil })
    }

    @Test("says what a violation is")
    func violations() {
        let violation = MQTTProtocolError(.protocolError, "packet identifier 0", clause: "MQTT-2.2.1-3")
        #expect(violation.description == "packet identifier 0 [MQTT-2.2.1-3, protocol error (0x82)]")
    }
}
