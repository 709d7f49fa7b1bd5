public import Messaging
import Transport

extension MQTTClient {
    /// Every packet that goes over the connection from the moment this is called, sent and received, over reconnects.
    ///
    /// For showing, not for logic: a slow reader misses the oldest of 1024 packets, and a connection that is watched
    /// decodes everything twice.
    /// - Parameter showingSecrets: leaves user name, password, the payload of the will and authentication data readable.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<MQTTPacketRecord> {
        core.inspector.frames(showingSecrets: showingSecrets)
    }

    /// Puts every packet that goes over the connection into `log` from now on, over reconnects; secrets are masked.
    ///
    /// Call it before ``connect()``: what follows a CONNECT can only be read by who knows its version.
    /// - Parameter name: What the packets of this client are marked with; by default its client identifier.
    public nonisolated func inspect(into log: FrameLog, as name: String? = nil) {
        core.inspector.feed(log, as: name ?? core.clientIDTemplate)
    }

    /// Puts nothing more into `log`.
    public nonisolated func stopInspecting(into log: FrameLog) {
        core.inspector.stopFeeding(log)
    }
}
