public import Messaging
import Transport

extension STOMPClient {
    /// Every frame and heart-beat that goes over the connection from now on, sent and received, over reconnects.
    ///
    /// For showing, not for logic: a slow reader misses the oldest of 1024 frames, and a connection that is watched
    /// decodes everything twice.
    /// - Parameter showingSecrets: leaves passcodes readable.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<STOMPFrameRecord> {
        core.link.setTap(core.inspector)
        return core.inspector.frames(showingSecrets: showingSecrets)
    }
}
