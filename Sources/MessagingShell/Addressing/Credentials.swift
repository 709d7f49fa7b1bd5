import MessagingWire
package import Transport

/// What a client shows to a server to be let in: user name and password, a signed URL, tokens in its query or in header
/// fields. Descriptions hide all of it.
///
///     var credentials = Credentials()
///     credentials.webSocketHeaders["Authorization"] = "Bearer \(token)"
public struct Credentials: Sendable, Hashable {
    /// The user name, or the login of STOMP. Default: nil, which sends none.
    public var userName: String?
    /// The password, or the passcode of STOMP. Default: nil, which sends none.
    public var password: String?
    /// The URL to connect to instead of the one that the client was made with, for URLs that are signed. A user name and
    /// password in it are used if this value has none. Default: nil, the client's URL.
    public var url: String?
    /// The query of the WebSocket URL, percent-encoded and without the question mark, in place of the one that is there.
    /// Default: nil, the URL's query.
    public var query: String?
    /// Header fields of the WebSocket handshake, in place of those with the same names in `WebSocketOptions`, and in
    /// addition to the others. Default: none.
    public var webSocketHeaders: [String: String] = [:]

    /// Makes credentials.
    public init(userName: String? = nil, password: String? = nil) {
        self.userName = userName
        self.password = password
    }

    /// Whether all of it is equal, by the bytes that are sent.
    public static func == (one: Self, other: Self) -> Bool {
        one.userName.hasSameBytes(as: other.userName) && one.password.hasSameBytes(as: other.password)
            && one.url.hasSameBytes(as: other.url) && one.query.hasSameBytes(as: other.query)
            && one.webSocketHeaders.count == other.webSocketHeaders.count
            && one.webSocketHeaders.allSatisfy { name, value in
                guard let found = other.webSocketHeaders.index(forKey: name) else { return false }
                let field = other.webSocketHeaders[found]
                return field.key.hasSameBytes(as: name) && field.value.hasSameBytes(as: value)
            }
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Credentials(•••)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// What a closure that provides credentials is called with.
///
/// The closure is called before each attempt to connect. When a server refuses the credentials, it is called once more at
/// once, with ``wereRefused`` set, so that it can fetch new ones in place of those that it has cached. If these are refused
/// too, the client stops connecting. A WebSocket handshake that is refused with 401 or 403 counts as well; but since gateways
/// also refuse for other reasons, the client then continues as ``ReconnectPolicy`` demands, with ``wereRefused`` set.
public struct CredentialsRequest: Sendable {
    /// The number of the attempt, from 1 since the last success; a round through all servers counts as one.
    public let attempt: Int
    /// The server that the credentials are for.
    public let server: BrokerURL
    /// Whether the server has refused the last ones that it was given. Attempts that did not reach it change nothing about that.
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

    /// Whether another call may return other credentials.
    package var isFresh: Bool { provider != nil }

    /// The credentials for an attempt; a provider has to return them before the attempt's deadline.
    package func credentials(
        for attempt: ConnectionAttempt, at server: BrokerURL, on loop: EventLoop
    ) async throws -> Credentials? {
        guard let provider else { return fixed ?? server.credentials }
        let request = CredentialsRequest(
            attempt: attempt.number, server: server, wereRefused: attempt.credentialsWereRefused)
        let late = TransportError(
            .timedOut,
            "The credentialsProvider did not return within connectTimeout. Let it return sooner, or raise connectTimeout."
        )
        return try await TimedCall.run(until: attempt.deadline, on: loop, late: late) { try await provider(request) }
    }
}
