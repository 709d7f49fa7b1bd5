import MQTTCore
import MessagingWire
import Synchronization
import Transport

/// The server's end of one MQTT connection: an engine, and the queue of what it has no room for yet.
struct MQTTServerMachine: LinkMachine, ~Copyable {
    typealias AfterLock = ServerAfterLock<MQTTServerWork>

    let id: Router.ConnectionID
    let hub: Hub
    var engine: MQTTEngine
    /// The session in the router; -1 before CONNECT and after the session was taken away.
    var session = -1
    var queue: SessionQueue
    var wantsClose = false
    /// Empty before CONNECT is accepted.
    private(set) var clientID = ""
    /// Session Present of CONNACK.
    private var continuesSession = false
    /// What the client has published in this second.
    var published = PublishedInSecond()
    /// The token of the first message of QoS 1 or 2 that the router has not taken.
    var firstUnrouted: UInt64 = 1
    private var isFrozen = false
    private var answers = HeldAnswers()
    private var judged = JudgedBytes()
    /// A fault has cut the connection, which is about to end: nothing more is read or written.
    private var isCut = false
    private let maximumOutboxBytes: Int
    /// Used where the engine has nothing to report that matters here.
    private var ignored = MQTTEffects()

    init(id: Router.ConnectionID, hub: Hub) {
        self.id = id
        self.hub = hub
        let limits = hub.options.limits
        // Until CONNECT names a version. A connection that begins with another packet is closed without an answer.
        var configuration = MQTTEngineConfiguration(role: .server, version: .v3_1_1)
        configuration.maximumPacketSize = UInt32(clamping: limits.maximumPacketSize)
        configuration.receiveMaximum = UInt16(clamping: limits.maximumInFlight)
        configuration.maximumInFlight = UInt16(clamping: limits.maximumInFlight)
        configuration.maximumQoS = QoS(rawValue: limits.maximumQoS) ?? .exactlyOnce
        engine = MQTTEngine(configuration: configuration)
        queue = SessionQueue(countLimit: limits.maximumSessionMessages, byteLimit: limits.maximumSessionBytes)
        maximumOutboxBytes = limits.maximumOutboxBytes
    }

    // MARK: What the link asks

    var wantsReadingPaused: Bool { false }
    /// A frozen broker's clocks stand still.
    var nextDeadline: Int64 { mutating get { isFrozen ? .max : engine.nextDeadline } }

    /// The link takes the bytes by putting an empty array in their place: then there is room for what waits.
    var outputCount: Int { isCut ? 0 : engine.output.count }
    /// Messages are delivered only while the outbox has room.
    var ownBytes: Int { engine.ownBytes }

