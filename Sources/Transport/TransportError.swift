/// Why bytes could not be moved: an open code, words for a person, and the system's own number where there is one.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it was. More codes may come; switch with a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let name: String
        public var description: String { name }

        /// The name did not resolve to an address.
        public static let unknownHost = Code(name: "unknownHost")
        /// Nobody listens at the address.
        public static let connectionRefused = Code(name: "connectionRefused")
        /// No route, or the network is down.
        public static let unreachable = Code(name: "unreachable")
        /// The peer did not answer in time.
        public static let timedOut = Code(name: "timedOut")
        /// The task that waited was cancelled.
        public static let cancelled = Code(name: "cancelled")
        /// The peer ended the connection.
        public static let closedByPeer = Code(name: "closedByPeer")
        /// The connection broke.
        public static let connectionLost = Code(name: "connectionLost")
        /// The address is already taken, or may not be listened on.
        public static let cannotListen = Code(name: "cannotListen")
        /// A limit of the operating system was reached.
        public static let systemLimit = Code(name: "systemLimit")
        /// The URL is not one that this library understands.
        public static let badURL = Code(name: "badURL")
        /// What was asked for is not available here.
        public static let unsupported = Code(name: "unsupported")
    }

    public let code: Code
    public let message: String
    /// The `errno` of the system call that failed, or 0.
    public let errno: Int32

    public init(_ code: Code, _ message: String, errno: Int32 = 0) {
        self.code = code
        self.message = message
        self.errno = errno
    }

    public var description: String { message }
}

extension TransportError.Code {
    /// OpenSSL 3 is not on this machine; the message says what to install.
    public static let tlsUnavailable = Self(name: "tlsUnavailable")
    /// The TLS options cannot be used: an unreadable file, a key that does not belong to its certificate.
    public static let tlsConfiguration = Self(name: "tlsConfiguration")
    /// The TLS handshake or the encrypted stream failed for a reason that has no code of its own.
    public static let tlsFailed = Self(name: "tlsFailed")
    /// The server does not speak TLS at this port.
    public static let notTLS = Self(name: "notTLS")
    /// There is no version of TLS that both sides allow; this one allows 1.2 and 1.3.
    public static let tlsVersion = Self(name: "tlsVersion")
    /// The stream ended without TLS's good-bye: somebody may have cut it.
    public static let tlsTruncated = Self(name: "tlsTruncated")
    /// The server's certificate, or one above it, is past its last day.
    public static let certificateExpired = Self(name: "certificateExpired")
    /// The server's certificate, or one above it, is before its first day.
    public static let certificateNotYetValid = Self(name: "certificateNotYetValid")
    /// No trusted authority has signed the server's certificate.
    public static let certificateUntrusted = Self(name: "certificateUntrusted")
    /// The server's certificate is signed by itself and not trusted.
    public static let certificateSelfSigned = Self(name: "certificateSelfSigned")
    /// The server's certificate is for other names.
    public static let certificateNameMismatch = Self(name: "certificateNameMismatch")
    /// The server's certificate is unfit for another reason.
    public static let certificateInvalid = Self(name: "certificateInvalid")
    /// The server wants a certificate of the client, and there is none or it did not like it.
    public static let clientCertificateRefused = Self(name: "clientCertificateRefused")
}

extension TransportError.Code {
    /// Whether the options or the machine have to change before another attempt makes sense.
    package var isConfigurationMistake: Bool {
        self == .badURL || self == .tlsUnavailable || self == .tlsConfiguration || self == .proxyCredentialsRefused
    }
}

extension TransportError.Code {
    /// The proxy did not open the connection; the message holds its status or reply.
    public static let proxyRefused = Self(name: "proxyRefused")
    /// The proxy wants a user name and a password, or others than it was given.
    public static let proxyCredentialsRefused = Self(name: "proxyCredentialsRefused")
    /// What the proxy says belongs to another protocol.
    public static let proxyFailed = Self(name: "proxyFailed")
    /// The proxy ended the connection before it had opened the one to the server.
    public static let proxyClosed = Self(name: "proxyClosed")
}

extension TransportError.Code {
    /// The server answered the WebSocket handshake with another status than 101; the message holds it.
    public static let webSocketRefused = Self(name: "webSocketRefused")
    /// The peer broke the WebSocket protocol, or does not speak it.
    public static let webSocketFailed = Self(name: "webSocketFailed")
    /// The server closed the WebSocket with a code and, perhaps, a reason.
    public static let webSocketClosed = Self(name: "webSocketClosed")
}

extension TransportError {
    /// Whether somebody else has the address: another port may serve.
    package var isAddressInUse: Bool { errno == EADDRINUSE }
}

extension TransportError {
    /// The connection to `peer` broke; `code` is the system's reason, or 0.
    static func lost(_ peer: String, _ code: Int32) -> TransportError {
        let reason = code == 0 ? "it takes no more bytes" : System.describe(code)
        return TransportError(.connectionLost, "the connection to \(peer) broke: \(reason)", errno: code)
    }
}
