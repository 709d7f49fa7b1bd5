import MQTTCore
import TestSupport
import Testing

/// The reason codes of one packet as the tables of MQTT 5.0 list them, typed here a second time.
struct ReasonCodeTable: Sendable, CustomTestStringConvertible {
    let type: MQTTPacketType
    let clause: String
    /// Nil if a client does not send the packet.
    var client: Set<UInt8>?
    /// Nil if a server does not send the packet.
    var server: Set<UInt8>?
    /// AUTH reports no failures.
    var hasFailures = true

    var testDescription: String { "\(type)" }

    static let all: [ReasonCodeTable] = [
        .init(
            type: .connack, clause: "MQTT-3.2.2-8", client: nil,
            server: [
                0x00, 0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8A, 0x8C, 0x90, 0x95, 0x97, 0x99,
                0x9A, 0x9B, 0x9C, 0x9D, 0x9F,
            ]),
        .init(type: .puback, clause: "MQTT-3.4.2-1", client: receipt, server: receipt),
        .init(type: .pubrec, clause: "MQTT-3.5.2-1", client: receipt, server: receipt),
        .init(type: .pubrel, clause: "MQTT-3.6.2-1", client: [0x00, 0x92], server: [0x00, 0x92]),
        .init(type: .pubcomp, clause: "MQTT-3.7.2-1", client: [0x00, 0x92], server: [0x00, 0x92]),
        .init(
            type: .suback, clause: "MQTT-3.9.3-2", client: nil,
            server: [0x00, 0x01, 0x02, 0x80, 0x83, 0x87, 0x8F, 0x91, 0x97, 0x9E, 0xA1, 0xA2]),
        .init(
            type: .unsuback, clause: "MQTT-3.11.3-2", client: nil,
            server: [0x00, 0x11, 0x80, 0x83, 0x87, 0x8F, 0x91]),
        .init(
            type: .disconnect, clause: "MQTT-3.14.2-1", client: either.union([0x04]),
            server: either.union([
                0x87, 0x89, 0x8B, 0x8D, 0x8E, 0x8F, 0x9A, 0x9B, 0x9C, 0x9D, 0x9E, 0x9F, 0xA0, 0xA1, 0xA2,
            ])),
        .init(
            type: .auth, clause: "MQTT-3.15.2-1", client: [0x18, 0x19], server: [0x00, 0x18], hasFailures: false),
    ]

    private static let receipt: Set<UInt8> = [0x00, 0x10, 0x80, 0x83, 0x87, 0x90, 0x91, 0x97, 0x99]
    private static let either: Set<UInt8> = [
        0x00, 0x80, 0x81, 0x82, 0x83, 0x90, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99,
    ]

    func allows(_ code: UInt8, from sender: MQTTRole) -> Bool {
        let (own, other) = sender == .client ? (client, server) : (server, client)
        if own?.contains(code) == true { return true }
        return hasFailures && code >= 0x80 && other?.contains(code) != true
    }

    /// The packet with this code, for packet identifier 1.
    func bytes(_ code: UInt8) -> [UInt8] {
        switch type {
        case .connack: [0x20, 3, 0, code, 0]
        case .suback: [0x90, 4, 0, 1, 0, code]
        case .unsuback: [0xB0, 4, 0, 1, 0, code]
        case .disconnect: [0xE0, 1, code]
        case .auth: [0xF0, 6, code, 4, 0x15, 0, 1, 0x6D]
        case .pubrel: [0x62, 3, 0, 1, code]
        default: [type.rawValue << 4, 3, 0, 1, code]
        }
    }

    var senders: [MQTTRole] { (client == nil ? [] : [.client]) + (server == nil ? [] : [.server]) }
}

@Suite("Reason codes of each packet", .heavy)
struct ReasonCodeTests {
    @Test("are those of its table and failures without a name", arguments: ReasonCodeTable.all)
    func decoder(table: ReasonCodeTable) throws {
        for sender in table.senders {
            for code in UInt8.min...UInt8.max {
                var decoder = MQTTDecoder(version: .v5_0, from: sender)
                decoder.push(table.bytes(code))
                if table.allows(code, from: sender) {
                    #expect(try decoder.next()?.type == table.type, "\(code) from a \(sender)")
                } else {
                    let violation = #expect(throws: MQTTProtocolError.self) { try decoder.next() }
                    #expect(violation?.clause == table.clause, "\(code) from a \(sender)")
                    #expect(violation?.reasonCode == .protocolError)
                }
            }
        }
    }

