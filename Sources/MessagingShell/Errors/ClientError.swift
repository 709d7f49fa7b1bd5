public import MessagingWire
public import Transport

#if canImport(FoundationEssentials)
    public import protocol FoundationEssentials.LocalizedError
#else
    public import protocol Foundation.LocalizedError
#endif

/// An error that describes itself to people: `localizedDescription` is its description.
public protocol DescribedError: LocalizedError, CustomStringConvertible {}

extension DescribedError {
    public var errorDescription: String? { description }
    // Foundation's defaults are not visible where there is no Foundation.
    public var failureReason: String? { nil }
    public var recoverySuggestion: String? { nil }
    public var helpAnchor: String? { nil }
}

// The modules below have no Foundation. `LocalizedError` is in FoundationEssentials, which the payload formats load anyway:
// nothing more is loaded when a program starts.
extension TransportError: DescribedError {}
extension CodedError: DescribedError {}

/// An error of a client. Its code may be one that all clients have in common.
public protocol ClientErrorCodes: TransportErrorCodes, DescribedError {
    /// What happened, then what to do, in English.
    var message: String { get }
}

extension ClientErrorCodes {
    /// The message on one line: a server's text in it cannot forge further lines of a log.
    public var description: String { OneLine.escaped(message) }
}

/// What the errors of all clients have in common: a code, a sentence, and the error below.
@usableFromInline
package protocol ClientError: Error, ClientErrorCodes {
    var code: ErrorCode<Self> { get }
    var underlying: (any Error)? { get }

    /// - Parameter answer: an error whose answer from the server the new one repeats.
    init(_ code: ErrorCode<Self>, _ message: String, answer: Self?, underlying: (any Error)?)
}

extension ClientError {
    /// The waiting task was cancelled.
    package static var cancelledWait: Self {
        Self(
            .cancelled, "The waiting task was cancelled. What was sent is not taken back.", answer: nil, underlying: nil
        )
    }

    /// Another iterator of the subscription asked for a message.
    package static var replacedWait: Self {
        Self(
            .cancelled,
            "Another iterator of this subscription asked for a message, and continues where this one stopped. If two tasks need every message, subscribe once for each.",
            answer: nil, underlying: nil)
    }

    /// The user disconnected the client.
    package static var disconnectedByUser: Self {
        Self(
            .disconnected, "The client is disconnected. Call connect() to use it again.", answer: nil, underlying: nil)
    }

    /// The client was released before the answer to something that was sent.
    package static var releasedBeforeAnswer: Self {
        Self(
            .disconnected,
            "The client was released before the answer came; what was sent may have arrived. Keep the client for as long as you wait.",
            answer: nil, underlying: nil)
    }

    /// The request cannot be sent as it is.
    package static func invalidRequest(_ message: String) -> Self {
        Self(.invalidRequest, message, answer: nil, underlying: nil)
    }

    /// Throws if a timeout is not positive: zero would end every wait at once. Nil stands for no timeout.
    ///
    /// - Parameter timeouts: the times by the names of their options.
    package static func check(timeouts: KeyValuePairs<String, Duration?>) throws(Self) {
        for case (let name, let time?) in timeouts where time <= .zero {
            throw .invalidRequest("\(name) is \(time). Set it to a positive time.")
        }
    }

    /// The client does not try to be connected: it was not started or was disconnected, or it stopped because of
    /// `failure`, whose code calls get whether they waited when the client stopped or came later.
    package static func notSupervised(after failure: Self?) -> Self {
        guard let failure else {
            return Self(
                .notConnected, "The client is not connected. Call connect() and wait until it is connected.",
                answer: nil, underlying: nil)
        }
        return Self(
            failure.code,
            "The client has stopped connecting: \(withoutFullStop(failure.message)). Fix the cause, then call connect() again.",
            answer: failure, underlying: failure)
    }

    /// An attempt to connect failed before the protocol began.
    package init(connecting error: TransportError) {
        self.init(ErrorCode(connecting: error.code), error.message, answer: nil, underlying: error)
    }

    /// The connection is gone.
    ///
    /// - Parameters:
    ///   - error: why; nil if the server just closed it.
    ///   - hint: the likely reason, for a server that closed it without one.
    package init(lost error: TransportError?, hint: String = "") {
        guard let error else {
            let message = "The server ended the connection."
            // Every client that disconnects comes here, and adding nothing would make another string.
            self.init(.connectionLost, hint.isEmpty ? message : message + hint, answer: nil, underlying: nil)
            return
        }
        // With TLS 1.3 a client learns of a refused certificate only after its handshake.
        let isRefusal = error.code == .clientCertificateRefused
        let hint = error.code == .connectionLost ? hint : ""
        let message = hint.isEmpty ? error.message : Self.withoutFullStop(error.message) + "." + hint
        self.init(isRefusal ? .clientCertificateRefused : .connectionLost, message, answer: nil, underlying: error)
    }

    /// The message, with a full stop or its question mark.
    package var sentence: String {
        message.utf8.last == UInt8(ascii: "?") ? message : Self.withoutFullStop(message) + "."
    }

    /// The same error with another message.
    package func saying(_ message: String) -> Self { Self(code, message, answer: self, underlying: underlying) }

    /// What follows a failure in any protocol.
    ///
    /// - Parameter hasCredentialsProvider: whether the application provides credentials for each attempt.
    package func verdict(hasCredentialsProvider: Bool) -> ReconnectVerdict {
        switch code {
        case .badCredentials: hasCredentialsProvider ? .askForCredentials : .giveUp
        case .unsupportedVersion: .giveUpServer
        case .invalidRequest: .giveUp
        case .noCredentials: .wait
        default: verdict(on: underlying as? TransportError, hasCredentialsProvider: hasCredentialsProvider)
        }
    }

    private func verdict(on error: TransportError?, hasCredentialsProvider: Bool) -> ReconnectVerdict {
        guard let error else { return .wait }
        if error.isPermanent { return .giveUp }
        return error.concernsCredentials && hasCredentialsProvider ? .askForCredentialsOrWait : .wait
    }

    /// Whether the next attempt may succeed without a change of the configuration: the network or the server was away. A
    /// server that restarts may end a connection instead of beginning TLS.
    package var isTemporary: Bool {
        let passing: [ErrorCode<Self>] = [
            .unknownHost, .connectionRefused, .unreachable, .timedOut, .closedByPeer, .connectionLost, .systemLimit,
            .noCredentials, .refused, .notTLS,
        ]
        return passing.contains(code)
    }

    /// A text that is to be continued as part of a sentence.
    package static func withoutFullStop(_ text: String) -> String {
        text.utf8.last == UInt8(ascii: ".") ? String(text.dropLast()) : text
    }

    /// The closure for credentials threw.
    package init(credentials error: any Error) {
        let reason = Self.withoutFullStop("\(error)")
        self.init(
            .noCredentials,
            "The credentialsProvider failed: \(reason). Check what it depends on; the next attempt calls it again.",
            answer: nil, underlying: error)
    }
}
