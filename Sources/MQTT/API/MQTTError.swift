public import MQTTCore
import Transport

/// Everything that can go wrong for a user of ``MQTTClient``: what happened, and what to do about it.
public struct MQTTError: Error, Sendable, CustomStringConvertible {
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
        /// The server refused the user name or password.
        public static let badCredentials = Code("badCredentials")
        /// The closure for credentials threw; `underlying` says what. It is asked again with the next attempt.
        public static let noCredentials = Code("noCredentials")
        /// The server refused the connection, a subscription or a message; see ``MQTTError/reasonCode``.
        public static let refused = Code("refused")
        /// The server does not speak the version of MQTT that was asked for.
        public static let unsupportedVersion = Code("unsupportedVersion")
        /// Another client connected with the same client identifier.
        public static let takenOver = Code("takenOver")
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
        /// The server's limits do not allow it; nothing was sent.
        public static let notAllowed = Code("notAllowed")
        /// A queue is full.
        public static let queueFull = Code("queueFull")
        /// The server forgot the session, and with it the fate of this message.
        public static let sessionLost = Code("sessionLost")
        /// The server resumes the session with a packet that breaks the protocol, each time that the client connects.
        public static let sessionBlocked = Code("sessionBlocked")
        /// The session store cannot be read or written; `underlying` says why.
        public static let storeFailed = Code("storeFailed")
        /// The message expired before it could be sent.
        public static let expired = Code("expired")
    }

    public let code: Code
    public let message: String
    /// The server's reason code, where it gave one.
    public let reasonCode: MQTTReasonCode?
    /// What the server added to its reason code: Reason String, user properties; 5.0 only.
    public let properties: MQTTProperties
    /// The error below, where there is one.
    public let underlying: (any Error)?

    public init(
        _ code: Code, _ message: String, reasonCode: MQTTReasonCode? = nil, properties: MQTTProperties = [],
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.reasonCode = reasonCode
        self.properties = properties
        self.underlying = underlying
    }

    public var description: String { message }
}
