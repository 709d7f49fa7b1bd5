/// A version of the MQTT protocol; the raw value is the protocol level that CONNECT carries.
public enum MQTTVersion: UInt8, Sendable, Hashable, CaseIterable, Comparable {
    /// MQTT 3.1 (IBM, 2010), protocol name "MQIsdp".
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v3_1 = 3
    /// MQTT 3.1.1 (OASIS, ISO/IEC 20922).
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v3_1_1 = 4
    /// MQTT 5.0 (OASIS).
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v5_0 = 5

    /// The name that CONNECT carries: "MQIsdp" for 3.1, "MQTT" for all later versions [MQTT-3.1.2-1].
    public var protocolName: String { self == .v3_1 ? "MQIsdp" : "MQTT" }

    /// Whether packets of this version carry properties and reason codes.
    public var hasProperties: Bool { self == .v5_0 }

    public static func < (left: MQTTVersion, right: MQTTVersion) -> Bool { left.rawValue < right.rawValue }
}

extension MQTTVersion: CustomStringConvertible {
    public var description: String {
        switch self {
        case .v3_1: "3.1"
        case .v3_1_1: "3.1.1"
        case .v5_0: "5.0"
        }
    }
}