    @Test("are judged by both engines as by the decoder", arguments: ReasonCodeTable.all)
    func engines(table: ReasonCodeTable) throws {
        for sender in table.senders {
            for code in UInt8.min...UInt8.max {
                let pair = try pair(awaiting: table.type, from: sender)
                let receiver = sender == .client ? pair.server : pair.client
                receiver.inbox = table.bytes(code)
                pair.deliver(to: receiver)
                let comment = Comment(rawValue: "\(code) from a \(sender)")
                guard table.allows(code, from: sender) else {
                    #expect(receiver.violation?.clause == table.clause, comment)
                    #expect(receiver.shouldClose, comment)
                    #expect(receiver.completions.isEmpty, comment)
                    continue
                }
                // AUTH has rules of its own: which of its codes may come depends on what came before.
                if table.type != .auth { #expect(receiver.violation == nil, comment) }
                checkOutcome(of: table.type, code, receiver, comment)
            }
        }
    }

    /// A connection on which the packet may come now, for packet identifier 1.
    private func pair(awaiting type: MQTTPacketType, from sender: MQTTRole) throws -> EnginePair {
        let pair = EnginePair(
            client: { if type == .auth { $0.authenticationMethod = "m" } }, server: { $0.maximumInFlight = 10 })
        pair.serverAnswers = type != .connack && !(type == .auth && sender == .server)
        try pair.connect()
        let (publisher, receiver) = sender == .server ? (pair.client, pair.server) : (pair.server, pair.client)
        receiver.acknowledges = false
        switch type {
        case .puback: try pair.publish("x", qos: .atLeastOnce, token: 1, from: publisher)
        case .pubrec: try pair.publish("x", qos: .exactlyOnce, token: 1, from: publisher)
        case .pubcomp:
            try pair.publish("x", qos: .exactlyOnce, token: 1, from: publisher)
            publisher.engine.output = []
            try pair.inject(.pubrec(.init(packetID: 1)), into: publisher)
        case .suback: try pair.client.engine.subscribe([.init(filter: "a")], at: pair.now)
        case .unsuback: try pair.client.engine.unsubscribe(["a"], at: pair.now)
        default: break
        }
        return pair
    }

    private func checkOutcome(of type: MQTTPacketType, _ code: UInt8, _ end: EnginePair.End, _ comment: Comment) {
        switch type {
        case .connack: #expect((end.info != nil) == (code < 0x80), comment)
        case .puback: #expect(end.completions.map(\.outcome) == [code < 0x80 ? .acknowledged : .refused], comment)
        case .pubrec: #expect(end.completions.map(\.outcome) == (code < 0x80 ? [] : [.refused]), comment)
        case .pubcomp:
            // 0x92 is a release that the receiver had forgotten [MQTT 5.0 3.7.2.1].
            let isSuccess = code < 0x80 || code == 0x92
            #expect(end.completions.map(\.outcome) == [isSuccess ? .acknowledged : .refused], comment)
        default: break
        }
    }

    @Test("are checked before they are sent", arguments: ReasonCodeTable.all)
    func encoder(table: ReasonCodeTable) {
        for code in UInt8.min...UInt8.max {
            let reason = MQTTReasonCode(rawValue: code)
            let packet: MQTTPacket =
                switch table.type {
                case .connack: .connack(.init(reasonCode: reason))
                case .puback: .puback(.init(packetID: 1, reasonCode: reason))
                case .pubrec: .pubrec(.init(packetID: 1, reasonCode: reason))
                case .pubrel: .pubrel(.init(packetID: 1, reasonCode: reason))
                case .pubcomp: .pubcomp(.init(packetID: 1, reasonCode: reason))
                case .suback: .suback(.init(packetID: 1, reasonCodes: [reason]))
                case .unsuback: .unsuback(.init(packetID: 1, reasonCodes: [reason]))
                case .disconnect: .disconnect(.init(reasonCode: reason))
                default: .auth(.init(reasonCode: reason))
                }
            var bytes: [UInt8] = []
            let mayBeSent = table.allows(code, from: .client) || table.allows(code, from: .server)
            do {
                try packet.encode(into: &bytes, version: .v5_0)
                #expect(mayBeSent, "\(packet)")
            } catch {
                #expect(error.code == .invalidReason)
                #expect(!mayBeSent, "\(packet)")
            }
        }
    }

    @Test func `a server's DISCONNECT sets no session expiry [MQTT-3.14.2-2]`() throws {
        let pair = EnginePair()
        try pair.connect()
        pair.client.inbox = [0xE0, 7, 0x8B, 5, 0x11, 0, 0, 0, 0]
        pair.deliver(to: pair.client)
        #expect(pair.client.violation?.clause == "MQTT-3.14.2-2")
        #expect(pair.client.violation?.reasonCode == .protocolError)
    }
}
