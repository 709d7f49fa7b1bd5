public import Messaging
import Transport

extension MQTTClient {
    /// Every packet that goes over the connection from now on, sent and received, over reconnects.
    ///
    /// For showing, not for logic: a slow reader misses the oldest of 1024 packets, and a connection that is watched
    /// decodes everything twice.
    /// - Parameter showingSecrets: leaves passwords and authentication data readable.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<MQTTFrameRecord> {
        core.link.setTap(core.inspector)
        return core.inspector.frames(showingSecrets: showingSecrets)
    }
}
