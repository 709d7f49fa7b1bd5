package import MessagingShell

/// What the two programs exit with: the values of `sysexits.h`, one per kind of failure.
package enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    case usage = 64
    case dataError = 65
    case noInput = 66
    case unknownHost = 68
    case unavailable = 69
    case software = 70
    case outputError = 74
    case lost = 75
    case protocolError = 76
    case noPermission = 77
    case configuration = 78

    /// The sentence that `--help` prints beside the number.
    package var meaning: String {
        switch self {
        case .success: "end of the recording, or stopped by Ctrl-C or SIGTERM"
        case .usage: "unknown, repeated or malformed option"
        case .dataError: "malformed recording or file; the line says where"
        case .noInput: "a file does not exist or cannot be read"
        case .unknownHost: "the broker's host name cannot be resolved"
        case .unavailable: "the broker refuses connections or cannot be reached"
        case .software: "a fault of this program"
        case .outputError: "standard output cannot be written"
        case .lost: "the connection was lost or timed out, and no further attempt is made"
        case .protocolError: "the broker broke the protocol or does not speak it"
        case .noPermission: "the broker refuses the credentials, the client certificate or the subscription"
        case .configuration: "TLS cannot be set up, or the broker's certificate is not trusted"
        }
    }
}

/// A reason to end: one line for standard error and the status to exit with.
package struct DeviceFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package var status: ExitStatus
    package var message: String

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    package var description: String { message }

    static func usage(_ message: String) -> DeviceFailure { DeviceFailure(.usage, message) }
}

extension DeviceFailure {
    /// What to end with because of a client's error.
    package init(_ failure: some ClientError) {
        if failure.code != .connectionLost, failure.code != .noCredentials,
            let error = failure.underlying as? TransportError
        {
            self.init(connecting: error)
            return
        }
        let status: ExitStatus =
            switch failure.code {
            case .connectFailed, .refused: .unavailable
            case .badCredentials: .noPermission
            case .unsupportedVersion, .protocolError: .protocolError
            case .invalidRequest: .usage
            case .connectionLost, .notConnected, .disconnected, .timedOut: .lost
            default:
                // Those that only one protocol has.
                switch "\(failure.code)" {
                case "notAllowed", "unsupportedByBroker": .unavailable
                case "stale", "takenOver": .lost
                default: .software
                }
            }
        self.init(status, Self.withoutAdviceToProgrammers(failure.message))
    }

    /// A subscription that failed, now or after a reconnect.
    package init(subscribing failure: some ClientError) {
        self.init(failure)
        if failure.code == .refused { status = .noPermission }
    }

    /// A connection that could not be opened.
    package init(connecting error: TransportError) {
        let status: ExitStatus =
            switch error.code {
            case .unknownHost: .unknownHost
            case .badURL: .usage
            case .closedByPeer, .connectionLost, .timedOut, .tlsTruncated, .webSocketClosed: .lost
            case .notTLS, .tlsFailed, .webSocketFailed: .protocolError
            case .clientCertificateRefused, .preSharedKeyRefused: .noPermission
            case .unsupported, .tlsUnavailable, .tlsConfiguration, .tlsVersion, .certificateExpired,
                .certificateNotYetValid, .certificateUntrusted, .certificateSelfSigned, .certificateNameMismatch,
                .certificateInvalid, .certificatePinMismatch, .certificateRefused, .certificateRevoked,
                .certificateStatusUnknown:
                .configuration
            default: .unavailable
            }
        let advice =
            switch error.code {
            case .certificateUntrusted, .certificateSelfSigned: " Trust it with --ca FILE, if you know it."
            case .clientCertificateRefused: " Give one with --cert FILE and --key FILE."
            case .certificateNameMismatch: " Use the host name that the certificate has."
            default: ""
            }
        self.init(status, Self.withoutAdviceToProgrammers(error.message) + advice)
    }

    /// A client's message without the sentences that name the library's calls and options, which are for programmers.
    package static func withoutAdviceToProgrammers(_ message: String) -> String {
        let marks = [
            "()", "ReconnectPolicy", "TLS options", "WebSocket options", "version to", "authentication",
        ]
        // An option of the library is a word such as requestTimeout.
        let message = message.replacing(/\ within [a-z]+[A-Z]\w*/, with: " in time")
            .replacing(/, for longer than [a-z]+[A-Z]\w*/, with: "")
            .replacing(/[,;] or raise [a-z]+[A-Z]\w*[^.;]*/, with: "")
        let option = /\ [a-z]+[A-Z]\w*/
        var (sentences, rest) = ([Substring](), message[...])
        while !rest.isEmpty {
            let end = [". ", "? "].compactMap { rest.firstRange(of: $0)?.upperBound }.min() ?? rest.endIndex
            sentences.append(rest[..<end])
            rest = rest[end...]
        }
        let wanted = sentences.enumerated().filter { index, sentence in
            index == 0 || !marks.contains(where: sentence.contains) && !sentence.contains(option)
        }
        var text = wanted.map { String($0.element) }.joined()
        while text.hasSuffix(" ") { text.removeLast() }
        return text
    }
}
