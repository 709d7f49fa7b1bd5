package import Messaging

/// What the devices need from a client, whichever protocol it speaks.
package protocol DeviceClient: Sendable {
    associatedtype Failure: Error, Sendable
    associatedtype Frame: DeviceFrame

    /// The server that is connected, or was tried last.
    var server: BrokerURL? { get }
    var states: Updates<ConnectionState<Failure>> { get }
    /// Connections so far, the present one included.
    var connectionCount: Int { get }
    func connect() async throws(Failure)
    func disconnect() async
    func inspect(showingSecrets: Bool) -> Updates<Frame>
    func inspect(into log: FrameLog, as name: String?)
    /// Publishes what a visitor of the inspector typed; returns when the broker has confirmed it.
    func publishForVisitor(_ payload: [UInt8], to topic: String) async throws

    /// The line and the status to end with because of a connection that failed.
    static func final(_ failure: Failure) -> DeviceFailure
    /// How the failure concerns the connection, as far as that matters to a device.
    static func kind(_ failure: Failure) -> ConnectionFailureKind
}

/// A frame or packet to be shown with `--frames`; its description is one line.
package protocol DeviceFrame: Sendable, CustomStringConvertible {
    var direction: FrameDirection { get }
}

/// Failures that a device treats in a way of its own.
package enum ConnectionFailureKind: Sendable, Equatable {
    /// The connection is gone or not there; the client is opening another.
    case lost
    /// The peer does not speak the protocol: before the first success there is no use in trying again.
    case protocolError
    case other
}

extension DeviceFailure {
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
