import MQTTCore
import Messaging
import Transport

extension MQTTClientCore {
    /// Made for the first who looks, and fed by the link from then on.
    var inspector: FrameInspector<MQTTPacketRecord> {
        link.tap {
            let aliases = MQTTSeenAliases()
            return FrameInspector { [weak link] bytes, direction, wishes in
                // Asked anew each time: it may have fallen back. CONNECT says its own.
                let version = link?.perform { $0.engine.version } ?? .v5_0
                return MQTTPacketRecord.read(bytes, version: version, direction, wishes, aliases: aliases)
            }
        }
    }
}
