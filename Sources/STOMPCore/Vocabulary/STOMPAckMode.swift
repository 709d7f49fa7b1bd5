/// How the messages of a subscription are acknowledged (STOMP 1.2 "SUBSCRIBE ack Header").
public enum STOMPAckMode: UInt8, Sendable, Hashable, CaseIterable, CustomStringConvertible {
    /// Delivered is acknowledged; ACK and NACK must not be sent.
    case auto
    /// Cumulative: an ACK or NACK covers all messages of this subscription up to it.
    case client
    /// Each message for itself; from 1.1 on.
    case clientIndividual

    /// The mode that an `ack` header names.
    public init?(_ text: String) {
        switch text {
        case "auto": self = .auto
        case "client": self = .client
        case "client-individual": self = .clientIndividual
        default: return nil
        }
    }

    public var description: String {
        switch self {
        case .auto: "auto"
        case .client: "client"
        case .clientIndividual: "client-individual"
        }
    }
}
