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
    /// 0x10 in PUBACK and PUBREC: accepted, nobody subscribes.
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
