import MQTTCore
import MessagingWire
import Testing

@testable import MessagingJudge

/// What a client and a server write to each other, one after the other: the steps of a test of a judge.
struct MQTTScript {
    enum Step {
        case client([UInt8])
        case server([UInt8])
        /// Seconds pass.
        case wait(Int64)
        /// The connection ends, and the client opens another one.
        case lost
    }

    let version: MQTTVersion
    private(set) var steps: [Step] = []

    init(_ version: MQTTVersion = .v5_0) { self.version = version }

    private func adding(_ step: Step) -> MQTTScript {
        var script = self
        script.steps.append(step)
        return script
    }

    func client(_ packet: MQTTPacket) -> MQTTScript { adding(.client(bytes(packet))) }
    func server(_ packet: MQTTPacket) -> MQTTScript { adding(.server(bytes(packet))) }
    func client(bytes: [UInt8]) -> MQTTScript { adding(.client(bytes)) }
    func wait(_ seconds: Int64) -> MQTTScript { adding(.wait(seconds)) }
    var lost: MQTTScript { adding(.lost) }

    private func bytes(_ packet: MQTTPacket) -> [UInt8] {
        var bytes: [UInt8] = []
        do {
            try packet.encode(into: &bytes, version: version)
        } catch {
            Issue.record("\(packet) cannot be encoded: \(error)")
        }
        return bytes
    }

    // MARK: Usual packets

    /// CONNECT of the client `c` with a session, and the server's answer.
    func connected(
        present: Bool = false, clean: Bool = false, keepAlive: UInt16 = 60, expiry: UInt32? = 100,
        will: MQTTWill? = nil, with more: MQTTProperties = [],
        allowing properties: MQTTProperties = []
    ) -> MQTTScript {
        connect(clean: clean, keepAlive: keepAlive, expiry: expiry, will: will, with: more)
            .server(.connack(.init(sessionPresent: present, properties: properties)))
    }

    func connect(
        clean: Bool = false, keepAlive: UInt16 = 60, expiry: UInt32? = 100, will: MQTTWill? = nil,
        method: String? = nil, with more: MQTTProperties = []
    ) -> MQTTScript {
        var properties = more
        if version == .v5_0 { (properties.sessionExpiryInterval, properties.authenticationMethod) = (expiry, method) }
        return client(
            .connect(
                .init(
                    version: version, clientID: "c", cleanStart: clean, keepAlive: keepAlive, will: will,
                    properties: properties)))
    }

    private func message(
        _ id: UInt16, _ qos: QoS, _ topic: String, dup: Bool, retain: Bool, _ properties: MQTTProperties
    ) -> MQTTPacket {
        .publish(
            .init(
                topic: topic, payload: [0x61], qos: qos, isRetained: retain, isDuplicate: dup, packetID: id,
                properties: properties))
    }

    func publish(
        _ id: UInt16 = 0, _ qos: QoS = .atLeastOnce, _ topic: String = "t", dup: Bool = false, retain: Bool = false,
        with properties: MQTTProperties = []
    ) -> MQTTScript {
        client(message(id, id == 0 ? .atMostOnce : qos, topic, dup: dup, retain: retain, properties))
    }

    func message(_ id: UInt16, _ qos: QoS = .atLeastOnce) -> MQTTScript {
        server(message(id, qos, "s", dup: false, retain: false, []))
    }

    func subscribe(
        _ id: UInt16, _ filter: String = "f", identifier: UInt32? = nil, granted: UInt8? = 1
    ) -> MQTTScript {
        var properties = MQTTProperties()
        if let identifier { properties.subscriptionIdentifiers = [identifier] }
        let asked = client(
            .subscribe(.init(packetID: id, subscriptions: [.init(filter: filter)], properties: properties)))
        guard let granted else { return asked }
        return asked.server(.suback(.init(packetID: id, reasonCodes: [.init(rawValue: granted)])))
    }

    // MARK: Judging

    /// The clauses that a judge finds broken, in their order.
    ///
    /// - Parameter pieces: how many bytes it gets at a time.
    func judged(pieces: Int = .max) -> [Clause] { violations(pieces: pieces).map(\.clause) }

    func violations(pieces: Int = .max, _ options: JudgeOptions? = nil) -> [Violation] {
        var usual = JudgeOptions()
        usual.judgesTime = true
        var judge = MQTTJudge(options ?? usual)
        var (connection, now) = (1, Int64(0))
        judge.opened(connection)
        for step in steps {
            switch step {
            case .client(let bytes):
                Bytes.inPieces(bytes, pieces) { judge.clientWrote($0.span.bytes, on: connection, at: now) }
            case .server(let bytes):
                Bytes.inPieces(bytes, pieces) { judge.serverWrote($0.span.bytes, on: connection, at: now) }
            case .wait(let seconds): now += seconds * 1_000_000_000
            case .lost:
                judge.closed(connection)
                connection += 1
                judge.opened(connection)
            }
        }
        judge.closed(connection)
        return judge.takeViolations()
    }
}

enum Bytes {
    static func inPieces(_ bytes: [UInt8], _ size: Int, _ body: ([UInt8]) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            body(Array(rest.prefix(size)))
            rest = rest.dropFirst(min(size, rest.count))
        }
    }
}

extension MQTTPacket.Acknowledgement {
    static func answer(_ id: UInt16, _ code: MQTTReasonCode = .success) -> Self {
        .init(packetID: id, reasonCode: code)
    }
}
