public import MessagingWire

/// Why a connection could not be opened or used: a code, a sentence that says what happened and what to do, and the
/// system's error number if there is one.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it is. More codes may come, so give a `switch` over it a `default`.
    public typealias Code = ErrorCode<TransportError>

    /// What kind of failure it is.
    public let code: Code
    /// What happened, then what to do, in English.
    public let message: String
    /// The `errno` of the system call that failed, or 0.
    public let errno: Int32
    /// Whether the server may accept other credentials: it refused a WebSocket handshake with 401 or 403.
    package private(set) var concernsCredentials = false

    /// Makes an error.
    public init(_ code: Code, _ message: String, errno: Int32 = 0) {
        self.code = code
        self.message = message
        self.errno = errno
    }

    package init(_ code: Code, _ message: String, concernsCredentials: Bool) {
        self.init(code, message)
        self.concernsCredentials = concernsCredentials
    }

    /// The same error with another sentence behind its message.
    package func adding(_ sentence: String) -> TransportError {
        var error = TransportError(code, "\(message) \(sentence)", errno: errno)
        error.concernsCredentials = concernsCredentials
        return error
    }

    /// The message on one line: a peer's text in it cannot forge further lines of a log.
    public var description: String { OneLine.escaped(message) }
}

/// An error whose code may be the kind of a failure of the network, of TLS, of a proxy or of a WebSocket.
public protocol TransportErrorCodes {}

extension TransportError: TransportErrorCodes {}

extension ErrorCode where Failure: TransportErrorCodes {
    /// The name did not resolve to an address.
    public static var unknownHost: Self { Self("unknownHost") }
    /// No program listens at the address.
    public static var connectionRefused: Self { Self("connectionRefused") }
    /// No route, or the network is down.
    public static var unreachable: Self { Self("unreachable") }
    /// The person has not allowed this app to use devices on the local network. Apple's systems only.
    public static var localNetworkDenied: Self { Self("localNetworkDenied") }
    /// No answer arrived in time.
    public static var timedOut: Self { Self("timedOut") }
    /// The waiting task was cancelled. What was sent is not taken back.
    public static var cancelled: Self { Self("cancelled") }
    /// The peer ended the connection.
    public static var closedByPeer: Self { Self("closedByPeer") }
    /// The connection broke or the peer ended it; a client opens it again.
    public static var connectionLost: Self { Self("connectionLost") }
    /// The address is already taken, or may not be listened on.
    public static var cannotListen: Self { Self("cannotListen") }
    /// A limit of the operating system was reached.
    public static var systemLimit: Self { Self("systemLimit") }
    /// The URL cannot be used.
    public static var badURL: Self { Self("badURL") }
    /// The request is not supported on this system.
    public static var unsupported: Self { Self("unsupported") }

    // TLS

    /// Neither OpenSSL 3 nor 4 is on this machine; the message says what to install.
    public static var tlsUnavailable: Self { Self("tlsUnavailable") }
    /// The TLS options cannot be used: an unreadable file, a key that does not belong to its certificate.
    public static var tlsConfiguration: Self { Self("tlsConfiguration") }
    /// The TLS handshake or the encrypted stream failed for a reason that has no code of its own.
    public static var tlsFailed: Self { Self("tlsFailed") }
    /// The server does not speak TLS at this port.
    public static var notTLS: Self { Self("notTLS") }
    /// There is no version of TLS that both sides allow; this one allows 1.2 and 1.3.
    public static var tlsVersion: Self { Self("tlsVersion") }
    /// The stream ended without the close_notify alert of TLS, so that it may have been cut.
    public static var tlsTruncated: Self { Self("tlsTruncated") }
    /// The server's certificate, or one above it, is past its last day.
    public static var certificateExpired: Self { Self("certificateExpired") }
    /// The server's certificate, or one above it, is before its first day.
    public static var certificateNotYetValid: Self { Self("certificateNotYetValid") }
    /// No trusted authority has signed the server's certificate.
    public static var certificateUntrusted: Self { Self("certificateUntrusted") }
    /// The server's certificate is signed by itself and not trusted.
    public static var certificateSelfSigned: Self { Self("certificateSelfSigned") }
    /// The server's certificate is for other names.
    public static var certificateNameMismatch: Self { Self("certificateNameMismatch") }
    /// The server's certificate is invalid for another reason.
    public static var certificateInvalid: Self { Self("certificateInvalid") }
    /// No public key in the server's certificates is one of those that the TLS options pin.
    public static var certificatePinMismatch: Self { Self("certificatePinMismatch") }
    /// The additional check of the TLS options refused the server's certificates.
    public static var certificateRefused: Self { Self("certificateRefused") }
    /// The server's certificate was revoked by its authority.
    public static var certificateRevoked: Self { Self("certificateRevoked") }
    /// The server has not shown that its certificate was not revoked, which the TLS options demand.
    public static var certificateStatusUnknown: Self { Self("certificateStatusUnknown") }
    /// The server does not know the pre-shared key, knows another one for the identity, or does not use such keys.
    public static var preSharedKeyRefused: Self { Self("preSharedKeyRefused") }
    /// The server requires a client certificate, and the identity is missing or was rejected.
    public static var clientCertificateRefused: Self { Self("clientCertificateRefused") }
}

