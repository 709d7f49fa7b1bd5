import MQTTCore

/// Counts checks, and reports those that fail.
public struct Checks {
    public private(set) var count = 0
    public private(set) var failures = 0

    public init() {}

    mutating func expect(_ holds: Bool, _ name: @autoclosure () -> String) {
        count += 1
        guard !holds else { return }
        failures += 1
        print("FAILED: \(name())")
    }
}

extension Checks {
    /// Each vector whole and byte by byte, and what it encodes to.
    public mutating func readMQTTVectors() {
        for vector in Self.vectors {
            for version in vector.versions {
                for pieces in [[vector.bytes], vector.bytes.map { [$0] }] {
                    expect(Self.isAsExpected(vector, pieces, version), "\(vector.name) in \(version.description)")
                }
            }
        }
    }

    private static let vectors =
        Vector.headers + Vector.connects + Vector.connacks + Vector.publishes + Vector.acknowledgements
        + Vector.subscribing + Vector.endings + Vector.properties + Vector.propertyPlaces

    private static func isAsExpected(_ vector: Vector, _ pieces: [[UInt8]], _ version: MQTTVersion) -> Bool {
        var decoder = MQTTDecoder(version: version, maximumPacketSize: 1 << 20)
        var packets: [MQTTPacket] = []
        var violation: MQTTProtocolError?
        do throws(MQTTProtocolError) {
            for piece in pieces {
                decoder.push(piece)
                while let packet = try decoder.next() { packets.append(packet) }
            }
        } catch {
            violation = error
        }
        switch vector.outcome {
        case .packet(let packet):
            var bytes: [UInt8] = []
            do throws(MQTTEncodingError) { try packet.encode(into: &bytes, version: version) } catch { return false }
            return packets == [packet] && violation == nil && bytes == vector.bytes
        case .reads(let packet): return packets == [packet] && violation == nil
        case .refused(let code, let clause):
            return packets == [] && violation?.reasonCode == code && violation?.clause == clause
        case .waits: return packets == [] && violation == nil && decoder.bufferedCount == vector.bytes.count
        }
    }

    /// Changed vectors, to engines of both roles before and after the connection is accepted: nothing may trap, and more
    /// than what arrived cannot be consumed.
    public mutating func readChangedMQTTVectors(rounds: Int) {
        var mutations = Mutations(seed: 11)
        for round in 0..<rounds {
            for vector in Self.vectors {
                let bytes = mutations.change(vector.bytes)
                let version = vector.versions[round % vector.versions.count]
                let role = round & 1 == 0 ? MQTTRole.client : .server
                expect(Self.survives(bytes, role, version, isAccepted: round & 2 != 0), "a change of \(vector.name)")
            }
        }
    }

