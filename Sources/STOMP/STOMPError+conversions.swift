import STOMPCore
import Transport

extension STOMPError {
    /// A refusal by the engine, before anything was written.
    init(_ misuse: STOMPUsageError) {
        let code: Code =
            switch misuse.code {
            case .notConnected: .notConnected
            case .disconnecting: .disconnected
            case .tooManyReceipts: .queueFull
            case .transactionEnded, .staleMessage: .stale
            default: .invalidRequest
            }
        // The engine does not know how its caller connects.
        let hint =
            misuse.code == .notConnected
            ? " Call connect() and wait until it is connected." : ""
        self.init(code, misuse.message + hint, underlying: misuse)
    }

    /// Nobody tries to be connected: the client was not started or was disconnected, or it gave up because of `failure`.
    static func notSupervised(after failure: STOMPError?) -> STOMPError {
        guard let failure else {
            return STOMPError(
                .notConnected, "The client is not connected. Call connect() and wait until it is connected.")
        }
        let reason = failure.message.hasSuffix(".") ? String(failure.message.dropLast()) : failure.message
        return STOMPError(
            .notConnected, "The client has stopped connecting: \(reason). Solve that and call connect() again.",
            serverError: failure.serverError, underlying: failure)
    }

    /// The end of a connection that nobody asked to end.
    init(_ failure: STOMPConnectionFailure) {
        let code: Code =
            switch failure.reason {
            case .refused, .error: .refused
            case .credentialsRefused: .badCredentials
            case .versionMismatch: .unsupportedVersion
            case .violation: .protocolError
            case .connectTimeout: .timedOut
            case .heartBeatLost, .closedBeforeConnected, .closed: .connectionLost
            }
        self.init(code, failure.message, serverError: failure.error, underlying: failure)
    }

    /// Whether all that the engine saw is that the connection was gone.
    var endedWithoutReason: Bool {
        let reason = (underlying as? STOMPConnectionFailure)?.reason
        return reason == .closedBeforeConnected || reason == .closed
    }

    /// Whether the server went without having answered CONNECT.
    var endedBeforeConnected: Bool {
        (underlying as? STOMPConnectionFailure)?.reason == .closedBeforeConnected
    }

    /// The same with what the reason may be, if the server just went.
    func hinting(_ hint: String) -> STOMPError {
        guard code == .connectionLost, !hint.isEmpty else { return self }
        let words = message.hasSuffix(".") ? String(message.dropLast()) : message
        return STOMPError(code, words + hint, serverError: serverError, underlying: underlying)
    }

    init(connecting error: TransportError) {
        self.init(.connectFailed, error.message, underlying: error)
    }

    init(lost error: TransportError?) {
        if let error {
            // TLS 1.3 tells it only after its handshake.
            let isRefusal = error.code == .clientCertificateRefused
            self.init(isRefusal ? .connectFailed : .connectionLost, error.message, underlying: error)
        } else {
            self.init(.connectionLost, "the server ended the connection")
        }
    }

    /// The end of a wait for a receipt, other than the receipt itself.
    init(_ outcome: STOMPReceiptCompletion.Outcome, _ error: STOMPServerError?) {
        switch outcome {
        case .refused, .presumablyRefused:
            self.init(
                .refused, "the server refused the frame: \(error?.description ?? "no reason given")", serverError: error
            )
        case .sessionEnded:
            self.init(
                .connectionLost,
                "the server ended the session with an error before it confirmed the frame; whether it was processed is unknown",
                serverError: error)
        case .timedOut:
            self.init(.timedOut, "the server did not confirm the frame in time; whether it was processed is unknown")
        case .received, .connectionLost, .disconnected:
            self.init(
                .connectionLost,
                "the connection ended before the server confirmed the frame; whether it was processed is unknown")
        }
    }

    static let cancelledWait = STOMPError(.cancelled, "the waiting task was cancelled; what was sent stays sent")
    static let disconnectedByUser = STOMPError(
        .disconnected, "the client is disconnected; call connect() to use it again")
}
