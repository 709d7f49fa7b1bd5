import MessagingShell
import MessagingWire
import STOMPCore
import Transport

/// The errors of a user of the client, made from those of the engine and of the broker; on any thread. The core decides, and
/// names the case.
///
/// Each is a sentence about what happened and one about what to do.
extension STOMPError {
    /// A refusal by the engine, before anything was written.
    init(_ misuse: STOMPUsageError) {
        let code: Code =
            switch misuse.code {
            case .notConnected: .notConnected
            case .disconnecting: .disconnected
            case .tooManyReceipts: .queueFull
            case .unsupportedByBroker: .unsupportedByBroker
            case .transactionEnded, .staleMessage: .stale
            default: .invalidRequest
            }
        // The engine does not know how its caller connects.
        let hint = misuse.code == .notConnected ? " Call connect() and wait until it is connected." : ""
        self.init(code, misuse.message + hint, underlying: misuse)
    }

    /// The end of a connection that was not requested by the user.
    init(_ failure: STOMPConnectionFailure) {
        let code: Code =
            switch failure.reason {
            case .refused, .error: .refused
            case .credentialsRefused: .badCredentials
            case .versionMismatch: .unsupportedVersion
            case .violation: .protocolError
            case .connectTimeout: .timedOut
            case .heartBeatLost, .acknowledgementTimeout, .closedBeforeConnected, .closed: .connectionLost
            }
        self.init(code, failure.message, serverError: failure.error, underlying: failure)
    }

    /// Whether the connection just ended, without a reason that the engine could know.
    var endedWithoutReason: Bool {
        let reason = (underlying as? STOMPConnectionFailure)?.reason
        return reason == .closedBeforeConnected || reason == .closed
    }

    /// Whether the server was silent or broke the protocol.
    var isSilenceOrViolation: Bool {
        switch (underlying as? STOMPConnectionFailure)?.reason {
        case .heartBeatLost, .acknowledgementTimeout, .violation: true
        default: false
        }
    }

    /// Whether the server closed the connection without an answer to CONNECT.
    var endedBeforeConnected: Bool {
        (underlying as? STOMPConnectionFailure)?.reason == .closedBeforeConnected
    }

    /// The same error with the likely reason, for a server that closed the connection without one.
    func hinting(_ hint: String) -> STOMPError {
        guard code == .connectionLost, !hint.isEmpty else { return self }
        return STOMPError(
            code, Self.withoutFullStop(message) + "." + hint, serverError: serverError, underlying: underlying)
    }

    /// An ERROR without a receipt may be about another frame.
    private static func refusal(of name: String?, _ error: STOMPServerError?) -> String {
        let isSure = error.map { $0.receiptID != nil } ?? true
        let frame = isSure ? name ?? "the frame" : "a frame, probably \(name ?? "this one")"
        let reason = error.map { withoutFullStop($0.description) } ?? "no reason given"
        return
            "The server refused \(frame): \(reason). Before you send it again, check the frame, the server's limits and this user's permissions."
    }

    /// The same error with the name of the frame, if the server has refused it.
    func naming(_ frame: String) -> STOMPError {
        guard code == .refused, let serverError else { return self }
        return saying(Self.refusal(of: frame, serverError))
    }

    /// The end of a wait for a receipt, other than the receipt itself.
    ///
    /// - Parameters:
    ///   - pauseReason: why the client does not read what the server sends, if it does not.
    ///   - hint: what to do about a server that has never sent a receipt; empty for others.
    init(
        _ outcome: STOMPReceiptCompletion.Outcome, _ error: STOMPServerError?,
        unreadBecause pauseReason: String? = nil, hint: String = ""
    ) {
        let advice = "Whether it was processed is unknown: send it again if processing it twice does no harm."
        switch outcome {
        case .refused, .presumablyRefused:
            self.init(.refused, Self.refusal(of: nil, error), serverError: error)
        case .sessionEnded:
            self.init(
                .connectionLost,
                "The server ended the session with an error before it confirmed the frame. \(advice)",
                serverError: error)
        case .timedOut:
            let reason =
                pauseReason.map { "The client read no confirmation of the frame within requestTimeout, \($0)" }
                ?? "The server did not confirm the frame within requestTimeout.\(hint)"
            self.init(.timedOut, "\(reason) \(advice)")
        case .aborted:
            self.init(
                .stale,
                "The frame had no effect, because its transaction was aborted. Send it again in another transaction, or outside of one."
            )
        case .received, .connectionLost, .disconnected:
            self.init(
                .connectionLost, "The connection ended before the server confirmed the frame. \(advice)")
        }
    }
}