    var output: [UInt8] {
        get { engine.output }
        set {
            engine.output = newValue
            if newValue.isEmpty && !queue.isEmpty { drain(at: hub.loop.now) }
        }
    }

    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock) {
        hub.judges?.opened(id, .mqtt)
        // A server's engine that has no connection has nothing to refuse.
        try? engine.connectionOpened(at: now)
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock) {
        afterLock.begin(ServerSource(hub: hub, id: id, now: now))
        afterLock.isClosed = true
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        if let judges = hub.judges {
            judged.see(bytes) { judges.clientWrote($0, on: id, at: now) }
        }
        let count = receiveJudged(bytes, at: now, into: afterLock)
        judged.consumed(count)
        return count
    }

    private mutating func receiveJudged(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        guard !wantsClose && !isCut else { return bytes.byteCount }
        afterLock.begin(ServerSource(hub: hub, id: id, now: now))
        if engine.phase == .connecting { limit(by: bytes, at: now) }
        if hub.packets.isActive { return receivePacket(bytes, at: now, into: afterLock) }
        return receiveBytes(bytes, at: now, into: afterLock)
    }

    private mutating func receiveBytes(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        let phase = engine.phase
        // What stands behind CONNECT is read when CONNECT is answered.
        let length = phase == .connecting ? firstPacket(of: bytes) : bytes.byteCount
        let count = engine.receive(bytes.extracting(0..<length), at: now, into: &afterLock.work.effects)
        if engine.shouldClose { wantsClose = true }
        if !queue.isEmpty { drain(at: now) }
        return count
    }

    mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {
        hub.judges?.resumedReading(id, at: now)
        engine.systemSlept(since: start, at: now, progress: progress)
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock) {
        guard !isFrozen else { return }
        afterLock.begin(ServerSource(hub: hub, id: id, now: now))
        engine.handleTimeout(at: now, into: &afterLock.work.effects)
        if engine.shouldClose { wantsClose = true }
    }

    /// A client that speaks 5.0, as the bytes of its CONNECT show, learns about smaller limits.
    private mutating func limit(by bytes: RawSpan, at now: Int64) {
        guard let granted = hub.state.withLock({ $0.granted }) else { return }
        let header = try? MQTTFrameHeader.parse(bytes, maximumPacketSize: hub.options.limits.maximumPacketSize)
        // The version follows the name of the protocol, "MQTT" with its length.
        guard let header, header.type == .connect, header.packetCount <= bytes.byteCount, header.packetCount > 8,
            bytes.byte(at: header.headerCount + 6) == 5
        else { return }
        engine.connectionClosed(at: now, into: &ignored)
        ignored.removeAll()
        granted.apply(to: &engine.configuration)
        try? engine.connectionOpened(at: now)
    }

    private func firstPacket(of bytes: RawSpan) -> Int {
        let limit = Int(engine.options.value.maximumPacketSize)
        // What cannot be parsed goes to the engine whole, to be refused there.
        guard let header = try? MQTTFrameHeader.parse(bytes, maximumPacketSize: limit) else { return bytes.byteCount }
        return min(header.packetCount, bytes.byteCount)
    }

    // MARK: Delivering

    /// Sends a message, or queues it while there is no room, or until the session is taken out of a connection that ends.
    mutating func deliver(_ item: OutgoingPublish, at now: Int64) {
        guard session >= 0 else { return }
        if !wantsClose && engine.phase == .connected && queue.isEmpty && hasRoom(for: item.qos) {
            send(item, at: now)
        } else {
            queue.append(item)
            drain(at: now)
            countDropped()
        }
    }

    /// Sends what waits, as far as there is room.
    mutating func drain(at now: Int64) {
        while engine.phase == .connected && !wantsClose {
            let (hasRoomFor0, hasRoomFor1) = (hasRoom(for: .atMostOnce), hasRoom(for: .atLeastOnce))
            let next = queue.popFirst { $0 == .atMostOnce ? hasRoomFor0 : hasRoomFor1 }
            guard let next else { return }
            send(next, at: now)
        }
    }

    private mutating func hasRoom(for qos: QoS) -> Bool {
        let outboxHasRoom = engine.output.count < maximumOutboxBytes
        guard qos != .atMostOnce else { return outboxHasRoom }
        let inFlight = engine.inFlightCount
        let window = max(1, min(engine.options.value.maximumInFlight, engine.limits.receiveMaximum))
        // With nothing in flight no acknowledgement would come to set the queue in motion again.
        return inFlight < Int(window) && (outboxHasRoom || inFlight == 0)
    }

    private mutating func send(_ item: OutgoingPublish, at now: Int64) {
        let message = item.message
        var properties = engine.version.hasProperties ? message.mqttProperties : []
        if message.expiry != .max {
            guard message.expiry > now else { return hub.counters.add(.messagesDropped) }
            // The receiver gets what is left of the interval [MQTT-3.3.2-6].
            if engine.version.hasProperties { properties.messageExpiryInterval = message.remainingSeconds(at: now) }
        }
        if !item.identifiers.isEmpty && engine.version.hasProperties {
            properties.subscriptionIdentifiers = item.identifiers
        }
        do {
            _ = try engine.publish(
                topic: message.topic, payload: message.payload, qos: item.qos, retain: item.retain,
                properties: properties, at: now)
            hub.counters.add(.messagesOut)
        } catch {
            // Larger than the client accepts: it is not sent, as if it had been [MQTT-3.1.2-25].
            hub.counters.add(.messagesDropped)
        }
    }

    private mutating func countDropped() {
        let dropped = queue.takeDropped()
        if dropped > 0 { hub.counters.add(.messagesDropped, dropped) }
    }

    // MARK: The session

    /// Accepts the connection, which continues with its session.
    mutating func accept(
        _ opened: OpenedSession, of clientID: String, properties: MQTTProperties, at now: Int64
    ) {
        self.clientID = clientID
        continuesSession = opened.isPresent
        session = opened.session
        queue = opened.queue
        let excess = hub.currentFaults.receiveMaximumExcess
        if engine.version.hasProperties, excess > 0 {
            let (sum, isTooMuch) = engine.limits.receiveMaximum.addingReportingOverflow(excess)
            engine.limits.receiveMaximum = isTooMuch ? .max : sum
        }
        do {
            if opened.isPresent { _ = try engine.replaceSession(opened.kept) }
            firstUnrouted = engine.firstUnacknowledged
            try engine.acceptConnection(
                sessionPresent: opened.isPresent, properties: properties, at: now, into: &ignored)
            ignored.removeAll()
            drain(at: now)
        } catch {
            wantsClose = true
        }
    }

    mutating func refuse(_ reason: MQTTReasonCode, reasonString: String, at now: Int64) {
        try? engine.refuseConnection(reason, properties: [MQTTProperty(.reasonString, .string(reasonString))], at: now)
        wantsClose = true
    }

    /// Takes the session away, because the connection is over; nil if that was done before.
    ///
    /// - Parameter farewell: what DISCONNECT tells a 5.0 client; nil sends none.
    mutating func takeSession(telling farewell: Farewell? = nil, at now: Int64) -> OpenedSession? {
        if let farewell, engine.phase == .connected {
            try? engine.disconnect(reason: farewell.reason, properties: farewell.properties, at: now)
        }
        wantsClose = true
        // Closing clears the output, and the last packet is to leave.
        let last = engine.output
        engine.connectionClosed(at: now, into: &ignored)
        ignored.removeAll()
        engine.output = last
        guard session >= 0 else { return nil }
        // When the client repeats what the router has not taken, it is no repetition.
        for delivery in firstUnrouted..<engine.firstUnacknowledged { engine.forget(delivery) }
        guard let kept = try? engine.replaceSession(MQTTSession()) else { return nil }
        let taken = OpenedSession(session: session, isPresent: true, kept: kept, queue: queue)
        session = -1
        queue = SessionQueue(countLimit: 0, byteLimit: 0)
        return taken
    }

    /// Answers that were held back are due.
    mutating func releaseAnswers(at now: Int64) {
        answers.release(into: &engine.output, at: now)
    }

    mutating func setFrozen(_ frozen: Bool, at now: Int64) {
        isFrozen = frozen
        if !frozen { hub.judges?.resumedReading(id, at: now) }
        engine.setReadingPaused(frozen, at: now)
    }
}

