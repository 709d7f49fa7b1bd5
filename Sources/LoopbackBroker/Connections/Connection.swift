import MQTTCore
import Transport

/// One client's connection, of either protocol.
enum Connection: Sendable {
    case mqtt(Link<MQTTServerMachine>, ServedStream)

    static func make(_ kind: Service.Kind, id: Router.ConnectionID, stream: ServedStream, hub: Hub) -> Connection {
        let limit = hub.options.limits.outboxBytes
        switch kind {
        case .mqtt, .stomp:
            let machine = MQTTServerMachine(id: id, hub: hub)
            return .mqtt(Link(machine: machine, loop: hub.loop, outboxLimit: limit), stream)
        }
    }

    func attach(_ stream: ServedStream, layers: LayerStack?) {
        switch self {
        case .mqtt(let link, _): link.attach(stream, layers: layers)
        }
    }

    func deliver(_ item: OutgoingPublish, at now: Int64) {
        switch self {
        case .mqtt(let link, _): link.perform { $0.deliver(item, at: now) }
        }
    }

    /// Cuts the connection as a failing network would.
    func drop() {
        switch self {
        case .mqtt(let link, _): link.dropConnection()
        }
    }

    /// Closes the stream at once and forgets the connection; on the loop's thread.
    func closeNow() {
        switch self {
        case .mqtt(let link, _): link.dropConnection()
        }
    }

    /// On the loop's thread.
    func setFrozen(_ frozen: Bool) {
        let now = MonotonicClock.now
        switch self {
        case .mqtt(let link, let stream):
            stream.setFrozen(frozen)
            link.perform { $0.setFrozen(frozen, at: now) }
        }
    }
}
