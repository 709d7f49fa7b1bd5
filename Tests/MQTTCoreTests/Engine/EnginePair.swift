import MQTTCore
import MessagingWire
import TestSupport

/// A client engine and a server engine back to back in virtual time: no sockets, no threads, every byte in reach.
final class EnginePair {
    /// One end: the engine, what it reported, and the bytes on their way to it.
    final class End {
        var engine: MQTTEngine
        var inbox: [UInt8] = []
        var messages: [Message] = []
        var completions: [MQTTPublishCompletion] = []
        var events: [MQTTEngineEvent.Kind] = []
        var shouldClose = false
        var hadRoom = false
        /// Acknowledge each message of QoS 1 and 2 when it arrives.
        var acknowledges = true
        /// Every packet that this end sent, over all connections.
        var sent: [MQTTPacket] = []
        private var effects = MQTTEffects()

        init(_ configuration: MQTTEngineConfiguration) {
            engine = MQTTEngine(configuration: configuration)
        }

        /// Runs an input and collects what it did.
        func run(_ bytes: [UInt8] = [], _ body: (inout MQTTEngine, inout MQTTEffects) -> Void) {
            body(&engine, &effects)
            for record in effects.messages {
                messages.append(
                    Message(
                        topic: effects.topic(of: record, in: bytes.span.bytes), payload: Array(bytes[record.payload]),
                        qos: record.flags.qos,
                        isDuplicate: record.flags.isDuplicate, isRetained: record.flags.isRetained,
                        delivery: record.delivery,
                        packetID: record.packetID))
            }
            completions += effects.completions
            events += effects.events.map(\.kind)
            shouldClose = shouldClose || engine.shouldClose
            hadRoom = hadRoom || effects.queueHasRoom
            effects.removeAll()
        }
    }

    struct Message: Equatable {
        var topic: String
        var payload: [UInt8]
        var qos: QoS
        var isDuplicate: Bool
        var isRetained: Bool
        var delivery: UInt64
        var packetID: UInt16

        var text: String { String(decoding: payload, as: UTF8.self) }
    }

    let client: End
    let server: End
    var now: Int64 = 1_000_000_000
    /// Answers CONNECT, SUBSCRIBE and UNSUBSCRIBE as a well-meaning broker does.
    var serverAnswers = true
    /// Whether the server keeps the session of its engine.
    var serverKeepsSession = true
    var connackProperties: MQTTProperties = []
    var lastSessionPresent = false

    init(
        version: MQTTVersion = .v5_0, client adjustClient: (inout MQTTEngineConfiguration) -> Void = { _ in },
        server adjustServer: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) {
        var clientConfiguration = MQTTEngineConfiguration(role: .client, version: version, clientID: "pair")
        clientConfiguration.topicAliasMaximum = 0
        clientConfiguration.outboundTopicAliasMaximum = 0
        adjustClient(&clientConfiguration)
        var serverConfiguration = MQTTEngineConfiguration(role: .server)
        serverConfiguration.topicAliasMaximum = 0
        serverConfiguration.outboundTopicAliasMaximum = 0
        adjustServer(&serverConfiguration)
        client = End(clientConfiguration)
        server = End(serverConfiguration)
    }

    /// Opens a connection and lets both ends talk until they are quiet.
    func connect() throws {
        try open()
        if client.engine.configuration.persists {
            // CONNECT waits until the store knows of the session.
            client.run { engine, effects in engine.persisted(through: engine.lastTicket, at: now, into: &effects) }
        }
        settle()
    }

    func open() throws {
        client.shouldClose = false
        server.shouldClose = false
        try server.engine.connectionOpened(at: now)
        try client.engine.connectionOpened(at: now)
    }

    /// A persistent session: in all versions it outlives the connection on both sides.
    static func persistent(
        version: MQTTVersion = .v5_0, client adjustClient: (inout MQTTEngineConfiguration) -> Void = { _ in },
        server adjustServer: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) -> EnginePair {
        EnginePair(
            version: version,
            client: {
                $0.cleanStart = false
                $0.sessionExpiry = 3600
                adjustClient(&$0)
            }, server: adjustServer)
    }

