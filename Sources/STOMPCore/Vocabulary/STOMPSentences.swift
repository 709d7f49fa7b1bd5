// The sentences of an engine's errors: what happened, then what to do. The engine decides, and names the case. What the
// hot paths may throw is not inlined there.

import MessagingWire

// MARK: The peer breaks the protocol

extension STOMPProtocolError {
    static func versionWasNotOffered(_ version: String, _ offered: [STOMPVersion]) -> STOMPProtocolError {
        let offered = Set(offered).sorted().map { $0.description }.joined(separator: ", ")
        return .init(
            .versionMismatch,
            "The server chose STOMP \(version); this client offered \(offered). Add that version to versions to accept it."
        )
    }

    static func noCommonVersion(_ supported: [STOMPVersion]) -> STOMPProtocolError {
        let supported = Set(supported).sorted().map { $0.description }.joined(separator: ",")
        return .init(.versionMismatch, "Supported protocol versions are \(supported)")
    }

    static func heartBeatIsInvalid(_ header: String, in command: StaticString) -> STOMPProtocolError {
        .init(.invalidHeader, "\(command) says heart-beat:\(header), which is not two numbers.")
    }

    static func acknowledgementModeIsUnknown(_ mode: String, in version: STOMPVersion) -> STOMPProtocolError {
        .init(.invalidHeader, "SUBSCRIBE says ack:\(mode), which STOMP \(version) does not know.")
    }

    static func headerIsMissing(
        _ header: String, in command: String, _ version: STOMPVersion
    ) -> STOMPProtocolError {
        .init(.missingHeader, "\(command) has no header \"\(header)\", which STOMP \(version) requires.")
    }

    static func beginsWithOtherFrame(_ name: String) -> STOMPProtocolError {
        .init(.unexpectedFrame, "The peer begins with \"\(name)\" instead of CONNECTED. Is it a STOMP server?")
    }

    static func arrivedBeforeConnect(_ name: String) -> STOMPProtocolError {
        .init(.unexpectedFrame, "\(name) arrived before CONNECT.")
    }

    static func isNotAllowedInSession(_ name: String) -> STOMPProtocolError {
        .init(.unexpectedFrame, "\(name) is not allowed in a session.")
    }
}

// MARK: The connection fails

extension STOMPConnectionFailure {
    // MARK: The other end closes it

    static func closedBeforeConnected(_ options: STOMPConnectOptions) -> STOMPConnectionFailure {
        .init(
            .closedBeforeConnected,
            "The server closed the connection before CONNECTED, without saying why. Check that it speaks STOMP at this port.\(options.backslashHint)"
        )
    }

    static var closedBeforeConnect: STOMPConnectionFailure {
        .init(.closedBeforeConnected, "The peer closed the connection before CONNECT.")
    }

    /// - Parameter hints: what is known about the reason.
    static func closedByServer(_ hints: String) -> STOMPConnectionFailure {
        .init(.closed, "The server closed the connection without an ERROR frame. See its log for the reason.\(hints)")
    }

    static var closedByClient: STOMPConnectionFailure {
        .init(.closed, "The client closed the connection without DISCONNECT.")
    }

    // MARK: The server ends it with ERROR

    /// - Parameter flaw: what keeps the ERROR from being read as a whole; empty for one that was.
    static func refused(
        by error: STOMPServerError, _ flaw: String, _ options: STOMPConnectOptions
    ) -> STOMPConnectionFailure {
        let isAboutCredentials = STOMPBrokerProfile.refusesCredentials(error)
        let hint = isAboutCredentials ? options.credentialsHint : ""
        return .init(
            isAboutCredentials ? .credentialsRefused : .refused,
            "The server refused the connection: \(error.sentence)\(hint)\(flaw)", error: error)
    }

    /// - Parameter flaw: as above.
    static func ended(by error: STOMPServerError, _ flaw: String) -> STOMPConnectionFailure {
        .init(.error, "The server ended the session: \(error.sentence)\(flaw)", error: error)
    }

    static func ended(by error: STOMPServerError, becauseOf destination: String) -> STOMPConnectionFailure {
        .init(
            .error,
            "The server ended the session because of the subscription to '\(destination)': \(error.sentence) Check whether that destination still exists; the next connection subscribes again.",
            error: error)
    }

    static let endOfErrorIsMissing =
        " The end of the server's ERROR frame did not arrive: see the server's log for the rest."

    static func errorIsInvalid(_ violation: STOMPConnectionFailure) -> String {
        " The server's ERROR frame is invalid: \(violation.message)"
    }

