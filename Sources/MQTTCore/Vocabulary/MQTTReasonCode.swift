/// A reason code of MQTT 5.0, section 2.4.
///
/// The set is open: a peer's code without a name here is kept as it came. The return codes of 3.1 and 3.1.1 are
/// translated to these by the codec, see ``init(connectReturnCode:)``.
public struct MQTTReasonCode: RawRepresentable, Sendable, Hashable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) {
        self.rawValue = rawValue
    }

    /// Whether the operation failed: codes from 0x80 on.
    public var isError: Bool { rawValue >= 0x80 }
}

extension MQTTReasonCode {
    /// 0x00 in all acknowledgements.
    public static let success = MQTTReasonCode(rawValue: 0x00)
    /// 0x00 in DISCONNECT: the will is not sent.
    public static let normalDisconnection = MQTTReasonCode(rawValue: 0x00)
    /// 0x00 in SUBACK.
    public static let grantedQoS0 = MQTTReasonCode(rawValue: 0x00)
    /// 0x01 in SUBACK.
    public static let grantedQoS1 = MQTTReasonCode(rawValue: 0x01)
    /// 0x02 in SUBACK.
    public static let grantedQoS2 = MQTTReasonCode(rawValue: 0x02)
    /// 0x04 in DISCONNECT.
    public static let disconnectWithWillMessage = MQTTReasonCode(rawValue: 0x04)
    /// 0x10 in PUBACK and PUBREC: accepted, but there is no subscriber.
    public static let noMatchingSubscribers = MQTTReasonCode(rawValue: 0x10)
    /// 0x11 in UNSUBACK.
    public static let noSubscriptionExisted = MQTTReasonCode(rawValue: 0x11)
    /// 0x18 in AUTH.
    public static let continueAuthentication = MQTTReasonCode(rawValue: 0x18)
    /// 0x19 in AUTH.
    public static let reauthenticate = MQTTReasonCode(rawValue: 0x19)
    public static let unspecifiedError = MQTTReasonCode(rawValue: 0x80)
    public static let malformedPacket = MQTTReasonCode(rawValue: 0x81)
    public static let protocolError = MQTTReasonCode(rawValue: 0x82)
    public static let implementationSpecificError = MQTTReasonCode(rawValue: 0x83)
    public static let unsupportedProtocolVersion = MQTTReasonCode(rawValue: 0x84)
    public static let clientIdentifierNotValid = MQTTReasonCode(rawValue: 0x85)
    public static let badUserNameOrPassword = MQTTReasonCode(rawValue: 0x86)
    public static let notAuthorized = MQTTReasonCode(rawValue: 0x87)
    public static let serverUnavailable = MQTTReasonCode(rawValue: 0x88)
    public static let serverBusy = MQTTReasonCode(rawValue: 0x89)
    public static let banned = MQTTReasonCode(rawValue: 0x8A)
    public static let serverShuttingDown = MQTTReasonCode(rawValue: 0x8B)
    public static let badAuthenticationMethod = MQTTReasonCode(rawValue: 0x8C)
    public static let keepAliveTimeout = MQTTReasonCode(rawValue: 0x8D)
    public static let sessionTakenOver = MQTTReasonCode(rawValue: 0x8E)
    public static let topicFilterInvalid = MQTTReasonCode(rawValue: 0x8F)
    public static let topicNameInvalid = MQTTReasonCode(rawValue: 0x90)
    public static let packetIdentifierInUse = MQTTReasonCode(rawValue: 0x91)
    public static let packetIdentifierNotFound = MQTTReasonCode(rawValue: 0x92)
    public static let receiveMaximumExceeded = MQTTReasonCode(rawValue: 0x93)
    public static let topicAliasInvalid = MQTTReasonCode(rawValue: 0x94)
    public static let packetTooLarge = MQTTReasonCode(rawValue: 0x95)
    public static let messageRateTooHigh = MQTTReasonCode(rawValue: 0x96)
    public static let quotaExceeded = MQTTReasonCode(rawValue: 0x97)
    public static let administrativeAction = MQTTReasonCode(rawValue: 0x98)
    public static let payloadFormatInvalid = MQTTReasonCode(rawValue: 0x99)
    public static let retainNotSupported = MQTTReasonCode(rawValue: 0x9A)
    public static let qosNotSupported = MQTTReasonCode(rawValue: 0x9B)
    public static let useAnotherServer = MQTTReasonCode(rawValue: 0x9C)
    public static let serverMoved = MQTTReasonCode(rawValue: 0x9D)
    public static let sharedSubscriptionsNotSupported = MQTTReasonCode(rawValue: 0x9E)
    public static let connectionRateExceeded = MQTTReasonCode(rawValue: 0x9F)
    public static let maximumConnectTime = MQTTReasonCode(rawValue: 0xA0)
    public static let subscriptionIdentifiersNotSupported = MQTTReasonCode(rawValue: 0xA1)
    public static let wildcardSubscriptionsNotSupported = MQTTReasonCode(rawValue: 0xA2)
}