    /// Takes what both ends wrote and puts it on the way.
    func flush() {
        move(client, to: server)
        move(server, to: client)
    }

    private func move(_ from: End, to: End) {
        guard !from.engine.output.isEmpty else { return }
        let bytes = from.engine.output
        from.engine.output = []
        from.sent += Self.packets(bytes, version: from.engine.version)
        to.inbox += bytes
    }

    /// Whole packets in some bytes.
    static func packets(_ bytes: [UInt8], version: MQTTVersion) -> [MQTTPacket] {
        var packets: [MQTTPacket] = []
        var offset = 0
        do {
            while let header = try MQTTFrameHeader.parse(
                bytes.span.bytes, at: offset, maximumPacketSize: .max, version: version)
            {
                let body = Array(bytes[(offset + header.headerCount)..<(offset + header.packetCount)])
                packets.append(try MQTTPacket.decode(header, body: body.span.bytes, version: version))
                offset += header.packetCount
            }
        } catch {
            fatalError("an engine wrote what cannot be read: \(error)")
        }
        return packets
    }

    /// Gives an end at most `count` of the bytes on their way to it. True if there were any.
    @discardableResult
    func deliver(to end: End, atMost count: Int = .max) -> Bool {
        guard !end.inbox.isEmpty else { return false }
        let bytes = Array(end.inbox.prefix(count))
        let known = end.messages.count
        var consumed = 0
        end.run(bytes) { engine, effects in
            consumed = engine.receive(bytes.span.bytes, at: now, into: &effects)
        }
        end.inbox.removeFirst(consumed)
        if end === server && serverAnswers { answer() }
        if end.acknowledges {
            for message in end.messages[known...] where message.delivery != 0 {
                end.engine.acknowledge(message.delivery, at: now)
            }
        }
        return consumed > 0 || count < .max
    }

    private var answered = 0

    private func answer() {
        while answered < server.events.count {
            let event = server.events[answered]
            answered += 1
            switch event {
            case .connectReceived(let connect):
                let present = !connect.cleanStart && serverKeepsSession && server.engine.holdsSession
                lastSessionPresent = present
                server.run { engine, effects in
                    try? engine.acceptConnection(
                        sessionPresent: present, properties: connackProperties, at: now, into: &effects)
                }
            case .subscribeReceived(let subscribe):
                try? server.engine.acknowledgeSubscribe(
                    subscribe.packetID,
                    codes: subscribe.subscriptions.map { MQTTReasonCode(rawValue: $0.qos.rawValue) },
                    at: now)
            case .unsubscribeReceived(let unsubscribe):
                try? server.engine.acknowledgeUnsubscribe(
                    unsubscribe.packetID, codes: unsubscribe.filters.map { _ in .success }, at: now)
            default: break
            }
        }
    }

    /// Lets both ends talk until nothing moves.
    func settle() {
        var moved = true
        while moved {
            flush()
            let toServer = deliver(to: server)
            flush()
            let toClient = deliver(to: client)
            moved = toServer || toClient || !client.engine.output.isEmpty || !server.engine.output.isEmpty
        }
    }

    /// The same, and time passes as long as the client waits with a message.
    func settleInTime() {
        settle()
        for _ in 0..<50 where client.engine.inFlightCount + client.engine.queuedCount > 0 {
            guard client.engine.nextDeadline < now + 700_000_000_000 else { return }
            advance(seconds: max(0, Double(client.engine.nextDeadline - now)) / 1e9)
            settle()
        }
    }

    /// The connection breaks: what is on its way is lost.
    func cut() {
        client.inbox = []
        server.inbox = []
        client.run { engine, effects in engine.connectionClosed(at: now, into: &effects) }
        server.run { engine, effects in engine.connectionClosed(at: now, into: &effects) }
    }

