import MQTTCore
import Transport

/// What one connection heard, from the moment when its lock is released.
final class MQTTServerScratch: LinkScratch {
    var effects = MQTTEffects()
    /// The topic of each message in the effects.
    var topics: [String] = []
    var isClosed = false
    private var source: Source?

    private struct Source {
        var hub: Hub
        var id: Router.ConnectionID
        var now: Int64
    }

    func begin(_ hub: Hub, _ id: Router.ConnectionID, _ now: Int64) {
        source = Source(hub: hub, id: id, now: now)
    }

    func perform(_ bytes: RawSpan) {
        guard let source else { return }
        // What is taken out here is this call's own: performing may lead to another connection's effects.
        var effects = MQTTEffects()
        var topics: [String] = []
        swap(&effects, &self.effects)
        swap(&topics, &self.topics)
        let isClosed = self.isClosed
        self.isClosed = false
        self.source = nil
        if case .mqtt(let link, _)? = source.hub.connection(source.id) {
            let client = MQTTClientHandler(hub: source.hub, id: source.id, link: link, now: source.now)
            client.handle(effects, topics, bytes)
            if isClosed { client.ended(sendsWill: true) }
        }
        if isClosed { source.hub.forget(source.id) }
        effects.removeAll()
        topics.removeAll(keepingCapacity: true)
        swap(&effects, &self.effects)
        swap(&topics, &self.topics)
    }
}
