import Messaging
import STOMPCore
import Transport

extension STOMPClientCore {
    /// Made for the first who looks, and fed by the link from then on.
    var inspector: FrameInspector<STOMPFrameRecord> {
        link.tap {
            FrameInspector { [weak link] bytes, direction, wishes in
                // Asked anew each time: CONNECTED changes it.
                let version = link?.perform { $0.engine.version } ?? .v12
                return STOMPFrameRecord.read(bytes, version: version, direction, wishes)
            }
        }
    }
}
