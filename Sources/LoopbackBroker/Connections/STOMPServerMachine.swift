import STOMPCore
import Transport

/// The server's end of one STOMP connection.
struct STOMPServerMachine: LinkMachine, ~Copyable {
    typealias Scratch = STOMPServerScratch

    let id: Router.ConnectionID
    let hub: Hub
    var engine: STOMPEngine
    private var isFrozen = false
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
    var outputCount: Int { engine.output.count }

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

    mutating func connectionOpened(at now: Int64, into scratch: STOMPServerScratch) {
        // A server writes nothing that its configuration could make impossible.
        try? engine.connectionOpened(at: now)
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into scratch: STOMPServerScratch) {
        scratch.begin(hub, id, engine.version, now)
        engine.connectionClosed(at: now, into: &ignored)
        ignored.removeAll()
        scratch.isClosed = true
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into scratch: STOMPServerScratch) -> Int {
        guard !wantsClose else { return bytes.byteCount }
        let count = engine.receive(bytes, at: now, into: &scratch.effects)
        scratch.begin(hub, id, engine.version, now)
        return count
    }

    mutating func handleTimeout(at now: Int64, progress: LinkProgress, into scratch: STOMPServerScratch) {
        guard !isFrozen else { return }
        scratch.begin(hub, id, engine.version, now)
        engine.handleTimeout(at: now, into: &scratch.effects)
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

    mutating func setFrozen(_ frozen: Bool, at now: Int64) {
        isFrozen = frozen
        engine.setReadingPaused(frozen, at: now)
    }
}

/// What one connection heard, from the moment when its lock is released.
final class STOMPServerScratch: LinkScratch {
    var effects = STOMPEffects()
    var isClosed = false
    private var source: Source?

    private struct Source {
        var hub: Hub
        var id: Router.ConnectionID
        var version: STOMPVersion
        var now: Int64
    }

    func begin(_ hub: Hub, _ id: Router.ConnectionID, _ version: STOMPVersion, _ now: Int64) {
        source = Source(hub: hub, id: id, version: version, now: now)
    }

    func perform(_ bytes: RawSpan) {
        guard let source else { return }
        // What is taken out here is this call's own: performing may lead to another connection's effects.
        var effects = STOMPEffects()
        swap(&effects, &self.effects)
        let isClosed = self.isClosed
        self.isClosed = false
        self.source = nil
        if case .stomp(let link, _)? = source.hub.connection(source.id) {
            let client = STOMPClientHandler(
                hub: source.hub, id: source.id, link: link, version: source.version, now: source.now)
            client.handle(effects, bytes)
            if isClosed { client.ended() }
        }
        if isClosed { source.hub.forget(source.id) }
        effects.removeAll()
        swap(&effects, &self.effects)
    }
}
