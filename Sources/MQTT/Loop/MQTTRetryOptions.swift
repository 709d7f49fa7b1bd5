import MQTTCore
import MessagingShell

/// What the client could change about its next attempt, and what therefore follows a failure. A value without side effects;
/// any thread may use it.
struct MQTTRetryOptions {
    /// The server has just referred the client to another one, which has not been tried.
    var hasNewServer = false
    /// The server has not accepted this version, and an older one is left to try.
    var hasOlderVersion = false
    /// The application provides credentials for each attempt.
    var hasCredentialsProvider = false
    /// Whether a server has assigned the client identifier, so that it can assign another.
    var hasAssignedIdentifier = false
    /// A server has accepted the client, and `notAuthorized` may mean a limit that passes: before 5.0 there is no other code
    /// for it.
    var mayBeAtLimit = false

    func verdict(on failure: MQTTError) -> ReconnectVerdict {
        if failure.code == .storeFailed { return .giveUp }
        if hasNewServer { return .retryNow }
        if hasOlderVersion, mayMeanOtherVersion(failure) { return .retryNow }
        switch failure.code {
        case .badCredentials where mayBeAtLimit && failure.reasonCode == .notAuthorized:
            return hasCredentialsProvider ? .askForCredentialsOrWait : .wait
        case .badCredentials:
            let concernsCredentials =
                failure.reasonCode == .badUserNameOrPassword || failure.reasonCode == .notAuthorized
            return failure.verdict(hasCredentialsProvider: hasCredentialsProvider && concernsCredentials)
        case .takenOver, .sessionBlocked:
            return .giveUp
        case .refused where hasAssignedIdentifier && failure.reasonCode == .clientIdentifierNotValid:
            return .retryNow
        case .refused:
            let isFinal = failure.reasonCode == .clientIdentifierNotValid || failure.reasonCode == .banned
            return isFinal ? .giveUp : .wait
        default:
            return failure.verdict(hasCredentialsProvider: hasCredentialsProvider)
        }
    }

    /// Old servers reject an unknown version in different ways: some close the connection, some send a reply that MQTT 5.0
    /// forbids.
    private func mayMeanOtherVersion(_ failure: MQTTError) -> Bool {
        switch failure.code {
        case .unsupportedVersion, .protocolError: true
        case .connectionLost: failure.reasonCode == nil
        default: false
        }
    }
}
