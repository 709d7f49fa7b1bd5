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

/// The two ends of an MQTT connection.
public enum MQTTRole: Sendable, Hashable {
    case client
    case server
}

extension MQTTRole: CustomStringConvertible {
    public var description: String { self == .client ? "client" : "server" }
}

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

/// The message that the server publishes for a client that vanishes.
public struct MQTTWill: Sendable, Hashable {
    public var topic: String
    public var payload: [UInt8]
    public var qos: QoS
    public var retain: Bool
    /// Will Delay Interval, Payload Format Indicator, Message Expiry Interval, Content Type, Response Topic,
    /// Correlation Data and user properties; 5.0 only.
    public var properties: MQTTProperties

    public init(
        topic: String, payload: [UInt8], qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) {
        self.topic = topic
        self.payload = payload
        self.qos = qos
        self.retain = retain
        self.properties = properties
    }
}
