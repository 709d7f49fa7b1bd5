package import Transport

/// What a closure that provides credentials is asked for.
///
/// The closure is asked before each attempt to connect. When a server refuses what it gave, it is asked once more at
/// once, with ``wereRefused`` set, so that it can drop what it has cached and fetch anew. If those are refused too, the
/// client gives up.
public struct CredentialsRequest: Sendable {
    /// The number of the attempt, from 1 since the last success; a round through all servers counts as one.
    public let attempt: Int
    /// The server that they are for.
    public let server: BrokerURL
    /// Whether the last ones were just refused.
    public let wereRefused: Bool
}

/// Where a client's credentials come from: a closure, else the configuration, else the URL of the server.
package struct CredentialsSource: Sendable {
    package typealias Provider = @Sendable (CredentialsRequest) async throws -> Credentials?

    private let fixed: Credentials?
    private let provider: Provider?

    package init(fixed: Credentials?, provider: Provider?) {
        self.fixed = fixed
        self.provider = provider
    }

    /// Whether asking again may bring others.
    package var isFresh: Bool { provider != nil }

    /// The credentials for an attempt, which a provider has to have at hand by the attempt's deadline.
    package func credentials(
        for attempt: ConnectionAttempt, at server: BrokerURL, on loop: EventLoop
    ) async throws -> Credentials? {
        guard let provider else { return fixed ?? server.credentials }
        let request = CredentialsRequest(
            attempt: attempt.number, server: server, wereRefused: attempt.credentialsWereRefused)
        let late = TransportError(
            .timedOut, "credentialsProvider did not return within connectTimeout; let it return sooner, or raise it")
        return try await TimedCall.run(until: attempt.deadline, on: loop, late: late) { try await provider(request) }
    }
}
