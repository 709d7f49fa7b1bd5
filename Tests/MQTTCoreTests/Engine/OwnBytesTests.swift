import MQTTCore
import MessagingWire
import TestSupport
import Testing

/// What a link needs to know in order to read on while a client's own messages wait.
@Suite("Engine: bytes of own messages")
struct OwnBytesTests {
    private func take(_ end: EnginePair.End, at now: Int64) {
        end.engine.outputTaken(at: now)
        end.engine.output = []
        end.engine.largePayload = nil
    }

    @Test(arguments: MQTTVersion.allCases, QoS.allCases)
    func `messages in the output are counted until it is taken, and other packets are not`(
        version: MQTTVersion, qos: QoS
    ) throws {
        let pair = EnginePair(version: version)
        try pair.connect()
        let client = pair.client
        client.engine.leastPayloadLeftOut = 500
        for _ in 0..<2 {
            for count in [10, 600, 600] {
                let payload = [UInt8](repeating: 1, count: count)
                _ = try client.engine.publish(topic: "t", payload: payload, qos: qos, at: pair.now)
            }
            #expect(client.engine.ownBytes == client.engine.outputCount)
            try client.engine.ping(at: pair.now)
            #expect(client.engine.ownBytes == client.engine.outputCount - 2)
            take(client, at: pair.now)
            #expect(client.engine.ownBytes == 0)
        }
        _ = try client.engine.publish(topic: "t", payload: [1], qos: qos, at: pair.now)
        client.run { $0.connectionClosed(at: pair.now, into: &$1) }
        #expect(client.engine.ownBytes == 0)
    }

    @Test func `messages from the queue and those that are sent again are counted`() throws {
        let pair = EnginePair.persistent(client: { $0.maximumInFlight = 2 })
        try pair.connect()
        let client = pair.client
        for _ in 0..<4 {
            _ = try client.engine.publish(topic: "t", payload: [1, 2, 3], qos: .atLeastOnce, at: pair.now)
        }
        let both = client.engine.outputCount
        #expect(client.engine.ownBytes == both)
        take(client, at: pair.now)
        // PUBACK of both makes room for the two in the queue.
        let acknowledgements: [UInt8] = [0x40, 2, 0, 1, 0x40, 2, 0, 2]
        client.run(acknowledgements) { engine, effects in
            _ = engine.receive(acknowledgements.span.bytes, at: pair.now, into: &effects)
        }
        #expect(client.engine.outputCount == both && client.engine.ownBytes == both)
        // The next connection continues the session.
        client.run { $0.connectionClosed(at: pair.now, into: &$1) }
        try client.engine.connectionOpened(at: pair.now)
        take(client, at: pair.now)
        let connack: [UInt8] = [0x20, 3, 1, 0, 0]
        client.run(connack) { engine, effects in
            _ = engine.receive(connack.span.bytes, at: pair.now, into: &effects)
        }
        #expect(client.engine.outputCount == both && client.engine.ownBytes == both)
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `messages that are acknowledged before they leave do not count`(qos: QoS) throws {
        let pair = EnginePair()
        try pair.connect()
        let client = pair.client
        for _ in 0..<2 { _ = try client.engine.publish(topic: "t", payload: [1, 2, 3], qos: qos, at: pair.now) }
        let ends: [UInt8] = qos == .atLeastOnce ? [0x40, 2, 0, 1] : [0x50, 2, 0, 1, 0x70, 2, 0, 1]
        client.run(ends) { engine, effects in
            _ = engine.receive(ends.span.bytes, at: pair.now, into: &effects)
        }
        #expect(client.completions.count == 1)
        #expect(client.engine.ownBytes == 0 && client.engine.outputCount > 0)
        take(client, at: pair.now)
        _ = try client.engine.publish(topic: "t", payload: [1, 2, 3], qos: qos, at: pair.now)
        #expect(client.engine.ownBytes == client.engine.outputCount)
    }
}