// MARK: Single packets

extension MQTTServerMachine {
    /// Lets the engine receive the first packet, unless a fault hits it.
    private mutating func receivePacket(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        let limit = Int(engine.options.value.maximumPacketSize)
        // The engine refuses what cannot be decoded.
        guard
            let header = try? MQTTFrameHeader.parse(bytes, maximumPacketSize: limit, version: engine.version)
        else { return receiveBytes(bytes, at: now, into: afterLock) }
        guard header.packetCount <= bytes.byteCount else { return 0 }
        let packet = bytes.extracting(..<header.packetCount)
        let decoded = try? MQTTPacket.decode(
            header, body: packet.extracting(droppingFirst: header.headerCount), version: engine.version, from: .client)
        guard let decoded else { return receiveBytes(packet, at: now, into: afterLock) }
        var client = clientID
        if case .connect(let connect) = decoded { client = connect.clientID }
        let fault = hub.packets.fault(.received, .mqtt(header.type), of: client)
        if fault == .drop || fault == .cut {
            var arrival = self.arrival(of: decoded, from: client, topic: aliasedTopic(of: decoded))
            arrival.wasDropped = true
            afterLock.arrivals.append(arrival)
        }
        switch fault {
        case .drop: return packet.byteCount
        case .cut:
            isCut = true
            hub.drop(id)
            return bytes.byteCount
        case .duplicate, nil: break
        }
        let before = afterLock.work.effects.messages.count
        let count = receiveBytes(packet, at: now, into: afterLock)
        // The engine has resolved the topic alias, but does not report a repetition.
        let message = afterLock.work.effects.messages.dropFirst(before).last
        let topic = message.map { afterLock.work.effects.topic(of: $0, in: packet) } ?? aliasedTopic(of: decoded)
        var arrivals = [arrival(of: decoded, from: client, topic: topic)]
        if fault == .duplicate, !wantsClose {
            arrivals += arrivals
            _ = receiveBytes(packet, at: now, into: afterLock)
        }
        afterLock.arrivals += arrivals
        return count
    }

