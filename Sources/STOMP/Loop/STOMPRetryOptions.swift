import Messaging
import Transport

/// What the client could change about its next attempt, and what therefore follows a failure. A value without side effects;
/// any thread may use it.
struct STOMPRetryOptions {
    /// The application provides credentials for each attempt.
    var hasCredentialsProvider = false

    func verdict(on failure: STOMPError) -> ReconnectVerdict {
        switch failure.code {
        case .badCredentials: hasCredentialsProvider ? .askForCredentials : .giveUp
        case .unsupportedVersion, .invalidRequest: .giveUp
        case .connectFailed: (failure.underlying as? TransportError)?.isPermanent == true ? .giveUp : .wait
        default: .wait
        }
    }
}
