/// A control packet of MQTT, of any version.
///
/// Fields that a version does not have (properties, reason codes) are empty when decoded and refused when encoded.
public enum MQTTPacket: Sendable, Hashable {
    case connect(Connect)
    case connack(Connack)
    case publish(Publish)
    case puback(Acknowledgement)
    case pubrec(Acknowledgement)
    case pubrel(Acknowledgement)
    case pubcomp(Acknowledgement)
    case subscribe(Subscribe)
    case suback(Suback)
    case unsubscribe(Unsubscribe)
    case unsuback(Unsuback)
    case pingreq
    case pingresp
    case disconnect(Disconnect)
    case auth(Auth)

    /// The size of the largest packet that the format allows, with its fixed header: 268,435,460 bytes.
    public static let largestSize = 268_435_460

    /// The type in the first byte.
    public var type: MQTTPacketType {
        switch self {
        case .connect: .connect
        case .connack: .connack
        case .publish: .publish
        case .puback: .puback
        case .pubrec: .pubrec
        case .pubrel: .pubrel
        case .pubcomp: .pubcomp
        case .subscribe: .subscribe
        case .suback: .suback
        case .unsubscribe: .unsubscribe
        case .unsuback: .unsuback
        case .pingreq: .pingreq
        case .pingresp: .pingresp
        case .disconnect: .disconnect
        case .auth: .auth
        }
    }
}

/// The type of a control packet; the raw value is the upper half of its first byte.
public enum MQTTPacketType: UInt8, Sendable, Hashable, CaseIterable {
    case connect = 1
    case connack
    case publish
    case puback
    case pubrec
    case pubrel
    case pubcomp
    case subscribe
    case suback
    case unsubscribe
    case unsuback
    case pingreq
    case pingresp
    case disconnect
    /// MQTT 5.0 only.
    case auth

    /// The fixed-header flags that every packet of this type carries, or nil for PUBLISH, whose flags have a meaning
    /// [MQTT-2.1.3-1].
    public var requiredFlags: UInt8? {
        switch self {
        case .publish: nil
        case .pubrel, .subscribe, .unsubscribe: 0b0010
        default: 0
        }
    }
}

extension MQTTPacketType: CustomStringConvertible {
    public var description: String {
        switch self {
        case .connect: "CONNECT"
        case .connack: "CONNACK"
        case .publish: "PUBLISH"
        case .puback: "PUBACK"
        case .pubrec: "PUBREC"
        case .pubrel: "PUBREL"
        case .pubcomp: "PUBCOMP"
        case .subscribe: "SUBSCRIBE"
        case .suback: "SUBACK"
        case .unsubscribe: "UNSUBSCRIBE"
        case .unsuback: "UNSUBACK"
        case .pingreq: "PINGREQ"
        case .pingresp: "PINGRESP"
        case .disconnect: "DISCONNECT"
        case .auth: "AUTH"
        }
    }
}
