/// Who acknowledges the QoS 1 and 2 messages of a subscription.
public struct MQTTAcknowledgement: Sendable, Equatable {
    enum Kind { case automatic, manual }
    let kind: Kind

    /// The client does, once the message is in the subscription's buffer and the buffer has room.
    public static let automatic = MQTTAcknowledgement(kind: .automatic)
    /// The receiver does, with ``MQTTMessage/acknowledge()``. Until then the server may not send more than its limit,
    /// and sends the message again after a reconnect.
    public static let manual = MQTTAcknowledgement(kind: .manual)
}
