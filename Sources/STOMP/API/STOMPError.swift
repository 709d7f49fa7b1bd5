public import STOMPCore

/// Everything that can go wrong for a user of ``STOMPClient``: what happened, and what to do about it.
public struct STOMPError: Error, Sendable, CustomStringConvertible {
    /// What kind of failure it is. More codes may come; switch with a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let name: String
        public var description: String { name }
        init(_ name: String) { self.name = name }

        /// There is no connection at the moment.
        public static let notConnected = Code("notConnected")
        /// The connection could not be opened; `underlying` is a `TransportError`.
        public static let connectFailed = Code("connectFailed")
        /// The connection broke or was ended by the server; it may be opened again.
        public static let connectionLost = Code("connectionLost")
        /// The server refused login and passcode.
        public static let badCredentials = Code("badCredentials")
        /// The closure for credentials threw; `underlying` says what. It is asked again with the next attempt.
        public static let noCredentials = Code("noCredentials")
        /// The server answered with ERROR; see ``STOMPError/serverError``.
        public static let refused = Code("refused")
        /// The server speaks none of the versions that were offered.
        public static let unsupportedVersion = Code("unsupportedVersion")
        /// The peer broke the protocol, or does not speak it.
        public static let protocolError = Code("protocolError")
        /// No answer in time.
        public static let timedOut = Code("timedOut")
        /// The waiting task was cancelled. What was sent stays sent.
        public static let cancelled = Code("cancelled")
        /// The client was disconnected by its user.
        public static let disconnected = Code("disconnected")
        /// What was asked for cannot be sent; nothing was.
        public static let invalidRequest = Code("invalidRequest")
        /// The message or the transaction belongs to a connection that is gone.
        public static let stale = Code("stale")
        /// A queue is full.
        public static let queueFull = Code("queueFull")
        /// The broker, as far as it is known, cannot do this; nothing was sent.
        public static let unsupportedByBroker = Code("unsupportedByBroker")
    }

    public let code: Code
    public let message: String
    /// The ERROR frame, where there was one.
    public let serverError: STOMPServerError?
    /// The error below, where there is one.
    public let underlying: (any Error)?

    public init(
        _ code: Code, _ message: String, serverError: STOMPServerError? = nil, underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.serverError = serverError
        self.underlying = underlying
    }

    public var description: String { message }
}
