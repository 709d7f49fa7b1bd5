import TestSupport
import Testing

@testable import MQTTCore

@Suite("Engine: subscribing", .heavy)
struct RequestTests {
    @Test func `a SUBSCRIBE for which no identifier is free leaves when one is, and messages do not wait for it`()
        throws
    {
        let pair = EnginePair()
        try pair.connect()
        pair.server.acknowledges = false
        try pair.publish("1", qos: .atLeastOnce, token: 1)
        pair.settle()
        while pair.client.engine.session.window.reserveID() != nil {}
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        try pair.publish("2")
        pair.settle()
        #expect(!pair.client.types.contains(.subscribe))
        #expect(pair.server.texts == ["1", "2"])
        let place = try #require(pair.client.engine.session.window.inFlight.first)
        let slot = pair.client.engine.session.window.slots[Int(place)]
        try pair.inject(.puback(.init(packetID: slot.head.packetID)), into: pair.client)
        pair.settle()
        #expect(pair.client.types.contains(.subscribe))
    }

    @Test func `user properties of an UNSUBSCRIBE are not repeated on the next connection`() throws {
        let pair = EnginePair.persistent(version: .v5_0)
        try pair.connect()
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.settle()
        pair.serverAnswers = false
        var properties = MQTTProperties()
        properties.userProperties = [.init("why", "done")]
        try pair.client.engine.unwant("a", properties: properties)
        pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
        pair.settle()
        pair.cut()
        pair.serverAnswers = true
        try pair.connect()
        pair.settle()
        let received = pair.server.events.compactMap {
            if case .unsubscribeReceived(let packet) = $0 { packet.properties.userProperties.count } else { nil }
        }
        #expect(received == [1, 0])
    }

    @Test(arguments: MQTTVersion.allCases)
    func `subscriptions are answered code by code [MQTT-3.9.3-1]`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe(
            [.init(filter: "a", qos: .exactlyOnce), .init(filter: "b"), .init(filter: "c")], at: pair.now)
        pair.settle()
        guard case .subscribeReceived(let subscribe) = pair.server.events.last else {
            Issue.record("no SUBSCRIBE")
            return
        }
        try pair.server.engine.acknowledgeSubscribe(
            subscribe.packetID, codes: [.grantedQoS1, .grantedQoS0, .unspecifiedError], at: pair.now)
        pair.settle()
        guard case .subscribeCompleted(_, let codes, _) = pair.client.events.last else {
            Issue.record("no SUBACK")
            return
        }
        #expect(codes == [.grantedQoS1, .grantedQoS0, .unspecifiedError])
    }

    @Test(arguments: MQTTVersion.allCases)
    func `unsubscribing is answered`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        try pair.connect()
        try pair.client.engine.unsubscribe(["a", "b"], at: pair.now)
        pair.settle()
        guard case .unsubscribeCompleted(_, let codes, _) = pair.client.events.last else {
            Issue.record("no UNSUBACK")
            return
        }
        #expect(codes.count == (version == .v5_0 ? 2 : 0))
    }

    @Test func `a request that is never answered hides no later one that is late`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = 10_000_000_000 })
        try pair.connect()
        pair.serverAnswers = false
        func late() -> [String] {
            pair.client.events.flatMap { event -> [String] in
                if case .requestLate(let request) = event { request.filters } else { [] }
            }
        }
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        pair.settle()
        pair.advance(seconds: 11)
        #expect(late() == ["a"])
        try pair.client.engine.subscribe([.init(filter: "b")], at: pair.now)
        pair.settle()
        try pair.client.engine.unsubscribe(["c"], at: pair.now)
        pair.settle()
        pair.advance(seconds: 11)
        #expect(late() == ["a", "b", "c"])
        pair.cut()
        let failed = pair.client.events.compactMap {
            if case .requestFailed(let request) = $0 { request.token } else { nil }
        }
        #expect(failed.isEmpty)
    }

    @Test func `an answer behind messages that arrive slowly is not late`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = 10_000_000_000 })
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        try pair.client.engine.unsubscribe(["b"], at: pair.now)
        pair.settle()
        func late() -> [String] {
            pair.client.events.flatMap { event -> [String] in
                if case .requestLate(let request) = event { request.filters } else { [] }
            }
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
        #expect(late() == ["a", "b"])
        #expect(pair.client.failure == nil)
    }

    @Test func `an answer with another number of codes is a violation`() throws {
        let pair = EnginePair()
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
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
                try pair.client.engine.subscribe(filters, properties: properties, at: pair.now)
            }
            return error?.code
        }
        #expect(code([.init(filter: "")]) == .invalidFilter)
        #expect(code([.init(filter: "a+")]) == .invalidFilter)
        #expect(code([.init(filter: "a/+")]) == .subscriptionNotSupported)
        #expect(code([.init(filter: "$share/g/a")]) == .subscriptionNotSupported)
        #expect(code([.init(filter: "$share/g/a", noLocal: true)]) == .subscriptionNotSupported)
        #expect(
            code([.init(filter: "a")], [MQTTProperty(.subscriptionIdentifier, .integer(1))])
                == .subscriptionNotSupported)
        #expect(pair.client.engine.output.isEmpty)
    }

    @Test func `a full window leaves identifiers for subscriptions`() throws {
        let pair = EnginePair(client: { $0.maximumInFlight = .max }, server: { $0.receiveMaximum = .max })
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        for _ in 0..<65_535 {
            _ = try pair.client.engine.publish(topic: "a", payload: [], qos: .atLeastOnce, at: pair.now)
        }
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
    }

    @Test func `a request waits while all identifiers are in use`() throws {
        let pair = EnginePair(client: { $0.requestTimeout = .max })
        pair.serverAnswers = true
        try pair.connect()
        pair.serverAnswers = false
        for number in 0..<65_535 { try pair.client.engine.unsubscribe(["\(number)"], at: pair.now) }
        pair.flush()
        try pair.client.engine.unsubscribe(["a"], at: pair.now)
        #expect(pair.client.engine.output.isEmpty)
        // It leaves with the first identifier that is free.
        try pair.inject(.unsuback(.init(packetID: 7, reasonCodes: [.success])), into: pair.client)
        pair.flush()
        #expect(pair.client.sent.last == .unsubscribe(.init(packetID: 7, filters: ["a"])))
    }
}
