/// A quality of service: what sender and receiver promise each other about one message.
public enum QoS: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// QoS 0: delivered once or not at all, no acknowledgement.
    case atMostOnce = 0
    /// QoS 1: delivered, perhaps more than once; PUBACK.
    case atLeastOnce = 1
    /// QoS 2: delivered exactly once; PUBREC, PUBREL, PUBCOMP.
    case exactlyOnce = 2

    public static func < (left: QoS, right: QoS) -> Bool { left.rawValue < right.rawValue }
}

extension QoS: CustomStringConvertible {
    public var description: String { "QoS \(rawValue)" }
}
