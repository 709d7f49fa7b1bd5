import Messaging
import STOMPCore
import Synchronization
import Transport

/// How a client gets accepted by a server: credentials, what the broker is known to do, and whether another attempt is
/// worthwhile.
///
/// On the loop's thread, but for ``openStream(_:)``, which runs in the task of one attempt.
final class STOMPNegotiation: ClientNegotiation, @unchecked Sendable {
    // Sendable because the `var`s are used on the loop's thread only, and the rest is constant or locked.

    unowned var core: STOMPClientCore!
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
        STOMPRetryOptions(hasCredentialsProvider: credentialsSource.isFresh).verdict(on: failure)
    }

    // MARK: In the task of an attempt

    func openStream(_ attempt: ConnectionAttempt) async throws(STOMPError) -> OpenedStream {
        let core = core!
        // Before anything else: an invalid configuration needs no server.
        try setConnectOptions(core.configuration.credentials, core)
        return try await core.open(attempt) { (credentials) async throws(STOMPError) in
            try setConnectOptions(credentials, core)
        }
    }

    /// Sets what the next CONNECT contains. Throws if a frame cannot contain it.
    private func setConnectOptions(_ credentials: Credentials?, _ core: STOMPClientCore) throws(STOMPError) {
        let options = core.configuration.connectOptions(credentials: credentials)
        try core.asking { machine throws(STOMPUsageError) in
            machine.engine.configuration.connect = options
            try machine.engine.configuration.checkConnect()
        }
    }
}

/// What the client could change about its next attempt, and what therefore follows a failure. A value without side effects;
/// any thread may use it.
struct STOMPRetryOptions {
    /// The application provides credentials for each attempt.
    var hasCredentialsProvider = false

    func verdict(on failure: STOMPError) -> ReconnectVerdict {
        switch failure.code {
        case .badCredentials: hasCredentialsProvider ? .askForCredentials : .giveUp
        case .unsupportedVersion, .invalidRequest: .giveUp
        case .noCredentials: .wait
        default: (failure.underlying as? TransportError)?.isPermanent == true ? .giveUp : .wait
        }
    }
}
