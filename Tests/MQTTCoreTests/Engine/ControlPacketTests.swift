import MQTTCore
import TestSupport
import Testing

/// What a peer may make us decode at once: packets other than PUBLISH, and the properties of a PUBLISH, are small.
@Suite("Engine: size of control packets", .heavy)
struct ControlPacketTests {
    /// A user property of five bytes, the smallest there is.
    private static let property: [UInt8] = [0x26, 0, 0, 0, 0]

    private static func length(_ count: Int) -> [UInt8] {
        count < 128 ? [UInt8(count)] : [UInt8(count & 0x7F) | 0x80] + length(count >> 7)
    }

    /// A CONNACK with as many user properties as fit into this many bytes.
    private static func connack(upTo size: Int) -> (bytes: [UInt8], properties: Int) {
        let count = (size - 2 - 4 - 4) / property.count
        let properties = Array(repeatElement(property, count: count).joined())
        let body = [0, 0] + length(properties.count) + properties
        return ([0x20] + length(body.count) + body, count)
    }

    @Test func `a CONNACK above the limit is refused from its header, with 0x95 and the option's name`() throws {
        let pair = EnginePair()
        pair.serverAnswers = false
        try pair.connect()
        // Three million user properties are announced, none has arrived.
        pair.client.inbox = [0x20] + Self.length(15 << 20)
        pair.deliver(to: pair.client)
        pair.flush()
        #expect(pair.client.violation?.reasonCode == .packetTooLarge)
        #expect(pair.client.violation?.message.contains("maximumControlPacketSize") == true)
        #expect(pair.client.violation?.message.contains("262144") == true)
        #expect(pair.client.sent.last == .disconnect(.init(reasonCode: .packetTooLarge)))
        #expect(pair.client.shouldClose)
    }

    @Test func `properties and codes that are decoded at once are at most as many as fit into the limit`() throws {
        let limit = 256 << 10
        let pair = EnginePair()
        pair.serverAnswers = false
        try pair.connect()
        let (bytes, count) = Self.connack(upTo: limit)
        pair.client.inbox = bytes
        pair.deliver(to: pair.client)
        #expect(pair.client.info?.properties.list.count == count)
        #expect(count <= limit / Self.property.count)
        // One byte more is refused, whatever it is.
        for (first, role) in [(UInt8(0x90), MQTTRole.client), (0xB0, .client), (0x40, .server), (0x82, .server)] {
            let pair = EnginePair()
            try pair.connect()
            let end = role == .client ? pair.client : pair.server
            end.inbox = [first] + Self.length(limit - 3)
            pair.deliver(to: end)
            #expect(end.violation?.reasonCode == .packetTooLarge, "\(first)")
        }
    }

    @Test func `the limit is the configuration's, and PUBLISH has the other one`() throws {
        let pair = EnginePair(client: { $0.maximumControlPacketSize = 1_000 })
        try pair.connect()
        try pair.publish(String(repeating: "x", count: 5_000), from: pair.server)
        pair.settle()
        #expect(pair.client.texts.count == 1)
        #expect(pair.client.violation == nil)
        pair.client.inbox = [0x90] + Self.length(1_000)
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.message.contains("1000 bytes") == true)
    }

    @Test func `the properties of a PUBLISH are under the limit too`() throws {
        for (size, isAccepted) in [(1_000, true), (1_001, false)] {
            let pair = EnginePair(client: { $0.maximumControlPacketSize = 1_000 })
            try pair.connect()
            let name = [UInt8](repeating: 0x61, count: size - 5)
            let property = [0x26, UInt8(name.count >> 8), UInt8(name.count & 0xFF)] + name + [0, 0]
            let body = [0, 1, 0x61] + Self.length(property.count) + property
            pair.client.inbox = [0x30] + Self.length(body.count) + body
            pair.deliver(to: pair.client)
            #expect((pair.client.violation == nil) == isAccepted)
            #expect(pair.client.messages.count == (isAccepted ? 1 : 0))
        }
    }

    @Test(arguments: [
        MQTTProperty(.sessionExpiryInterval, .integer(1)), .init(.receiveMaximum, .integer(1)),
        .init(.maximumPacketSize, .integer(1)), .init(.topicAliasMaximum, .integer(1)),
        .init(.authenticationMethod, .string("m")), .init(.authenticationData, .binary([1])),
    ])
    func `CONNECT properties that an option sets are refused before anything is written`(property: MQTTProperty) {
        for version in MQTTVersion.allCases {
            let pair = EnginePair(version: version, client: { $0.connectProperties = [property] })
            let error = #expect(throws: MQTTUsageError.self) { try pair.connect() }
            #expect(error?.code == .propertyNotAllowed)
            #expect(pair.client.engine.output.isEmpty)
        }
    }
}