    /// Time passes on both sides.
    func advance(seconds: Double) {
        now += Int64(seconds * 1e9)
        client.run { engine, effects in engine.handleTimeout(at: now, into: &effects) }
        server.run { engine, effects in engine.handleTimeout(at: now, into: &effects) }
    }

    /// Time passes at the client, whose connection has come so far.
    func advance(seconds: Double, total: Int, acknowledged: Int) {
        now += Int64(seconds * 1e9)
        let progress = OutputProgress(total: total, acknowledged: acknowledged)
        client.run { engine, effects in engine.handleTimeout(at: now, progress: progress, into: &effects) }
    }

    /// Time passes at the client, which reads nothing until the server takes more of what waits.
    ///
    /// - Parameter moved: how many of these bytes have moved.
    func advance(seconds: Double, moved: Int) {
        now += Int64(seconds * 1e9)
        var progress = OutputProgress(total: 100_000, acknowledged: 0)
        progress.movedBytes = moved
        client.run { engine, effects in engine.handleTimeout(at: now, progress: progress, into: &effects) }
    }

    /// Seconds pass, in each of which a message arrives, until the connection fails. Returns how many passed.
    ///
    /// - Parameter answersPings: whether PINGRESP arrives too, as on a fast link.
    func stream(atMost seconds: Int, answersPings: Bool) throws -> Int {
        for second in 1...seconds {
            advance(seconds: 1)
            if client.failure != nil { return second }
            try inject(.publish(.init(topic: "a", payload: [1])), into: client)
            if answersPings { settle() }
        }
        return seconds
    }

    /// Bytes of a packet, sent to an end as if its peer had written them.
    func inject(_ packet: MQTTPacket, into end: End) throws {
        var bytes: [UInt8] = []
        try packet.encode(into: &bytes, version: end.engine.version)
        end.inbox += bytes
        deliver(to: end)
    }

    @discardableResult
    func publish(
        _ text: String, to topic: String = "t", qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = [], token: UInt64 = 0, from end: End? = nil
    ) throws -> MQTTPublishOutcome {
        try (end ?? client).engine.publish(
            topic: topic, payload: Array(text.utf8), qos: qos, retain: retain, properties: properties, token: token,
            at: now)
    }
}

extension EnginePair.End {
    /// The PUBLISH packets that this end sent.
    var publishes: [MQTTPacket.Publish] {
        sent.compactMap { if case .publish(let publish) = $0 { publish } else { nil } }
    }

    /// The types of all packets that this end sent.
    var types: [MQTTPacketType] { sent.map(\.type) }

    var failure: MQTTConnectionFailure? {
        for case .connectionFailed(let failure) in events { return failure }
        return nil
    }

    var violation: MQTTProtocolError? {
        if case .violation(let violation)? = failure { violation } else { nil }
    }

    var info: MQTTConnectionInfo? {
        var found: MQTTConnectionInfo?
        for case .connected(let info) in events { found = info }
        return found
    }

    var holdsSession: Bool { engine.holdsSession }

    var texts: [String] { messages.map(\.text) }
}

extension MQTTEngine {
    /// Subscribes as a caller does that waits for the answer, so that SUBSCRIBE is written whatever the server holds.
    mutating func subscribe(
        _ requests: [MQTTSubscriptionRequest], properties: MQTTProperties = [], at now: Int64
    ) throws(MQTTUsageError) {
        for request in requests {
            try want(request, properties: properties)
            _ = join(request.filter, request.retainHandling, wantsRetained: true)
        }
        try reconcile(at: now)
    }

    mutating func unsubscribe(_ filters: [String], at now: Int64) throws(MQTTUsageError) {
        for filter in filters { try unwant(filter) }
        try reconcile(at: now)
    }

    private mutating func reconcile(at now: Int64) throws(MQTTUsageError) {
        var effects = MQTTEffects()
        reconcile(at: now, into: &effects)
        for event in effects.events { if case .requestNotWritten(_, let error) = event.kind { throw error } }
    }
}
