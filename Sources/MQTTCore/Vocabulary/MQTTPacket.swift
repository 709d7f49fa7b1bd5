/// A control packet of MQTT, of any version.
///
/// What a version does not have (properties, reason codes) is empty when decoded and refused when encoded.
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

    /// The type that the first byte says.
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