extension TransportError {
    /// Whether another attempt to connect is pointless until the URL is changed or something is installed.
    package var isPermanent: Bool { code == .unsupported || code.isConfigurationMistake }
}

extension TransportError.Code {
    /// Whether the options or the machine have to change before another attempt makes sense.
    package var isConfigurationMistake: Bool {
        self == .badURL || self == .tlsUnavailable || self == .tlsConfiguration || self == .proxyCredentialsRefused
            || self == .certificatePinMismatch || self == .preSharedKeyRefused
    }

    /// Whether other trusted authorities, or a new state of them, may make the server's certificate acceptable.
    var isOfAuthorities: Bool {
        self == .certificateUntrusted || self == .certificateSelfSigned || self == .certificateExpired
            || self == .certificateNotYetValid || self == .certificateInvalid
    }

    /// Whether TLS may be the reason why a connection could not be opened. A peer may end it instead of sending an alert.
    var mayBeOfTLS: Bool {
        isOfAuthorities || self == .closedByPeer || self == .connectionLost || self == .tlsFailed || self == .notTLS
            || self == .tlsVersion || self == .tlsTruncated || self == .certificateNameMismatch
            || self == .certificatePinMismatch || self == .certificateRefused || self == .certificateRevoked
            || self == .certificateStatusUnknown || self == .preSharedKeyRefused || self == .clientCertificateRefused
    }
}

extension ErrorCode where Failure: TransportErrorCodes {
    /// The proxy did not open the connection; the message holds its status or reply.
    public static var proxyRefused: Self { Self("proxyRefused") }
    /// The proxy requires a user name and a password, rejected those of its URL, or wants a scheme other than Basic.
    public static var proxyCredentialsRefused: Self { Self("proxyCredentialsRefused") }
    /// The proxy's reply is not valid in its protocol.
    public static var proxyFailed: Self { Self("proxyFailed") }
    /// The proxy ended the connection before it had opened the one to the server.
    public static var proxyClosed: Self { Self("proxyClosed") }
}

extension ErrorCode where Failure: TransportErrorCodes {
    /// The server answered the WebSocket handshake with another status than 101; the message holds it.
    public static var webSocketRefused: Self { Self("webSocketRefused") }
    /// The peer violated the WebSocket protocol, or does not speak it.
    public static var webSocketFailed: Self { Self("webSocketFailed") }
    /// The server closed the WebSocket with a code and, perhaps, a reason.
    public static var webSocketClosed: Self { Self("webSocketClosed") }
}

extension TransportError {
    /// Whether another socket has the address; another port may be free.
    package var isAddressInUse: Bool { errno == EADDRINUSE }
}

extension TransportError {
    /// The process or the system has no descriptor or no memory left; `code` is the system's reason.
    static func shortage(_ failure: String, _ code: Int32) -> TransportError {
        let advice =
            switch code {
            case EMFILE: "Raise the limit (ulimit -n)."
            case ENFILE: "Raise the system's limit of open files (fs.file-max on Linux)."
            default: "Free some memory and try again."
            }
        return TransportError(.systemLimit, "\(failure): \(System.describe(code)). \(advice)", errno: code)
    }

    /// There is no way to `peer`; `code` is the system's reason.
    static func unreachable(_ peer: String, _ code: Int32) -> TransportError {
        var advice = ""
        #if canImport(Network)
            if code == EHOSTUNREACH {
                advice =
                    " If it is on the local network, the app may lack the permission to use that: see "
                    + "NSLocalNetworkUsageDescription, and the settings under Privacy & Security, Local Network."
            }
        #endif
        if code == EPERM { advice = sandboxAdvice }
        return TransportError(
            .unreachable, "\(peer) cannot be reached: \(System.describe(code)).\(advice)", errno: code)
    }

    /// Another possible reason: the App Sandbox may deny an app its connections and look-ups without a distinct error.
    /// Empty where there is no sandbox. Over fakes of Apple's frameworks as on a Mac.
    static var sandboxAdvice: String {
        #if os(macOS) || targetEnvironment(macCatalyst) || (os(Linux) && canImport(Network))
            " If the app is sandboxed, it needs Outgoing Connections (Client)."
        #else
            ""
        #endif
    }

    /// The connection to `peer` broke; `code` is the system's reason, or 0.
    static func lost(_ peer: String, _ code: Int32) -> TransportError {
        let reason = code == 0 ? "it accepts no more bytes" : System.describe(code)
        return TransportError(.connectionLost, "The connection to \(peer) broke: \(reason).", errno: code)
    }
}
