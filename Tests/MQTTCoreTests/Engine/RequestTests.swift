import MQTTCore
import TestSupport
import Testing

@Suite("Engine: subscribing", .heavy)
struct RequestTests {
    @Test(arguments: MQTTVersion.allCases)
    func `subscriptions are answered code by code [MQTT-3.9.3-1]`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe(
            [.init(filter: "a", qos: .exactlyOnce), .init(filter: "b"), .init(filter: "c")], token: 1, at: pair.now)
        pair.settle()
        guard case .subscribeReceived(let subscribe) = pair.server.events.last else {
            Issue.record("no SUBSCRIBE")
            return
        }
        try pair.server.engine.acknowledgeSubscribe(
            subscribe.packetID, codes: [.grantedQoS1, .grantedQoS0, .unspecifiedError], at: pair.now)
        pair.settle()
        guard case .subscribeCompleted(1, let codes, _) = pair.client.events.last else {
            Issue.record("no SUBACK")
            return
        }
        #expect(codes == [.grantedQoS1, .grantedQoS0, .unspecifiedError])
    }

    @Test(arguments: MQTTVersion.allCases)
    func `unsubscribing is answered`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        try pair.connect()
        try pair.client.engine.unsubscribe(["a", "b"], token: 2, at: pair.now)
        pair.settle()
        guard case .unsubscribeCompleted(2, let codes, _) = pair.client.events.last else {
            Issue.record("no UNSUBACK")
            return
        }
        #expect(codes.count == (version == .v5_0 ? 2 : 0))
    }

    @Test func `a request that is never answered hides no later one that is late`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = 10_000_000_000 })
        try pair.connect()
        pair.serverAnswers = false
        func late() -> [UInt64] {
            pair.client.events.compactMap { if case .requestLate(let token) = $0 { token } else { nil } }
        }
        try pair.client.engine.subscribe([.init(filter: "a")], token: 1, at: pair.now)
        pair.settle()
        pair.advance(seconds: 11)
        #expect(late() == [1])
        try pair.client.engine.subscribe([.init(filter: "b")], token: 2, at: pair.now)
        pair.settle()
        try pair.client.engine.unsubscribe(["c"], token: 3, at: pair.now)
        pair.settle()
        pair.advance(seconds: 11)
        #expect(late() == [1, 2, 3])
        pair.cut()
        let failed = pair.client.events.compactMap { if case .requestFailed(let token) = $0 { token } else { nil } }
        #expect(failed == [1, 2, 3])
    }

    @Test func `an answer behind messages that arrive slowly is not late`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = 10_000_000_000 })
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], token: 1, at: pair.now)
        try pair.client.engine.unsubscribe(["b"], token: 2, at: pair.now)
        pair.settle()
        func late() -> [UInt64] {
            pair.client.events.compactMap { if case .requestLate(let token) = $0 { token } else { nil } }
        }
        func pass(_ seconds: Int) throws {
            for _ in 0..<seconds {
                pair.advance(seconds: 1)
                try pair.inject(.publish(.init(topic: "a", payload: [1])), into: pair.client)
            }
        }
        try pass(55)
        #expect(late().isEmpty)
        // PINGRESP has arrived: so would the answers, if the server had sent any.
        pair.settle()
        try pass(9)
        #expect(late() == [1, 2])
        #expect(pair.client.failure == nil)
    }

    @Test func `an answer with another number of codes is a violation`() throws {
        let pair = EnginePair()
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], token: 1, at: pair.now)
        pair.settle()
        try pair.inject(.suback(.init(packetID: 1, reasonCodes: [.success, .success])), into: pair.client)
        #expect(pair.client.violation?.clause == "MQTT-3.9.3-1")
    }

    @Test func `what cannot be asked is refused before anything is written`() throws {
        let pair = EnginePair()
        pair.connackProperties.wildcardSubscriptionAvailable = false
        pair.connackProperties.sharedSubscriptionAvailable = false
        pair.connackProperties.subscriptionIdentifierAvailable = false
        try pair.connect()
        func code(_ filters: [MQTTSubscriptionRequest], _ properties: MQTTProperties = []) -> MQTTUsageError.Code? {
            let error = #expect(throws: MQTTUsageError.self) {
                try pair.client.engine.subscribe(filters, properties: properties, token: 1, at: pair.now)
            }
            return error?.code
        }
        #expect(code([]) == .noFilters)
        #expect(code([.init(filter: "")]) == .invalidFilter)
        #expect(code([.init(filter: "a+")]) == .invalidFilter)
        #expect(code([.init(filter: "a/+")]) == .subscriptionNotSupported)
        #expect(code([.init(filter: "$share/g/a")]) == .subscriptionNotSupported)
        #expect(code([.init(filter: "$share/g/a", noLocal: true)]) == .subscriptionNotSupported)
        #expect(
            code([.init(filter: "a")], [MQTTProperty(.subscriptionIdentifier, .integer(1))])
                == .subscriptionNotSupported)
        #expect(pair.client.engine.output.isEmpty)
        let idle = EnginePair()
        let error = #expect(throws: MQTTUsageError.self) {
            try idle.client.engine.subscribe([.init(filter: "a")], token: 1, at: 0)
        }
        #expect(error?.code == .notConnected)
    }

    @Test func `a full window leaves identifiers for subscriptions`() throws {
        let pair = EnginePair(client: { $0.maximumInFlight = .max }, server: { $0.receiveMaximum = .max })
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        for _ in 0..<65_535 {
            _ = try pair.client.engine.publish(topic: "a", payload: [], qos: .atLeastOnce, at: pair.now)
        }
        try pair.client.engine.subscribe([.init(filter: "a")], token: 1, at: pair.now)
    }

    @Test func `all identifiers in use is an error and not a loop`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = .max })
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        for token in 0..<65_535 {
            try pair.client.engine.unsubscribe(["a"], token: UInt64(token), at: pair.now)
        }
        let error = #expect(throws: MQTTUsageError.self) {
            try pair.client.engine.unsubscribe(["a"], token: 1, at: pair.now)
        }
        #expect(error?.code == .noPacketIdentifier)
    }
}