extension STOMPError {
    static func outboxStandsStill(_ subscription: String) -> STOMPError {
        STOMPError(
            .timedOut,
            "The server takes no bytes, perhaps since the client has read nothing for requestTimeout, \(STOMPMachine.isSlow(subscription)) The frame was not sent."
        )
    }
}

// MARK: - Connecting

extension STOMPError {
    /// CONNECT has no answer, and the time to connect was short because another address was waiting to be tried.
    static func hurriedConnectIsUnanswered(_ failure: STOMPConnectionFailure) -> STOMPError {
        STOMPError(.timedOut, "The server did not answer CONNECT " + StreamOpener.hurry, underlying: failure)
    }

    static func binaryConnectIsUnanswered(_ failure: STOMPConnectionFailure) -> STOMPError {
        STOMPError(
            .timedOut,
            "\(failure.message) Some servers, such as ActiveMQ Classic, ignore binary messages of a WebSocket: leave webSocket.sendsText true.",
            underlying: failure)
    }

    static var leftForOtherServer: STOMPError {
        STOMPError(
            .connectionLost,
            "The client left its server for another one before the answer came. Try again when it is connected.")
    }

    static func hint(atUnansweredSubscribeTo destination: String, connections count: Int) -> String {
        " The last \(count) connections ended before SUBSCRIBE to '\(destination)' was answered: check that destination, and whether this user may read it."
    }
}

// MARK: - Sending

extension STOMPError {
    /// The rest of an array, whose connection ended.
    static let endedBeforeSending = STOMPError(
        .notConnected,
        "The connection ended before this message of an array was sent. Send it again when the client is connected.")
}

// MARK: - Subscribing

extension STOMPError {
    /// A declared subscription, or one that has worked before, was not confirmed on a new connection.
    ///
    /// - Parameter hint: what to do about a server that has never sent a receipt; empty for others.
    static func resubscriptionLate(_ destination: String, _ hint: String) -> STOMPError {
        let advice =
            hint.isEmpty
            ? " The next connection subscribes again; raise requestTimeout if the server needs longer." : hint
        // The server is at fault as with any other RECEIPT that does not come, so that another one is tried.
        return STOMPError(
            STOMPConnectionFailure(
                .acknowledgementTimeout,
                "The server did not confirm the subscription to '\(destination)' within requestTimeout.\(advice)"))
    }

    /// The same error with the name of the frame, if the server has refused it.
    func namingSubscribe(to destination: String) -> STOMPError { naming("SUBSCRIBE to '\(destination)'") }

    /// The same error with the name of the frame, if the server has refused it.
    func namingUnsubscribe(from destination: String) -> STOMPError { naming("UNSUBSCRIBE from '\(destination)'") }

    static func connectionsEndBeforeReceipt(ofSubscribeTo destination: String) -> STOMPError {
        STOMPError(
            .timedOut,
            "Connections end before the server confirms SUBSCRIBE to '\(destination)', for longer than requestTimeout. Check the destination, what this user may read, and the server's log."
        )
    }

    // MARK: Durable subscriptions that have ended here

    static func durableRemains(_ destination: String, isConnected: Bool) -> STOMPError {
        let reason =
            isConnected ? "its sequence had ended before UNSUBSCRIBE was sent" : "there is no connection"
        return STOMPError(
            isConnected ? .invalidRequest : .notConnected,
            "\(durable(destination)) remains at the broker, because \(reason). \(adviceOnDurable)")
    }

    static func durableIsUndeletable(_ destination: String) -> STOMPError {
        STOMPError(
            .unsupportedByBroker,
            "\(durable(destination)) has ended here, but remains at the broker, which cannot delete subscriptions to that destination and continues to store its messages. Delete its queue with the broker's own tools."
        )
    }

    /// - Parameter cause: why the broker's answer is missing, when that has just become known.
    static func durableMayRemain(_ destination: String, _ cause: STOMPError?) -> STOMPError {
        STOMPError(
            cause?.code ?? .connectionLost,
            "\(durable(destination)) may remain at the broker, which has not confirmed UNSUBSCRIBE. \(adviceOnDurable)",
            serverError: cause?.serverError, underlying: cause)
    }

    private static func durable(_ destination: String) -> String { "The durable subscription to '\(destination)'" }

    private static let adviceOnDurable =
        "To delete it, call unsubscribe(from:durableName:headers:) of the client while that is connected."
}
