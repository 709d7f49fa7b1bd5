/// The return codes of CONNACK in 3.1 and 3.1.1 (3.1.1, table 3.1) and the reason codes that say the same.
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
