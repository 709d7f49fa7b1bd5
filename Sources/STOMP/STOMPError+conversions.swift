import Messaging
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
        return STOMPError(code, message.withoutFullStop + "." + hint, serverError: serverError, underlying: underlying)
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
}
