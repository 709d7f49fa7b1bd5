import MessagingWire

/// A version of the protocol. The three share one codec; what differs is asked of the version.
public enum STOMPVersion: UInt8, Sendable, Hashable, Comparable, CaseIterable, CustomStringConvertible {
    case v10
    case v11
    case v12

    /// The version that a `version` header names, or nil when it names none that exists.
    public init?(_ text: some StringProtocol) {
        switch text {
        case "1.0": self = .v10
        case "1.1": self = .v11
        case "1.2": self = .v12
        default: return nil
        }
    }

    public var description: String {
        switch self {
        case .v10: "1.0"
        case .v11: "1.1"
        case .v12: "1.2"
        }
    }

    /// NACK and the mode `client-individual` exist from 1.1 on (STOMP 1.1 "NACK").
    public var hasNegativeAcknowledgement: Bool { self >= .v11 }

    public static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The versions in an `accept-version` header; numbers that do not exist are passed over.
    public static func list(_ header: String) -> [STOMPVersion] {
        header.utf8.split(separator: UInt8(ascii: ",")).compactMap { part in
            STOMPVersion(String(Substring(part)).trimmingBlanks())
        }
    }
}

/// The two ends of a STOMP connection.
public enum STOMPRole: UInt8, Sendable, Hashable {
    case client
    case server
}

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