    /// The topic of a PUBLISH that has only an alias of it.
    private func aliasedTopic(of packet: MQTTPacket) -> String? {
        guard case .publish(let publish) = packet, publish.topic.isEmpty, let alias = publish.properties.topicAlias
        else { return nil }
        return engine.topic(ofInboundAlias: alias)
    }

    private func arrival(of packet: MQTTPacket, from client: String, topic known: String?) -> LoopbackArrival {
        var topic = known
        var payload: [UInt8] = []
        var (isDuplicate, hasWill) = (false, false)
        var id: UInt16 = 0
        switch packet {
        case .connect(let connect): hasWill = connect.will != nil
        case .publish(let publish):
            isDuplicate = publish.isDuplicate
            topic = topic ?? publish.topic
            payload = publish.payload
        case .subscribe(let subscribe): topic = subscribe.subscriptions.first?.filter
        case .unsubscribe(let unsubscribe): topic = unsubscribe.filters.first
        case .pubrec(let answer): id = answer.packetID
        default: break
        }
        return LoopbackArrival(
            client: client, packet: .mqtt(packet.type), topic: topic, payload: payload, isDuplicate: isDuplicate,
            packetID: id, hasWill: hasWill, continuesSession: continuesSession)
    }

    /// What is in the output is about to be written.
    mutating func outputTaken(at now: Int64) {
        func first(of bytes: RawSpan) -> (packet: LoopbackPacket, length: Int)? {
            let header = try? MQTTFrameHeader.parse(bytes, maximumPacketSize: .max)
            guard let header, header.packetCount <= bytes.byteCount else { return nil }
            return (.mqtt(header.type), header.packetCount)
        }
        engine.outputEmptied()
        if let left = answers.taken(from: engine.output, of: id, hub, at: now, first: first) { engine.output = left }
        if hub.packets.isActive {
            let (output, cuts) = hub.packets.filter(engine.output, of: clientID, first: first)
            engine.output = output
            if cuts {
                isCut = true
                hub.drop(id)
            }
        }
        // The bytes of an array of bytes: nothing to reinterpret.
        if let judges = hub.judges { unsafe judges.serverWrote(engine.output.span.bytes, on: id, at: now) }
    }
}

/// Counts what a client publishes, second by second.
struct PublishedInSecond {
    private var start = Int64.min
    private var count = 0
    private var bytes = 0

    /// Adds a message. Returns whether the client has published more in this second than it may.
    mutating func exceeds(_ faults: LoopbackFaults, adding size: Int, at now: Int64) -> Bool {
        if now >= start.advanced(byNanoseconds: 1_000_000_000) { (start, count, bytes) = (now, 0, 0) }
        count += 1
        bytes += size
        return count > faults.maximumPublishesPerSecond ?? .max || bytes > faults.maximumPublishedBytesPerSecond ?? .max
    }
}

/// What the engine of one MQTT connection reports.
struct MQTTServerWork: ServerWork {
    var effects = MQTTEffects()

    func perform(_ bytes: RawSpan, isClosed: Bool, from source: ServerSource) {
        guard case .mqtt(let link, _)? = source.hub.connection(source.id) else { return }
        let client = MQTTClientHandler(hub: source.hub, id: source.id, link: link, now: source.now)
        client.handle(effects, bytes)
        if isClosed { client.ended(sendsWill: true) }
    }

    mutating func removeAll() { effects.removeAll() }
}
