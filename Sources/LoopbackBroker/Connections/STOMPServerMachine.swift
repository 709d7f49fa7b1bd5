import MessagingWire
import STOMPCore
import Transport

/// The server's end of one STOMP connection.
struct STOMPServerMachine: LinkMachine, ~Copyable {
    typealias AfterLock = ServerAfterLock<STOMPServerWork>

    let id: Router.ConnectionID
    let hub: Hub
    var engine: STOMPEngine
    /// Empty before CONNECT is accepted.
    var clientName = ""
    private var isFrozen = false
    private var answers = HeldAnswers()
    private var judged = JudgedBytes()
    /// A fault has cut the connection, which is about to end: nothing more is read or written.
    private var isCut = false
    /// Whether a sender was refused for lack of room and has to be notified when there is room again.
    private var owesRoom = false
    private let maximumOutboxBytes: Int
    private var ignored = STOMPEffects()

    init(id: Router.ConnectionID, hub: Hub) {
        self.id = id
        self.hub = hub
        var configuration = STOMPEngineConfiguration(role: .server)
        configuration.limits.maximumBodyBytes = hub.options.limits.maximumPacketSize
        engine = STOMPEngine(configuration: configuration)
        maximumOutboxBytes = hub.options.limits.maximumOutboxBytes
    }

    // MARK: What the link asks

    var wantsReadingPaused: Bool { false }
    var wantsClose: Bool { engine.shouldClose }
    /// A frozen broker's clocks stand still.
    var nextDeadline: Int64 { mutating get { isFrozen ? .max : engine.nextDeadline } }

    /// The link takes the bytes by putting an empty array in their place: then there is room again.
    var outputCount: Int { isCut ? 0 : engine.output.count }
    /// Messages are delivered only while the outbox has room.
    var ownBytes: Int { engine.ownBytes }

    var output: [UInt8] {
        get { engine.output }
        set {
            engine.output = newValue
            if owesRoom && newValue.isEmpty {
                owesRoom = false
                hub.hasRoomAgain(id)
            }
        }
    }

    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock) {
        hub.judges?.opened(id, .stomp)
        // A server writes nothing that its configuration could make impossible.
        try? engine.connectionOpened(at: now)
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock) {
        begin(afterLock, at: now)
        engine.connectionClosed(at: now, into: &ignored)
        ignored.removeAll()
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
        let count =
            hub.packets.isActive
            ? receiveFrame(bytes, at: now, into: afterLock)
            : engine.receive(bytes, at: now, into: &afterLock.work.effects)
        begin(afterLock, at: now)
        return count
    }

    mutating func systemSlept(since start: Int64, at now: Int64, progress: OutputProgress) {
        hub.judges?.resumedReading(id, at: now)
        engine.systemSlept(since: start, at: now)
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock) {
        guard !isFrozen else { return }
        begin(afterLock, at: now)
        engine.handleTimeout(at: now, into: &afterLock.work.effects)
    }

    private func begin(_ afterLock: AfterLock, at now: Int64) {
        afterLock.begin(ServerSource(hub: hub, id: id, now: now))
        afterLock.work.version = engine.version
    }

    // MARK: What the broker wants

    /// Sends a message; false if there is no room for it.
    mutating func deliver(_ delivery: STOMPDelivery, at now: Int64) -> Bool {
        guard engine.phase == .connected else { return false }
        guard engine.output.count < maximumOutboxBytes else {
            owesRoom = true
            return false
        }
        var headers = delivery.entry.message.stompHeaders
        if delivery.isRedelivered { headers["redelivered"] = "true" }
        do {
            try engine.deliver(
                subscription: delivery.subscriptionID, destination: delivery.destination, messageID: delivery.messageID,
                ackID: delivery.ackID, headers: headers, body: delivery.entry.message.payload, at: now)
            hub.counters.add(.messagesOut)
        } catch {
            hub.counters.add(.messagesDropped)
        }
        return true
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

// MARK: Single frames

extension STOMPServerMachine {
    /// Lets the engine receive the first frame and the heart-beats before it, unless a fault hits the frame.
    private mutating func receiveFrame(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        var limits = STOMPLimits()
        limits.maximumBodyBytes = hub.options.limits.maximumPacketSize
        var decoder = STOMPDecoder(version: engine.version, limits: limits)
        decoder.push(bytes)
        let next = Result { () throws(STOMPProtocolError) in try decoder.next() }
        // The engine refuses what cannot be decoded.
        guard case .success(let found) = next else {
            return engine.receive(bytes, at: now, into: &afterLock.work.effects)
        }
        let length = bytes.byteCount - decoder.bufferedBytes
        let first = bytes.extracting(..<length)
        guard let frame = found else {
            // Heart-beats, perhaps with a part of a frame behind them.
            return length == 0 ? 0 : engine.receive(first, at: now, into: &afterLock.work.effects)
        }
        let isHandshake = frame.command == .connect || frame.command == .stomp
        let client = isHandshake ? frame.headers["client-id"] ?? "" : clientName
        let fault = hub.packets.fault(.received, .stomp(frame.command), of: client)
        var arrival = LoopbackArrival(
            client: client, packet: .stomp(frame.command), topic: frame.headers["destination"], payload: frame.body)
        arrival.wasDropped = fault == .drop || fault == .cut
        afterLock.arrivals.append(arrival)
        switch fault {
        case .drop: return length
        case .cut:
            isCut = true
            hub.drop(id)
            return bytes.byteCount
        case .duplicate, nil: break
        }
        let count = engine.receive(first, at: now, into: &afterLock.work.effects)
        if fault == .duplicate, count == length, !wantsClose {
            afterLock.arrivals.append(arrival)
            _ = engine.receive(first, at: now, into: &afterLock.work.effects)
        }
        return count
    }

    /// What is in the output is about to be written.
    mutating func outputTaken(at now: Int64) {
        func first(of bytes: RawSpan) -> (packet: LoopbackPacket, length: Int)? {
            let length = STOMPFrame.lengthOfFirst(in: bytes)
            var boundaries = STOMPFrameBoundaries()
            // A heart-beat counts as a frame that has no command.
            let command = boundaries.next(in: bytes.extracting(..<length)) ?? .unknown
            return (.stomp(command), length)
        }
        engine.outputEmptied()
        if let left = answers.taken(from: engine.output, of: id, hub, at: now, first: first) { engine.output = left }
        if hub.packets.isActive {
            let (output, cuts) = hub.packets.filter(engine.output, of: clientName, first: first)
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

/// What the engine of one STOMP connection reports.
struct STOMPServerWork: ServerWork {
    var effects = STOMPEffects()
    var version = STOMPVersion.v12

    func perform(_ bytes: RawSpan, isClosed: Bool, from source: ServerSource) {
        guard case .stomp(let link, _)? = source.hub.connection(source.id) else { return }
        let client = STOMPClientHandler(
            hub: source.hub, id: source.id, link: link, version: version, now: source.now)
        client.handle(effects, bytes)
        if isClosed { client.ended() }
    }

    mutating func removeAll() { effects.removeAll() }
}
