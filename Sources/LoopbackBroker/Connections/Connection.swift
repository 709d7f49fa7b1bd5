import MQTTCore
import Transport
import Wire

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
        case .mqtt(let link, _): link.attach(stream, layers: layers)
        case .stomp(let link, _): link.attach(stream, layers: layers)
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

    /// Cuts the connection as a failing network would; on the loop's thread.
    func drop() {
        switch self {
        case .opening(let handshake, _): handshake.cancel()
        case .mqtt(let link, _): link.dropConnection()
        case .stomp(let link, _): link.dropConnection()
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