    private static func survives(
        _ bytes: [UInt8], _ role: MQTTRole, _ version: MQTTVersion, isAccepted: Bool
    ) -> Bool {
        var configuration = MQTTEngineConfiguration(role: role, version: version, clientID: "changed")
        configuration.maximumPacketSize = .max
        configuration.maximumControlPacketSize = .max
        var engine = MQTTEngine(configuration: configuration)
        var effects = MQTTEffects()
        do throws(MQTTUsageError) {
            try engine.connectionOpened(at: 1)
            if isAccepted, role == .client {
                let connack: [UInt8] = version == .v5_0 ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]
                _ = engine.receive(connack.span.bytes, at: 1, into: &effects)
                try engine.want(MQTTSubscriptionRequest(filter: "a/#", qos: .exactlyOnce))
                engine.reconcile(at: 1, into: &effects)
                for qos in QoS.allCases { _ = try engine.publish(topic: "a", payload: [1], qos: qos, token: 2, at: 1) }
            } else if isAccepted {
                var connect: [UInt8] = []
                do throws(MQTTEncodingError) {
                    try MQTTPacket.connect(.init(version: version, clientID: "changed")).encode(
                        into: &connect, version: version)
                } catch { return false }
                _ = engine.receive(connect.span.bytes, at: 1, into: &effects)
                try engine.acceptConnection(sessionPresent: false, at: 1, into: &effects)
            }
        } catch { return false }
        let consumed = engine.receive(bytes.span.bytes, at: 2, into: &effects)
        engine.acknowledgeAll(through: .max, at: 3)
        engine.handleTimeout(at: 4, into: &effects)
        engine.connectionClosed(at: 5, into: &effects)
        return (0...bytes.count).contains(consumed)
    }

    /// A client and a server back to back: each QoS in both directions, a cut, and the session after it.
    public mutating func talkMQTT() {
        for version in MQTTVersion.allCases {
            do throws(MQTTUsageError) {
                try talk(version)
            } catch {
                expect(false, "\(version.description): \(error.description)")
            }
        }
    }

    private mutating func talk(_ version: MQTTVersion) throws(MQTTUsageError) {
        let client = End(.client, version)
        let server = End(.server, version)
        for end in [server, client] { try end.engine.connectionOpened(at: 1) }
        try End.settle(client, server)
        expect(client.engine.phase == .connected, "\(version.description): connected")
        try client.engine.want(.init(filter: "t/+", qos: .exactlyOnce))
        client.engine.reconcile(at: 2, into: &client.effects)
        try End.settle(client, server)
        expect(client.subscribed == 1, "\(version.description): subscribed")
        for (number, qos) in QoS.allCases.enumerated() {
            let payload = Array("message \(number)".utf8)
            for end in [client, server] {
                _ = try end.engine.publish(topic: "t/\(number)", payload: payload, qos: qos, token: 7, at: 3)
            }
        }
        try End.settle(client, server)
        for end in [client, server] {
            expect(end.texts == ["message 0", "message 1", "message 2"], "\(version.description): all QoS")
            expect(end.completed == 2, "\(version.description): completions")
        }
        // Lost on its way, and sent again after the connection is opened again.
        for number in 0..<100 {
            _ = try client.engine.publish(
                topic: "t/more", payload: [UInt8](repeating: UInt8(number), count: 300), qos: .atLeastOnce,
                token: UInt64(100 + number), at: 4)
        }
        for end in [client, server] {
            end.engine.output = []
            end.inbox = []
            end.engine.connectionClosed(at: 5, into: &end.effects)
            end.effects.removeAll()
        }
        for end in [server, client] { try end.engine.connectionOpened(at: 6) }
        try End.settle(client, server)
        expect(client.completed == 102, "\(version.description): \(client.completed) completions after a cut")
        expect(server.texts.count == 103, "\(version.description): messages after a cut")
        // Time passes: the keep alive asks, and the answer comes.
        client.engine.handleTimeout(at: client.engine.nextDeadline, into: &client.effects)
        expect(!client.engine.output.isEmpty, "\(version.description): PINGREQ")
        try End.settle(client, server)
        expect(client.pings == 1, "\(version.description): PINGRESP")
        try client.engine.disconnect(at: 7_000_000_000_000)
        try End.settle(client, server)
        expect(client.engine.shouldClose && server.isDisconnected, "\(version.description): DISCONNECT")
    }
}

/// One end of a connection, and the bytes on their way to it.
private final class End {
    var engine: MQTTEngine
    var effects = MQTTEffects()
    var inbox: [UInt8] = []
    var texts: [String] = []
    var completed = 0
    var subscribed = 0
    var pings = 0
    var isDisconnected = false

    init(_ role: MQTTRole, _ version: MQTTVersion) {
        var configuration = MQTTEngineConfiguration(role: role, version: version, clientID: "pair")
        configuration.cleanStart = false
        configuration.sessionExpiry = 3600
        // Numbers that an `Int` of 32 bits does not hold.
        configuration.maximumPacketSize = .max
        configuration.maximumControlPacketSize = .max
        engine = MQTTEngine(configuration: configuration)
    }

    /// Lets both talk until nothing moves.
    static func settle(_ one: End, _ other: End) throws(MQTTUsageError) {
        while !one.engine.output.isEmpty || !other.engine.output.isEmpty {
            other.inbox += one.engine.output
            one.engine.output = []
            try other.read()
            one.inbox += other.engine.output
            other.engine.output = []
            try one.read()
        }
    }

    private func read() throws(MQTTUsageError) {
        let bytes = inbox
        inbox.removeFirst(engine.receive(bytes.span.bytes, at: 4, into: &effects))
        let done = effects
        effects.removeAll()
        for message in done.messages {
            texts.append(String(decoding: bytes[message.payload], as: UTF8.self))
            if message.delivery != 0 { engine.acknowledge(message.delivery, at: 4) }
        }
        completed += done.completions.count
        for event in done.events {
            switch event.kind {
            case .connectReceived(let connect):
                try engine.acceptConnection(
                    sessionPresent: !connect.cleanStart && engine.holdsSession, at: 4, into: &effects)
            case .subscribeReceived(let subscribe):
                try engine.acknowledgeSubscribe(
                    subscribe.packetID, codes: subscribe.subscriptions.map { _ in .grantedQoS2 }, at: 4)
            case .subscribeCompleted: subscribed += 1
            case .pingAnswered: pings += 1
            case .disconnectReceived: isDisconnected = true
            default: break
            }
        }
    }
}
