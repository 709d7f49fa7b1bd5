import Messaging
import STOMPCore
import Transport

extension STOMPClientCore {
    /// Made for the first who looks, and fed by the link from then on.
    var inspector: FrameInspector<STOMPFrameRecord> {
        link.tap {
            FrameInspector { [weak link] bytes, direction, showsSecrets in
                // Asked anew each time: CONNECTED changes it.
                let version = link?.perform { $0.engine.version } ?? .v12
                return STOMPFrameRecord.records(bytes, version: version, direction, showsSecrets: showsSecrets)
            } log: { [weak link] bytes, direction, limit in
                let version = link?.perform { $0.engine.version } ?? .v12
                return STOMPFrameRecord.logged(bytes, version: version, direction, limit: limit)
            }
        }
    }
}
