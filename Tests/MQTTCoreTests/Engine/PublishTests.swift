import MQTTCore
import TestSupport
import Testing

@Suite("Engine: publishing", .heavy)
struct PublishTests {
    @Test(arguments: MQTTVersion.allCases)
    func `messages of every QoS arrive in each version`(version: MQTTVersion) throws {
        let pair = EnginePair(version: version)
        try pair.connect()
        for (index, qos) in QoS.allCases.enumerated() {
            #expect(try pair.publish("\(index)", to: "a/\(index)", qos: qos, token: UInt64(index)) == .written)
        }
        pair.settle()
        #expect(pair.server.texts == ["0", "1", "2"])
        #expect(pair.server.messages.map(\.topic) == ["a/0", "a/1", "a/2"])
        #expect(pair.server.messages.map(\.qos) == QoS.allCases)
        #expect(pair.client.completions.map(\.token) == [1, 2])
        #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged && $0.reason == .success })
        #expect(pair.client.types == [.connect, .publish, .publish, .publish, .pubrel])
        #expect(pair.server.types == [.connack, .puback, .pubrec, .pubcomp])
        #expect(pair.client.engine.inFlightCount == 0)
    }

    @Test func `QoS 0 has no packet identifier and no DUP [MQTT-2.2.1-2, 3.3.1-2]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.publish("x")
        pair.settle()
        #expect(pair.client.publishes == [.init(topic: "t", payload: [0x78])])
    }

    @Test func `an empty payload is a message, retained or not [MQTT-3.3.1-6]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.publish("", retain: true)
        pair.settle()
        #expect(pair.server.messages.map(\.payload) == [[]])
        #expect(pair.server.messages.map(\.isRetained) == [true])
    }

    @Test(arguments: ["", "a/+", "#", "a\0b", String(repeating: "x", count: 65_536)])
    func `a topic that is none is refused before anything is written`(topic: String) throws {
        let pair = EnginePair.persistent()
        for qos in QoS.allCases {
            if qos != .atMostOnce {
                #expect(throws: MQTTUsageError.self) { try pair.publish("x", to: topic, qos: qos) }
            }
        }
        try pair.connect()
        for qos in QoS.allCases {
            let error = #expect(throws: MQTTUsageError.self) { try pair.publish("x", to: topic, qos: qos) }
            #expect(error?.code != .notConnected)
        }
        #expect(pair.client.engine.output.isEmpty)
        #expect(pair.client.engine.inFlightCount == 0)
        #expect(pair.client.engine.queuedCount == 0)
    }

    @Test func `topics are kept apart byte by byte [MQTT-4.7.3-4]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.publish("1", to: "caf\u{E9}")
        try pair.publish("2", to: "cafe\u{301}")
        try pair.publish("3", to: "\u{FEFF}x")
        pair.settle()
        #expect(
            pair.server.messages.map { Array($0.topic.utf8) } == [
                Array("caf\u{E9}".utf8), Array("cafe\u{301}".utf8), Array("\u{FEFF}x".utf8),
            ])
    }

    @Test func `the server's limits are obeyed before anything is written`() throws {
        let pair = EnginePair(server: {
            $0.maximumQoS = .atLeastOnce
            $0.retainAvailable = false
            $0.maximumPacketSize = 50
        })
        try pair.connect()
        #expect(
            #expect(throws: MQTTUsageError.self) { try pair.publish("x", qos: .exactlyOnce) }?.code == .qosNotSupported)
        #expect(
            #expect(throws: MQTTUsageError.self) { try pair.publish("x", retain: true) }?.code == .retainNotAvailable)
        let large = String(repeating: "x", count: 50)
        for qos in [QoS.atMostOnce, .atLeastOnce] {
            let error = #expect(throws: MQTTUsageError.self) { try pair.publish(large, qos: qos) }
            #expect(error?.code == .packetTooLarge)
        }
        #expect(pair.client.engine.output.isEmpty)
        #expect(pair.client.engine.inFlightCount == 0)
        try pair.publish("fits", qos: .atLeastOnce)
        pair.settle()
        #expect(pair.server.texts == ["fits"])
    }

    @Test func `queued messages that the server turns out not to take complete as unsendable`() throws {
        let pair = EnginePair(server: {
            $0.maximumQoS = .atLeastOnce
            $0.retainAvailable = false
            $0.maximumPacketSize = 50
        })
        try pair.publish("qos", qos: .exactlyOnce, token: 1)
        try pair.publish("retain", qos: .atLeastOnce, retain: true, token: 2)
        try pair.publish(String(repeating: "x", count: 50), qos: .atLeastOnce, token: 3)
        try pair.publish("fine", qos: .atLeastOnce, token: 4)
        try pair.connect()
        #expect(pair.server.texts == ["fine"])
        #expect(
            pair.client.completions == [
                .init(token: 1, outcome: .unsendable, reason: .qosNotSupported),
                .init(token: 2, outcome: .unsendable, reason: .retainNotSupported),
                .init(token: 3, outcome: .unsendable, reason: .packetTooLarge),
                .init(token: 4, outcome: .acknowledged, reason: .success),
            ])
    }

    @Test func `the queue is bounded by count and says when there is room`() throws {
        let pair = EnginePair(client: { $0.maximumQueuedMessages = 4 })
        for index in 0..<4 { try pair.publish("\(index)", qos: .atLeastOnce, token: UInt64(index)) }
        let error = #expect(throws: MQTTUsageError.self) { try pair.publish("4", qos: .atLeastOnce) }
        #expect(error?.code == .queueFull)
        #expect(pair.client.engine.dropOldestQueued() == 0)
        try pair.publish("4", qos: .atLeastOnce, token: 4)
        try pair.connect()
        #expect(pair.client.hadRoom)
        #expect(pair.server.texts == ["1", "2", "3", "4"])
        #expect(pair.client.engine.queuedBytes == 0)
    }

    @Test func `the queue is bounded by bytes`() throws {
        let pair = EnginePair(client: { $0.maximumQueuedBytes = 10 })
        try pair.publish("12345678", qos: .atLeastOnce)
        #expect(pair.client.engine.queuedBytes == 9)
        let error = #expect(throws: MQTTUsageError.self) { try pair.publish("1", qos: .atLeastOnce) }
        #expect(error?.code == .queueFull)
        #expect(pair.client.engine.queuedCount == 1)
    }

    @Test func `properties count in the bytes of the queue`() throws {
        let pair = EnginePair(client: { $0.maximumQueuedBytes = 100 })
        let properties: MQTTProperties = [.userProperty("name", String(repeating: "x", count: 80))]
        try pair.publish("1", qos: .atLeastOnce, properties: properties)
        #expect(pair.client.engine.queuedBytes == 2 + 1 + 2 + 4 + 2 + 80)
        let error = #expect(throws: MQTTUsageError.self) {
            try pair.publish("2", qos: .atLeastOnce, properties: properties)
        }
        #expect(error?.code == .queueFull)
        _ = pair.client.engine.dropOldestQueued()
        #expect(pair.client.engine.queuedBytes == 0)
    }

    @Test func `a QoS 0 message does not overtake one of QoS 0 that waits behind the window`() throws {
        let pair = EnginePair(client: {
            $0.queuesQoS0WhileDisconnected = true
            $0.maximumInFlight = 1
        })
        try pair.publish("1", qos: .atLeastOnce)
        try pair.publish("2", qos: .atLeastOnce)
        try pair.publish("3")
        pair.server.acknowledges = false
        try pair.connect()
        #expect(try pair.publish("4") == .queued)
        pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
        pair.settle()
        #expect(pair.server.texts == ["1", "2", "3", "4"])
        #expect(try pair.publish("5") == .written)
    }

    @Test func `QoS 0 is queued while disconnected only if asked for`() throws {
        let pair = EnginePair(client: { $0.queuesQoS0WhileDisconnected = true })
        #expect(try pair.publish("x", token: 9) == .queued)
        try pair.connect()
        #expect(pair.server.texts == ["x"])
        #expect(pair.client.completions == [.init(token: 9, outcome: .written, reason: .success)])
    }

    @Test func `a refused message completes with the reason and frees its identifier [MQTT-4.4.0-2]`() throws {
        for qos in [QoS.atLeastOnce, .exactlyOnce] {
            let pair = EnginePair()
            pair.server.acknowledges = false
            try pair.connect()
            try pair.publish("x", qos: qos, token: 3)
            pair.settle()
            pair.server.engine.acknowledge(pair.server.messages[0].delivery, reason: .quotaExceeded, at: pair.now)
            pair.settle()
            #expect(pair.client.completions == [.init(token: 3, outcome: .refused, reason: .quotaExceeded)])
            #expect(pair.client.engine.inFlightCount == 0)
            #expect(!pair.client.types.contains(.pubrel))
        }
    }

    @Test func `properties travel, and those that are the engine's are refused`() throws {
        let pair = EnginePair()
        try pair.connect()
        var properties = MQTTProperties()
        properties.contentType = "text/plain"
        try pair.publish("x", properties: properties)
        pair.settle()
        #expect(pair.client.publishes.last?.properties.contentType == "text/plain")
        for identifier in [MQTTPropertyIdentifier.topicAlias, .subscriptionIdentifier] {
            let error = #expect(throws: MQTTUsageError.self) {
                try pair.publish("x", properties: [MQTTProperty(identifier, .integer(1))])
            }
            #expect(error?.code == .propertyNotAllowed)
        }
        let old = EnginePair(version: .v3_1_1)
        try old.connect()
        let error = #expect(throws: MQTTUsageError.self) { try old.publish("x", properties: properties) }
        #expect(error?.code == .notInThisVersion)
    }

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1], [QoS.atMostOnce, .atLeastOnce])
    func `before 5.0 an expiry counts in the queue, and is not sent`(version: MQTTVersion, qos: QoS) throws {
        let pair = EnginePair(version: version, client: { $0.queuesQoS0WhileDisconnected = true })
        var properties = MQTTProperties()
        properties.messageExpiryInterval = 10
        try pair.publish("late", qos: qos, properties: properties, token: 1)
        pair.now += 9_000_000_000
        try pair.publish("in time", qos: qos, properties: properties, token: 2)
        pair.now += 2_000_000_000
        try pair.connect()
        try pair.publish("at once", qos: qos, properties: properties, token: 3)
        pair.settle()
        #expect(pair.server.texts == ["in time", "at once"])
        #expect(pair.client.completions.first?.token == 1)
        #expect(pair.client.completions.first?.outcome == .expired)
        #expect(pair.client.publishes.allSatisfy { $0.properties.isEmpty })
        // It is the only property that older versions take.
        properties.contentType = "text/plain"
        let error = #expect(throws: MQTTUsageError.self) { try pair.publish("x", properties: properties) }
        #expect(error?.code == .notInThisVersion)
    }

    @Test func `a time to live is the expiry, in whole seconds`() {
        var message = MQTTOutgoingMessage("x", to: "a")
        #expect(message.timeToLive == nil)
        for (time, seconds) in [
            (Duration.milliseconds(1), 1), (.seconds(2), 2), (.milliseconds(2_500), 3), (.zero, 0), (.seconds(-5), 0),
        ] as [(Duration, UInt32)] {
            message.timeToLive = time
            #expect(message.properties.messageExpiryInterval == seconds)
        }
        message.timeToLive = .seconds(Int64.max)
        #expect(message.properties.messageExpiryInterval == .max)
        message.timeToLive = nil
        #expect(message.properties.isEmpty)
        message.properties.messageExpiryInterval = 7
        #expect(message.timeToLive == .seconds(7))
    }

    @Test func `the oldest message to a topic makes room`() throws {
        let pair = EnginePair.persistent()
        for (number, topic) in ["a", "b", "a", "c"].enumerated() {
            try pair.publish("\(number)", to: topic, qos: .atLeastOnce, token: UInt64(number))
        }
        #expect(pair.client.engine.dropOldestQueued(to: "d") == nil)
        #expect(pair.client.engine.dropOldestQueued(to: "b") == 1)
        #expect(pair.client.engine.dropOldestQueued(to: "a") == 0)
        #expect(pair.client.engine.dropOldestQueued(to: "a") == 2)
        #expect(pair.client.engine.dropOldestQueued(to: "a") == nil)
        #expect(pair.client.engine.dropOldestQueued() == 3)
        #expect(pair.client.engine.dropOldestQueued() == nil)
    }

    @Test func `the time in the queue shortens the expiry, and what expired is not sent [MQTT-3.3.2-6]`() throws {
        let pair = EnginePair()
        var properties = MQTTProperties()
        properties.messageExpiryInterval = 10
        try pair.publish("old", qos: .atLeastOnce, properties: properties, token: 1)
        pair.advance(seconds: 6)
        try pair.publish("young", qos: .atLeastOnce, properties: properties, token: 2)
        pair.advance(seconds: 5)
        try pair.connect()
        #expect(pair.server.texts == ["young"])
        #expect(pair.client.publishes.last?.properties.messageExpiryInterval == 5)
        #expect(pair.client.completions.first == .init(token: 1, outcome: .expired, reason: .success))
    }

    @Test func `what is queued is measured to the byte, and its topic is judged`() throws {
        let pair = EnginePair(client: { $0.maximumInFlight = 1 }, server: { $0.maximumPacketSize = 200 })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("fills the window", qos: .atLeastOnce)
        // Three bytes of fixed header, 2 + 1 of the topic, 2 of the identifier, 1 of no properties.
        let exact = String(repeating: "x", count: 200 - 9)
        #expect(try pair.publish(exact, qos: .atLeastOnce) == .queued)
        let error = #expect(throws: MQTTUsageError.self) { try pair.publish(exact + "x", qos: .atLeastOnce) }
        #expect(error?.code == .packetTooLarge)
        #expect(error?.message.contains("201") == true)
        let topic = #expect(throws: MQTTUsageError.self) { try pair.publish("x", to: "a/#", qos: .atLeastOnce) }
        #expect(topic?.code == .invalidTopic)
        pair.server.acknowledges = true
        pair.server.engine.acknowledgeAll(through: .max, at: pair.now)
        pair.settle()
        #expect(pair.server.texts.last == exact)
        #expect(pair.client.completions.allSatisfy { $0.outcome == .acknowledged })
    }
}