    // MARK: Time runs out

    static func noHandshake(_ role: STOMPRole, within timeout: Int64) -> STOMPConnectionFailure {
        let awaited = role == .client ? "CONNECTED" : "CONNECT"
        return .init(
            .connectTimeout,
            "\(awaited) did not arrive within \(Duration.nanoseconds(timeout)). Check that a STOMP server is at this address and port."
        )
    }

    /// - Parameter milliseconds: the agreed heart-beat.
    static func heartBeatIsMissing(_ milliseconds: Int, _ hint: String) -> STOMPConnectionFailure {
        .init(
            .heartBeatLost,
            "Nothing arrived from the other end for \(patience(milliseconds)). Check the network and the other end; a longer heart-beat allows longer silence.\(hint)"
        )
    }

    /// - Parameter milliseconds: the agreed heart-beat.
    static func outputIsStuck(_ count: Int, heartBeat milliseconds: Int) -> STOMPConnectionFailure {
        .init(.heartBeatLost, tookNothing(of: count, for: patience(milliseconds)))
    }

    static func outputIsStuck(_ count: Int, receiptTimeout silence: Int64) -> STOMPConnectionFailure {
        .init(.acknowledgementTimeout, tookNothing(of: count, for: "\(Duration.nanoseconds(silence))"))
    }

    /// - Parameters:
    ///   - receiptHint: what to do about a server that has never sent a receipt; empty for others.
    ///   - hint: what is known about the reason.
    static func receiptIsMissing(
        _ id: String, after silence: Int64, _ receiptHint: String, _ hint: String
    ) -> STOMPConnectionFailure {
        let advice =
            receiptHint.isEmpty ? " Check the server, or raise acknowledgementTimeout if it needs longer." : receiptHint
        return .init(
            .acknowledgementTimeout,
            "The server sent no RECEIPT for \(Duration.nanoseconds(silence)); the frame with the receipt \(id) has waited longest.\(advice)\(hint)"
        )
    }

    private static func patience(_ milliseconds: Int) -> String {
        "two and a half times the agreed heart-beat of \(milliseconds) ms"
    }

    private static func tookNothing(of count: Int, for time: String) -> String {
        "The other end took none of the \(count) bytes that wait for it, for \(time), and nothing is read while so many wait. Check the network and the other end."
    }

    // MARK: Added to a report

    /// - Parameters:
    ///   - silence: in nanoseconds.
    ///   - asksOften: whether the client has asked for heart-beats that would have ended the silence.
    static func hint(atSilence silence: Int64, asksOften: Bool) -> String {
        let advice =
            asksOften
            ? "The server takes no part in the heart-beats that this client asks for: configure them there (Spring's simple broker needs a TaskScheduler), or raise the time of the proxy."
            : "Set incomingHeartBeat and outgoingHeartBeat to a shorter time, such as 10 seconds."
        return
            " Nothing had been sent or received for \(silence / 1_000_000_000) seconds: a proxy or load balancer may end connections that are idle for so long. \(advice)"
    }

    static func hint(atUnfinishedMessageFrom destination: String?, arrived: Int, of count: Int) -> String {
        let source = destination.map { " from '\(OneLine.text($0))'" } ?? ""
        return
            " A message\(source) has not ended: \(arrived) of the \(count) bytes that its content-length announces have arrived."
    }

    static let hintAtMissingReceipts =
        " It has sent no RECEIPT on any connection of this client: if it supports none, as Spring's simple broker, set profile to .springSimple in the configuration, or to a profile whose sendsReceipts is false."

    static let adviceOnLimits =
        " Raise the limits of this client to accept it, or have the sender send smaller messages."

    static func name(ofMessage id: String?, from destination: String) -> String {
        " It is the message\(id.map { " '\($0)'" } ?? "") from '\(destination)'."
    }

    static func name(ofMessageForSubscriptionTo destination: String) -> String {
        " It is a message of the subscription to '\(destination)'."
    }
}

// MARK: The caller's mistake

extension STOMPUsageError {
    // MARK: The role and the state of the connection

    @inline(never)
    static func clientCannotSend(_ role: STOMPRole, in phase: STOMPEngine.Phase) -> STOMPUsageError {
        if role != .client { return isForClients }
        return phase == .leaving
            ? .init(.disconnecting, "Nothing may be sent after DISCONNECT. Connect again first.")
            : .init(.notConnected, "There is no STOMP connection now.")
    }

    private static var isForClients: STOMPUsageError {
        .init(.wrongRole, "This is an operation of a client; the engine plays a server.")
    }

