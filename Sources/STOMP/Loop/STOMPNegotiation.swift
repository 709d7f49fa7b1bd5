import Messaging
import STOMPCore
import Synchronization
import Transport

/// How a client gets accepted by a server: credentials, what the broker is known to do, and whether another attempt is
/// worthwhile.
///
/// On the loop's thread. `STOMPNegotiation+opening.swift` opens streams.
final class STOMPNegotiation: ClientNegotiation, @unchecked Sendable {
    // Sendable because the `var` is used on the loop's thread only, and the rest is constant or locked.

    /// The broker that was connected last.
    private(set) var profile = STOMPBrokerProfile.generic
    /// Whether that broker expects the lifetime of a message rather than the time when it ends; from any thread.
    let expiresRelatively = Atomic(false)
    let credentialsSource: CredentialsSource

    init(_ configuration: STOMPConfiguration) {
        credentialsSource = CredentialsSource(
            fixed: configuration.credentials, provider: configuration.credentialsProvider)
    }

    /// CONNECTED arrived.
    func accepted(_ connected: STOMPConnected) {
        profile = connected.profile
        expiresRelatively.store(profile.expiry == .relative, ordering: .relaxed)
    }

    func verdict(on failure: STOMPError) -> ReconnectVerdict {
        let verdict = failure.verdict(hasCredentialsProvider: credentialsSource.isFresh)
        return verdict == .wait && failure.isSilenceOrViolation ? .leaveServer : verdict
    }
}
