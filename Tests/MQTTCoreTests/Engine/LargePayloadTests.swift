import MQTTCore
import MessagingWire
import TestSupport
import Testing

@Suite("Engine: payloads that are left out")
struct LargePayloadTests {
    @Test(arguments: MQTTVersion.allCases, QoS.allCases)
    func `output and the payload that it leaves out are the packets`(version: MQTTVersion, qos: QoS) throws {
        let large = (0..<5_000).map { UInt8(truncatingIfNeeded: $0) }
        let (whole, sparing) = (EnginePair(version: version), EnginePair(version: version))
        for pair in [whole, sparing] { try pair.connect() }
        sparing.client.engine.leastPayloadLeftOut = 5_000
        for pair in [whole, sparing] {
            for payload in [Array(large.dropLast()), large, [1], large] {
                _ = try pair.client.engine.publish(topic: "t", payload: payload, qos: qos, at: pair.now)
            }
        }
        let payload = sparing.client.engine.largePayload
        let left = try #require(payload)
        // The caller's own bytes.
        #expect(left.bytes.withUnsafeBytes { $0.baseAddress } == large.withUnsafeBytes { $0.baseAddress })
        var output = sparing.client.engine.output
        #expect(output.count + 5_000 == whole.client.engine.output.count)
        #expect(sparing.client.engine.outputCount == whole.client.engine.output.count)
        left.insert(into: &output)
        #expect(output == whole.client.engine.output)
        sparing.client.run { $0.connectionClosed(at: 0, into: &$1) }
        #expect(sparing.client.engine.outputCount == 0)
    }

    @Test func `a payload that the peer does not accept is not left out either`() throws {
        let pair = EnginePair(server: { $0.maximumPacketSize = 1_000 })
        try pair.connect()
        pair.client.engine.leastPayloadLeftOut = 500
        #expect(throws: MQTTUsageError.self) {
            _ = try pair.client.engine.publish(topic: "t", payload: [UInt8](repeating: 1, count: 1_000), at: pair.now)
        }
        #expect(pair.client.engine.outputCount == 0)
    }

    @Test(arguments: [0, 1, 3], QoS.allCases)
    func `messages are counted without the payload that is left out`(place: Int, qos: QoS) throws {
        let (whole, sparing) = (EnginePair(), EnginePair())
        for pair in [whole, sparing] { try pair.connect() }
        sparing.client.engine.leastPayloadLeftOut = 500
        for pair in [whole, sparing] {
            for number in 0..<4 {
                let payload = [UInt8](repeating: 0x30, count: number == place ? 500 : number * 50)
                _ = try pair.client.engine.publish(
                    topic: "t", payload: payload, qos: number == place ? qos : .atMostOnce, at: pair.now)
            }
        }
        let (expected, output) = (whole.client.engine.output, sparing.client.engine.output)
        let payload = sparing.client.engine.largePayload
        #expect(output.count + 500 == expected.count)
        for offset in 0...expected.count {
            let count = MQTTPacket.Publish.countAtMostOnce(
                in: output.span.bytes, leavingOut: payload, endingAfter: offset)
            #expect(count == MQTTPacket.Publish.countAtMostOnce(in: expected.span.bytes, endingAfter: offset))
        }
    }
}
