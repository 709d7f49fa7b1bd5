import MQTTCore
import MessagingWire
import Transport

/// One client's connection, of either protocol.
enum Connection: Sendable {
    /// TLS or WebSocket, or both, are not open yet.
    case opening(LayerHandshake, ServedStream)
    case mqtt(Link<MQTTServerMachine>, ServedStream)
    case stomp(Link<STOMPServerMachine>, ServedStream)

    static func make(_ kind: Service.Kind, id: Router.ConnectionID, stream: ServedStream, hub: Hub) -> Connection {
        let limit = hub.options.limits.maximumOutboxBytes
        switch kind {
        case .mqtt:
            let machine = MQTTServerMachine(id: id, hub: hub)
            return .mqtt(Link(machine: machine, loop: hub.loop, maximumOutboxBytes: limit), stream)
        case .stomp:
            let machine = STOMPServerMachine(id: id, hub: hub)
            return .stomp(Link(machine: machine, loop: hub.loop, maximumOutboxBytes: limit), stream)
        }
    }

    var stream: ServedStream {
        switch self {
        case .opening(_, let stream), .mqtt(_, let stream), .stomp(_, let stream): stream
        }
    }

    func attach(_ stream: ServedStream, layers: LayerStack?) {
        switch self {
        case .opening: break
        case .mqtt(let link, _): link.attachNow(stream, layers: layers)
        case .stomp(let link, _): link.attachNow(stream, layers: layers)
        }
    }

    func deliver(_ item: OutgoingPublish, at now: Int64) {
        switch self {
        case .mqtt(let link, _): link.perform { $0.deliver(item, at: now) }
        case .stomp, .opening: break
        }
    }

    /// Returns whether there was room.
    func deliver(_ delivery: STOMPDelivery, at now: Int64) -> Bool {
        switch self {
        case .mqtt, .opening: true
        case .stomp(let link, _): link.perform { $0.deliver(delivery, at: now) }
        }
    }

    /// Cuts the connection as a failing network would; on the loop's thread, but not while effects are performed.
    func drop() {
        switch self {
        case .opening(let handshake, _): handshake.cancel()
        case .mqtt(let link, _): link.dropConnectionNow()
        case .stomp(let link, _): link.dropConnectionNow()
        }
    }

    /// Sends the answers that were held back until now; on the loop's thread.
    func releaseAnswers(at now: Int64) {
        switch self {
        case .opening: break
        case .mqtt(let link, _): link.perform { $0.releaseAnswers(at: now) }
        case .stomp(let link, _): link.perform { $0.releaseAnswers(at: now) }
        }
    }

    /// On the loop's thread.
    func setFrozen(_ frozen: Bool, at now: Int64) {
        switch self {
        case .opening(let handshake, let stream):
            stream.setFrozen(frozen)
            handshake.setDeadline(frozen ? .max : now.advanced(byNanoseconds: Service.patience))
        case .mqtt(let link, let stream):
            stream.setFrozen(frozen)
            link.perform { $0.setFrozen(frozen, at: now) }
        case .stomp(let link, let stream):
            stream.setFrozen(frozen)
            link.perform { $0.setFrozen(frozen, at: now) }
        }
    }
}

/// The connection that an input came over.
struct ServerSource {
    let hub: Hub
    let id: Router.ConnectionID
    let now: Int64
}

/// What the engine of a connection reports, and how the broker acts on it.
protocol ServerWork {
    init()
    /// Called on the loop's thread with no lock held.
    func perform(_ bytes: RawSpan, isClosed: Bool, from source: ServerSource)
    /// Empties everything and keeps the capacity.
    mutating func removeAll()
}

/// What one input of a connection leads to, until the connection's lock is released.
final class ServerAfterLock<Work: ServerWork>: LinkAfterLock {
    var work = Work()
    /// For readers of arrivals.
    var arrivals: [LoopbackArrival] = []
    var isClosed = false
    private var source: ServerSource?

    func begin(_ source: ServerSource) { self.source = source }

    func perform(_ bytes: RawSpan) {
        guard let source = source.take() else { return }
        // What is taken out here is this call's own: performing may lead to another connection's effects.
        var work = Work()
        swap(&work, &self.work)
        let arrivals = self.arrivals
        if !arrivals.isEmpty { self.arrivals = [] }
        let isClosed = self.isClosed
        self.isClosed = false
        work.perform(bytes, isClosed: isClosed, from: source)
        // After they have had their effects.
        source.hub.packets.report(arrivals)
        if isClosed { source.hub.forget(source.id) }
        work.removeAll()
        swap(&work, &self.work)
    }
}
