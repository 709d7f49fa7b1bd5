import STOMPCore
import Transport

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