    static var isForServers: STOMPUsageError {
        .init(.wrongRole, "This is an operation of a server; the engine plays a client.")
    }

    static var onlyClientsDisconnect: STOMPUsageError {
        .init(.wrongRole, "Only a client sends DISCONNECT; a server refuses or sends ERROR.")
    }

    static func noConnectToAnswer(in phase: STOMPEngine.Phase) -> STOMPUsageError {
        .init(state(phase), "CONNECTED answers a CONNECT, and none is waiting.")
    }

    static func noConnectToRefuse(in phase: STOMPEngine.Phase) -> STOMPUsageError {
        .init(state(phase), "There is no CONNECT to refuse.")
    }

    static func noConnectionForError(in phase: STOMPEngine.Phase) -> STOMPUsageError {
        .init(state(phase), "There is no connection for an ERROR.")
    }

    static func noSession(for command: StaticString, in phase: STOMPEngine.Phase) -> STOMPUsageError {
        .init(state(phase), "There is no session for a \(command).")
    }

    private static func state(_ phase: STOMPEngine.Phase) -> Code { phase == .leaving ? .disconnecting : .notConnected }

    // MARK: Headers

    @inline(never)
    static func destinationIsEmpty() -> STOMPUsageError {
        .init(.invalidOption, "A destination must not be empty; write for example /queue/orders.")
    }

    static func headerIsReserved(_ name: StaticString) -> STOMPUsageError {
        let advice =
            "receipt".hasBytes(of: name)
            ? "To wait for the receipt, pass a receipt token, or use sendAndConfirm or sendForReceipt of a client."
            : "Use its parameter, or leave it out."
        return .init(.reservedHeader, "The header \"\(name)\" is written by the operation itself. \(advice)")
    }

    static var receiptWithoutToken: STOMPUsageError {
        .init(
            .reservedHeader,
            "A header \"receipt\" needs a receipt token, so that a caller receives the answer. Pass one, or leave the header out."
        )
    }

    static func receiptIsTaken(_ id: String) -> STOMPUsageError {
        .init(
            .invalidReceiptID,
            "The receipt id \"\(id)\" is empty, in flight, or a number as the engine's own. Choose another.")
    }

    static func tooManyHeaders(
        _ count: Int, _ profile: STOMPBrokerProfile, maximum: Int
    ) -> STOMPUsageError {
        .init(
            .brokerLimit,
            "\(count) headers are more than \(profile.name) accepts (\(maximum)). Put some of them into the body, or set the profile option if the broker is configured for more."
        )
    }

    static func headerIsTooLong(
        _ name: String, _ bytes: Int, _ profile: STOMPBrokerProfile, maximum: Int
    ) -> STOMPUsageError {
        .init(
            .brokerLimit,
            "The header \"\(name)\" has \(bytes) bytes; \(profile.name) accepts \(maximum) in a line. Put it into the body, or set the profile option if the broker is configured for more."
        )
    }

    // MARK: Receipts

    static func tooManyReceipts(_ count: Int, maximum: Int) -> STOMPUsageError {
        .init(
            .tooManyReceipts,
            "\(count) receipts are pending; the limit is \(maximum). Wait for some, or raise maximumReceipts.")
    }

    static func receiptIsPendingTooLong(_ id: String, later count: Int) -> STOMPUsageError {
        .init(
            .tooManyReceipts,
            "The receipt '\(OneLine.text(id))' is still pending after \(count) later ones; the limit is 16 times maximumReceipts. Wait until its frame is confirmed, or commit or abort its transaction first."
        )
    }

    static func hasNoReceipts(_ profile: STOMPBrokerProfile) -> STOMPUsageError {
        .init(
            .unsupportedByBroker,
            "\(profile.name) sends no receipts, so that nothing confirms the frame. Send it without waiting for one, or set another profile."
        )
    }

    // MARK: Subscriptions

    static func tokenIsReserved(_ token: UInt64) -> STOMPUsageError {
        .init(.invalidOption, "The token \(token) means \"unmatched\".")
    }

    static var hasNoClientIndividual: STOMPUsageError {
        .init(
            .unsupportedByVersion,
            "STOMP 1.0 has no ack mode client-individual. Use client, or a broker of 1.1 or later.")
    }

    static func subscriptionExists(_ id: String) -> STOMPUsageError {
        .init(
            .duplicateSubscription,
            "There is a subscription with the id \"\(id)\" already. Choose another, or unsubscribe first.")
    }