extension MQTTReasonCode: CustomStringConvertible {
    /// The code in words and as a number, for example "not authorized (0x87)".
    public var description: String {
        let digits = String(rawValue, radix: 16, uppercase: true)
        return "\(name ?? "unnamed reason") (0x\(digits.utf8.count < 2 ? "0" : "")\(digits))"
    }

    /// The specification's name of the code, or nil if it has none.
    public var name: String? {
        switch rawValue {
        case 0x00: "success"
        case 0x01: "granted QoS 1"
        case 0x02: "granted QoS 2"
        case 0x04: "disconnect with will message"
        case 0x10: "no matching subscribers"
        case 0x11: "no subscription existed"
        case 0x18: "continue authentication"
        case 0x19: "re-authenticate"
        case 0x80: "unspecified error"
        case 0x81: "malformed packet"
        case 0x82: "protocol error"
        case 0x83: "implementation specific error"
        case 0x84: "unsupported protocol version"
        case 0x85: "client identifier not valid"
        case 0x86: "bad user name or password"
        case 0x87: "not authorized"
        case 0x88: "server unavailable"
        case 0x89: "server busy"
        case 0x8A: "banned"
        case 0x8B: "server shutting down"
        case 0x8C: "bad authentication method"
        case 0x8D: "keep alive timeout"
        case 0x8E: "session taken over"
        case 0x8F: "topic filter invalid"
        case 0x90: "topic name invalid"
        case 0x91: "packet identifier in use"
        case 0x92: "packet identifier not found"
        case 0x93: "receive maximum exceeded"
        case 0x94: "topic alias invalid"
        case 0x95: "packet too large"
        case 0x96: "message rate too high"
        case 0x97: "quota exceeded"
        case 0x98: "administrative action"
        case 0x99: "payload format invalid"
        case 0x9A: "retain not supported"
        case 0x9B: "QoS not supported"
        case 0x9C: "use another server"
        case 0x9D: "server moved"
        case 0x9E: "shared subscriptions not supported"
        case 0x9F: "connection rate exceeded"
        case 0xA0: "maximum connect time"
        case 0xA1: "subscription identifiers not supported"
        case 0xA2: "wildcard subscriptions not supported"
        default: nil
        }
    }
}

/// The return codes of CONNACK in 3.1 and 3.1.1 (3.1.1, table 3.1) and the equivalent reason codes.
extension MQTTReasonCode {
    /// The reason code for a return code of 3.1 or 3.1.1, or nil for a reserved one (6 and above).
    public init?(connectReturnCode: UInt8) {
        switch connectReturnCode {
        case 0: self = .success
        case 1: self = .unsupportedProtocolVersion
        case 2: self = .clientIdentifierNotValid
        case 3: self = .serverUnavailable
        case 4: self = .badUserNameOrPassword
        case 5: self = .notAuthorized
        default: return nil
        }
    }

    /// The return code of 3.1 and 3.1.1 that comes closest, or nil where the server has to close without a CONNACK
    /// [MQTT-3.2.2-6, 3.1.1].
    public var connectReturnCode: UInt8? {
        switch self {
        case .success: 0
        case .unsupportedProtocolVersion: 1
        case .clientIdentifierNotValid: 2
        case .serverUnavailable, .serverBusy, .serverShuttingDown, .quotaExceeded, .connectionRateExceeded,
            .useAnotherServer, .serverMoved:
            3
        case .badUserNameOrPassword: 4
        case .notAuthorized, .banned, .badAuthenticationMethod: 5
        default: nil
        }
    }
}
