public import Messaging
import Transport

extension STOMPClient {
    /// Every frame and heart-beat that goes over the connection from the moment this is called, sent and received, over
    /// reconnects.
    ///
    /// For showing, not for logic: a slow reader misses the oldest of 1024 frames, and a connection that is watched
    /// decodes everything twice.
    /// - Parameter showingSecrets: leaves login, passcode and other secret headers readable.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<STOMPFrameRecord> {
        core.inspector.frames(showingSecrets: showingSecrets)
    }

    /// Puts every frame and heart-beat that goes over the connection into `log` from now on, over reconnects; secrets are
    /// masked.
    ///
    /// - Parameter name: What the frames of this client are marked with; by default its `client-id`.
    public nonisolated func inspect(into log: FrameLog, as name: String? = nil) {
        core.inspector.feed(log, as: name ?? core.configuration.clientID ?? "")
    }

    /// Puts nothing more into `log`.
    public nonisolated func stopInspecting(into log: FrameLog) {
        core.inspector.stopFeeding(log)
    }
}