    static func subscriptionIsUnknown(_ id: String) -> STOMPUsageError {
        .init(.unknownSubscription, "There is no subscription with the id \"\(id)\" on this connection.")
    }

    static func sharesAcknowledgements(
        _ profile: STOMPBrokerProfile, with destination: String
    ) -> STOMPUsageError {
        .init(
            .unsupportedByBroker,
            "\(profile.name) applies an acknowledgement in the mode client to every message of the connection, so that those of '\(destination)' and of this subscription would be acknowledged together. Use clientIndividual for both, or a client for each."
        )
    }

    static func acknowledgesLeftMessages(_ profile: STOMPBrokerProfile) -> STOMPUsageError {
        .init(
            .unsupportedByBroker,
            "\(profile.name) applies an acknowledgement in the mode client to every message of the connection, also to those that a subscription has left unanswered, which would be lost. Use clientIndividual, or reconnect first."
        )
    }

    // MARK: Acknowledgements

    static var hasNoNack: STOMPUsageError {
        .init(
            .unsupportedByVersion,
            "STOMP 1.0 has no NACK. Leave the message unacknowledged and disconnect, or use a broker of 1.1 or later.")
    }

    static func acknowledgesRejected(_ profile: STOMPBrokerProfile) -> STOMPUsageError {
        .init(
            .unsupportedByBroker,
            "\(profile.name) handles NACK as ACK, so that the message would be lost. Send it to a queue for failed messages and acknowledge it, or leave it unanswered: it is delivered again when this connection ends."
        )
    }

    static var messageIsStale: STOMPUsageError {
        .init(
            .staleMessage,
            "The message belongs to an earlier connection. Do not acknowledge it: the broker delivers it again.")
    }

    static func messageHasNoName(in version: STOMPVersion) -> STOMPUsageError {
        .init(
            .notAcknowledgeable,
            "The message has no header that an acknowledgement in STOMP \(version) could name. Was it subscribed with ack:auto?"
        )
    }

    /// - Parameter id: of the subscription, where a message names it.
    static func subscriptionHasEnded(_ profile: STOMPBrokerProfile, _ id: String? = nil) -> STOMPUsageError {
        .init(
            .unknownSubscription,
            "The subscription \(id.map { "\"\($0)\" " } ?? "")of the message has ended. \(profile.unansweredAdvice)")
    }

    static func subscriptionIsAutomatic(_ id: String) -> STOMPUsageError {
        .init(
            .acknowledgingAutoSubscription,
            "The subscription \"\(id)\" has the ack mode auto: the server forgets each message when it has sent it. Subscribe with clientIndividual to acknowledge and reject."
        )
    }

    static func isAnswered(in mode: STOMPAckMode) -> STOMPUsageError {
        .init(
            .alreadyAnswered,
            mode == .client
                ? "This message, or a later one, has already been acknowledged or rejected; in the mode client that also answers all earlier messages. Answer only the last one."
                : "The message has been acknowledged or rejected already. Answer each message once.")
    }

    static var isAnsweredInOtherTransaction: STOMPUsageError {
        .init(
            .invalidOption,
            "Another open transaction has answered messages of this subscription. In the mode client an answer is for all earlier messages, so that one transaction at a time may answer. Commit or abort the other one first, or subscribe with clientIndividual."
        )
    }

    // MARK: Transactions

    static func cannotNameTransaction(_ name: String) -> STOMPUsageError {
        .init(
            .invalidOption,
            "'\(name)' cannot name a transaction: it is empty, or begins with 'tx-' as the engine's own names do.")
    }

    static func transactionIsOpen(_ name: String) -> STOMPUsageError {
        .init(
            .invalidOption,
            "A transaction of the name '\(name)' is open on this connection. Commit or abort it first.")
    }

    static func connectionHasEnded(of transaction: STOMPTransaction) -> STOMPUsageError {
        .init(
            .transactionEnded,
            "The connection of the transaction \(transaction) has ended. Nothing of the transaction happened, unless a commit of it was sent: then that is unknown. Begin a new one, after such a commit only if it may happen twice."
        )
    }

    static func transactionIsOver(_ transaction: STOMPTransaction) -> STOMPUsageError {
        .init(
            .transactionEnded,
            "The transaction \(transaction) is over. It was committed or aborted before. Begin a new one for what follows."
        )
    }
}

// MARK: Descriptions

extension STOMPConnectRequest: CustomStringConvertible, CustomDebugStringConvertible {
    /// For people: login and passcode are not shown.
    public var description: String { "CONNECT in \(version): \(headers)" }
    public var debugDescription: String { description }
}
