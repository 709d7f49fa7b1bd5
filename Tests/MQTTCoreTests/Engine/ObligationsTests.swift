import MQTTCore
import MessagingWire
import TestSupport
import Testing

/// Obligations of a client that are told by a single packet, and the table of where the others are shown.
///
/// | obligation | shown by |
/// |---|---|
/// | session present and absent, resend in order with DUP, PUBREL only after PUBREC | `SessionTests`, `CampaignTests` |
/// | identifiers shared, unused, kept until the answer | `TablesTests`, `AcknowledgementTests` |
/// | Receive Maximum both ways, what never waits for it | `AcknowledgementTests`, `CampaignTests` |
/// | acknowledgements in order | `AcknowledgementTests`, `TablesTests` |
/// | QoS 2 received once, PUBREL always answered, identifiers new again | `AcknowledgementTests`, `SessionTests` |
/// | keep alive, liveness, the server's interval | `KeepAliveTests` |
/// | limits of the server, also for what was queued | `PublishTests`, `RequestTests` |
/// | AUTH | `AuthenticationTests` |
/// | password, client identifier, nothing after DISCONNECT, CONNECT first | `ConnectionTests` |
/// | topic aliases both ways | `AliasTests` |
/// | topics as bytes, malformed packets | `PublishTests`, `ConnectionTests`, the codec's tests |
/// | what survives the process | `StoreTests` |
@Suite("Engine: obligations", .heavy)
struct ObligationsTests {
    @Test func `fixed-header flags of requests and PUBREL are 0b0010 [MQTT-3.8.1-1, 3.10.1-1, 3.6.1-1]`() throws {
        let pair = EnginePair()
        try pair.connect()
        try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        try pair.client.engine.unsubscribe(["b"], at: pair.now)
        let output = pair.client.engine.output
        #expect(output[0] == 0x82)
        #expect(output.contains(0xA2))
    }

    @Test func `the code of a violation is what DISCONNECT says [MQTT-4.13.1-1]`() throws {
        let damage: [[UInt8]] = [
            [0x00, 0x00], [0xF1, 0x00], [0x30, 0xFF, 0xFF, 0xFF, 0xFF], [0x30, 0x04, 0, 1, 0x2B, 0],
            [0x30, 0x05, 0, 2, 0xC3, 0x28, 0], [0x10, 0x02, 0, 0],
            // What would be a PUBLISH but for its first byte.
            [0x00, 0x04, 0, 1, 0x61, 0], [0x00, 0x05, 0, 1, 0x61, 0, 0x78], [0x31, 0x04, 0, 0, 0, 0],
        ]
        for bytes in damage {
            let pair = EnginePair()
            try pair.connect()
            pair.client.inbox = bytes
            pair.deliver(to: pair.client)
            pair.flush()
            guard let violation = pair.client.violation else {
                Issue.record("\(bytes) was accepted")
                continue
            }
            #expect(violation.reasonCode.isError)
            #expect(pair.client.sent.last == .disconnect(.init(reasonCode: violation.reasonCode)))
            #expect(pair.client.shouldClose)
        }
    }

    @Test func `every message of a read is reported, and events know their place between them`() throws {
        var configuration = MQTTEngineConfiguration(role: .client, clientID: "c")
        configuration.topicAliasMaximum = 0
        var engine = MQTTEngine(configuration: configuration)
        var effects = MQTTEffects()
        try engine.connectionOpened(at: 0)
        var bytes: [UInt8] = []
        try MQTTPacket.connack(.init()).encode(into: &bytes, version: .v5_0)
        try MQTTPacket.publish(.init(topic: "a", payload: [1])).encode(into: &bytes, version: .v5_0)
        try MQTTPacket.pingresp.encode(into: &bytes, version: .v5_0)
        try MQTTPacket.publish(.init(topic: "b", payload: [2, 3])).encode(into: &bytes, version: .v5_0)
        try MQTTPacket.disconnect(.init(reasonCode: .serverBusy)).encode(into: &bytes, version: .v5_0)
        let consumed = engine.receive(bytes.span.bytes, at: 1, into: &effects)
        #expect(consumed == bytes.count)
        #expect(effects.messages.map { effects.topic(of: $0, in: bytes.span.bytes) } == ["a", "b"])
        #expect(effects.messages.map { Array(bytes[$0.payload]) } == [[1], [2, 3]])
        #expect(effects.events.map(\.messagesBefore) == [0, 2])
        let shouldClose = engine.shouldClose
        #expect(shouldClose)
    }
}
