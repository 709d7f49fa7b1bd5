import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// The errors of a user of the client, made from those of the engine and from the server's reason codes; on any thread. The
/// core decides, and names the case.
///
/// Each is a sentence about what happened and one about what to do.
extension MQTTError {
    /// A refusal by the engine, before anything was written.
    init(_ misuse: MQTTUsageError) {
        // The engine does not know what the client's options are called.
        let (code, advice): (Code, String) =
            switch misuse.code {
            case .notConnected:
                (
                    .notConnected,
                    " Call connect(), or resume() if the client is suspended, and wait until it is connected"
                        + " (with queuesQoS0WhileOffline, QoS 0 messages wait too)."
                )
            case .queueFull:
                (.queueFull, " Raise maximumQueuedMessages or maximumQueuedBytes, or choose another queueOverflow.")
            case .largerThanQueue: (.queueFull, " Raise maximumQueuedBytes, or send less in one message.")
            case .closing: (.disconnected, "")
            case .packetTooLarge, .qosNotSupported, .retainNotAvailable, .subscriptionNotSupported: (.notAllowed, "")
            default: (.invalidRequest, "")
            }
        self.init(code, Self.sentence(misuse.message) + advice, underlying: misuse)
    }

    /// A server that had accepted the connection broke the protocol.
    ///
    /// - Parameters:
    ///   - refused: the packet that did; nil if it was not read so far.
    ///   - server: the server's name, if the packet has come on enough connections in a row to end the attempts.
    ///   - isResumed: whether the server has the packet in the session.
    init(
        _ violation: MQTTProtocolError, _ refused: MQTTRefusedPacket?, repeatedBy server: String? = nil,
        isResumed: Bool = false
    ) {
        let what = refused.map { Self.name($0, violation) }
        let intro: String
        if let server, let what {
            let count = MQTTBlockedSession.maximumRepetitions
            intro =
                isResumed
                ? "\(server) resumed the session \(count) times with \(what) that breaks the protocol"
                : "\(server) has ended \(count) connections in a row with \(what) that breaks the protocol"
        } else {
            intro = "The server broke the MQTT protocol" + (what.map { " with \($0)" } ?? "")
        }
        let isPublish = refused?.type == .publish
        var advice = Self.advice(onAccepted: violation, refused)
        if server != nil, isResumed { advice.append("Discard the session with discardSession() or cleanStart.") }
        if server != nil, !isResumed, isPublish {
            advice.append("If the message is retained, delete it on the server.")
        }
        self.init(
            server == nil ? .protocolError : .sessionBlocked,
            ([Self.withoutFullStop("\(intro): \(violation.message)") + "."] + advice).joined(separator: " "),
            reasonCode: violation.reasonCode, underlying: violation)
    }

    /// The name of a packet that broke the protocol.
    private static func name(_ refused: MQTTRefusedPacket, _ violation: MQTTProtocolError) -> String {
        switch refused.type {
        // Its topic may not have arrived.
        case .publish where refused.topic.isEmpty && violation.reasonCode == .packetTooLarge: return "a message"
        case .publish where refused.topic.isEmpty: return "a message without a topic"
        case .publish: return "a message to the topic '\(OneLine.text(refused.topic))'"
        case .suback where !refused.filters.isEmpty:
            let filters = refused.filters.prefix(8).map { "'\(OneLine.text($0))'" }.joined(separator: ", ")
            let rest = refused.filters.count - 8
            return "SUBACK for \(filters)" + (rest > 0 ? " and \(rest) more" : "")
        default: return "\(refused.type)"
        }
    }

    /// What to do about a server that broke the protocol after it had accepted the connection: it speaks MQTT.
    private static func advice(
        onAccepted violation: MQTTProtocolError, _ refused: MQTTRefusedPacket?
    ) -> [String] {
        switch violation.reasonCode {
        case .receiveMaximumExceeded: return [adviceOnReceiveMaximum]
        // The message names the option to raise.
        case .packetTooLarge: return []
        default: break
        }
        if refused?.isDroppable == true {
            return ["Set dropsInvalidMessages to acknowledge and drop such messages."]
        }
        if violation.isAboutTopicAlias {
            return ["Set topicAliasMaximum to 0, so that the server uses no topic aliases."]
        }
        if let refused, refused.filters.count > 1, violation.clause == MQTTEngine.clauseOfCodeCount {
            return [
                "Set maximumFiltersPerRequest to 1: the next connections of this client send one filter in each SUBSCRIBE."
            ]
        }
        return [
            "This is a fault of the server: update it, or report the packet, which inspect() shows, to its maintainers."
        ]
    }

    /// The end of a connection that the engine found.
    ///
    /// - Parameter isAnswerToConnect5: CONNECT asked for 5.0 and was never accepted: older servers answer in their own
    ///   format. A server that sends AUTH supports 5.0, whatever else is wrong with it.
    init(_ failure: MQTTConnectionFailure, isAnswerToConnect5: Bool = false) {
        let (code, message): (Code, String) =
            switch failure {
            case .violation(let violation):
                (
                    .protocolError,
                    Self.sentence("The server broke the MQTT protocol: \(violation.message)")
                        + " \(Self.advice(on: violation, isAnswerToConnect5: isAnswerToConnect5))"
                )
            case .connectTimeout:
                (
                    .timedOut,
                    "The server did not answer CONNECT within connectTimeout. Check that it speaks MQTT on this port, or raise connectTimeout."
                )
            case .pingTimeout:
                (
                    .connectionLost,
                    "The server did not answer PINGREQ within pingTimeout. Check the network, or raise pingTimeout."
                )
            case .acknowledgementTimeout(let topic, let qos, let silence):
                (
                    .connectionLost,
                    "The server acknowledged no message for \(Duration.nanoseconds(silence)); the one to '\(topic)' with QoS \(qos.rawValue) has waited longest. \(Self.adviceOnSilence(after: qos))"
                )
            case .keepAliveTimeout:
                (
                    .connectionLost,
                    "The other end was silent for longer than its keep alive interval. Check the network."
                )
            case .authenticationTimeout:
                (
                    .timedOut,
                    "The server did not answer AUTH in time. Raise requestTimeout, or connectTimeout for all steps together."
                )
            case .subscribeTimeout:
                (
                    .timedOut,
                    "The server did not answer SUBSCRIBE within requestTimeout after a reconnect. \(Self.adviceOnLateSubscribe)"
                )
            }
        let violation: MQTTProtocolError? = if case .violation(let violation) = failure { violation } else { nil }
        self.init(code, message, reasonCode: violation?.reasonCode, underlying: violation)
    }

    /// The connection ended before CONNECT was sent, which waited for the session store.
    static var connectWasHeld: MQTTError {
        MQTTError(
            .timedOut,
            "The session store did not answer in time, so CONNECT was not sent: the session has to be in the store first. Check the disk that holds it, or raise connectTimeout."
        )
    }

    /// CONNACK with a failure.
    ///
    /// - Parameters:
    ///   - hadCredentials: whether CONNECT had a user name or a password.
    ///   - version: of the connection.
    ///   - referral: what to do if the server refers the client to another one.
    init(
        connack reason: MQTTReasonCode, properties: MQTTProperties, hadCredentials: Bool = true,
        version: MQTTVersion = .v5_0, referral: String? = nil
    ) {
        guard reason.isError, reason.name != nil || version.hasProperties else {
            self.init(
                .refused,
                "The server refused the connection with the \(Self.undefined(reason, version)). See the server's documentation for its meaning.",
                reasonCode: reason)
            return
        }
        let answer = properties.text(after: reason)
        let (code, advice): (Code, String) =
            switch reason {
            case .badAuthenticationMethod:
                (.badCredentials, "It does not support this authentication method: set another in authentication.")
            case .badUserNameOrPassword where !hadCredentials, .notAuthorized where !hadCredentials:
                (
                    .badCredentials,
                    "The client sent neither user name nor password: set credentials, if the server expects them."
                )
            case .badUserNameOrPassword: (.badCredentials, "Check user name and password.")
            case .notAuthorized where !version.hasProperties:
                (
                    .badCredentials,
                    "Check user name and password, what this user may do, and the server's limit on connections, which some servers report so (RabbitMQ)."
                )
            case .notAuthorized: (.badCredentials, "Check user name and password, and what this user may do.")
            case .unsupportedProtocolVersion:
                (
                    .unsupportedVersion,
                    "It does not support this version of MQTT: set another version, or fallbackVersions."
                )
            case .qosNotSupported: (.refused, "Lower the QoS of the will to the server's Maximum QoS.")
            case .retainNotSupported:
                (.refused, "The server does not support retained messages: turn off retain in the will.")
            case .clientIdentifierNotValid where !version.hasProperties:
                (
                    .refused,
                    "\(Self.adviceOnIdentifier) It may also be keepAlive: Mosquitto refuses one above its max_keepalive so."
                )
            default:
                (
                    .refused,
                    referral ?? Self.advice(for: reason) ?? "Check the client's configuration against the server's."
                )
            }
        self.init(
            code, Self.sentence("The server refused the connection: \(answer)") + " \(advice)", reasonCode: reason,
            properties: properties)
    }

    private static let adviceOnIdentifier =
        "Set another clientID: some services allow 23 bytes, others 128, and some allow letters and digits only, or no empty one."

    /// What to do about CONNECT, a message or a SUBSCRIBE that the server refuses for this reason, or ends the connection for;
    /// nil if the reason does not tell.
    static func advice(for reason: MQTTReasonCode) -> String? {
        switch reason {
        case .clientIdentifierNotValid: adviceOnIdentifier
        case .topicNameInvalid:
            "Check the topic: the server may limit its length, its levels or its characters."
        case .topicFilterInvalid:
            "Check each filter: the server may limit its length, its levels or its wildcards."
        case .packetTooLarge: "Send smaller messages, or fewer filters in a request."
        case .payloadFormatInvalid:
            "Check the payload against its Payload Format Indicator, and against what the server expects of this topic."
        case .qosNotSupported: "Lower the QoS to the server's Maximum QoS."
        case .retainNotSupported: "The server does not support retained messages: turn off retain."
        case .sharedSubscriptionsNotSupported:
            "The server does not support shared subscriptions: subscribe without $share."
        case .subscriptionIdentifiersNotSupported:
            "The server does not support the subscription identifier: leave it out of the properties."
        case .wildcardSubscriptionsNotSupported:
            "The server does not support wildcards: subscribe to topics without + and #."
        case .messageRateTooHigh:
            "Set maximumPublishesPerSecond and maximumPublishedBytesPerSecond to what the server allows."
        case .quotaExceeded:
            "A limit of the server is reached: a later attempt may succeed. If it does not, ask for less, or raise the limit."
        case .serverUnavailable, .serverBusy, .connectionRateExceeded, .serverShuttingDown:
            "A later attempt may succeed. If it does not, see the server's log."
        default: nil
        }
    }

    /// What to do about a message that the server refuses.
    private static func advice(onMessage reason: MQTTReasonCode?) -> String {
        let permission = "Check that this user may publish to this topic"
        guard let reason, reason != .notAuthorized else { return "\(permission)." }
        return advice(for: reason) ?? "\(permission), or see the server's log for the reason."
    }

    /// What to do about a filter that the server refuses, or each of several.
    static func advice(onFilter reason: MQTTReasonCode?, isEach: Bool = false) -> String {
        reason.flatMap { advice(for: $0) }
            ?? "Check \(isEach ? "each" : "the") filter, and that this user may subscribe to it."
    }

    /// CONNACK with a failure on a connection that the server had accepted.
    init(secondConnack reason: MQTTReasonCode, properties: MQTTProperties, version: MQTTVersion) {
        let isDefined = reason.isError && (reason.name != nil || version.hasProperties)
        let answer = isDefined ? properties.text(after: reason) : "the \(Self.undefined(reason, version))"
        let advice =
            reason == .notAuthorized
            ? "Check what this user may publish and subscribe to." : "See the server's log for the reason."
        self.init(
            .connectionLost,
            Self.sentence("The server ended the connection with a second CONNACK: \(answer)") + " \(advice)",
            reasonCode: reason, properties: properties)
    }

    /// A return code of CONNACK that 3.1 and 3.1.1 reserve.
    private static func undefined(_ code: MQTTReasonCode, _ version: MQTTVersion) -> String {
        "return code \(code.rawValue), which MQTT \(version) does not define"
    }

    /// DISCONNECT of a server of 3.1 or 3.1.1, which should send none, without a reason.
    static let disconnectedBefore5 = MQTTError(
        .connectionLost,
        "The server ended the connection with DISCONNECT, as some do when another client connects with the same client identifier. Give each client an identifier of its own, or see the server's log for the reason."
    )

    /// DISCONNECT from the server.
    ///
    /// - Parameter advice: nil if only the server knows more.
    init(disconnect reason: MQTTReasonCode, properties: MQTTProperties, advice: String? = nil) {
        if reason == .sessionTakenOver {
            self.init(
                .takenOver,
                "Another client connected with the same client identifier. Give each client an identifier of its own.",
                reasonCode: reason, properties: properties)
            return
        }
        let answer = properties.text(afterDisconnect: reason)
        self.init(
            .connectionLost,
            Self.sentence("The server ended the connection: \(answer)")
                + " \(advice ?? Self.advice(onEnd: reason))",
            reasonCode: reason, properties: properties)
    }

    /// What to do about DISCONNECT from the server.
    private static func advice(onEnd reason: MQTTReasonCode) -> String {
        (reason == .messageRateTooHigh ? advice(for: reason) : nil) ?? "See the server's log for the reason."
    }

    /// What may be the matter, and what to do, when a connection ends on which a long message holds PINGREQ up
    /// [MQTT-3.1.2-22].
    static let serverLostPatience =
        "A server may end a connection on which it gets no whole packet for one and a half times keepAlive, and a message takes longer on a slow link. Set keepAlive to a longer time, or send smaller messages."

    /// A message that its publisher waits for, or that was enqueued, was not delivered.
    init(undelivered outcome: MQTTPublishCompletion.Outcome, _ reason: MQTTReasonCode, _ properties: MQTTProperties) {
        switch outcome {
        case .expired:
            self.init(
                .expired,
                "The message expired before it could be sent. If it may wait longer, raise its timeToLive or its Message Expiry Interval."
            )
        case .sessionLost:
            self.init(
                .sessionLost,
                "The server lost the session; whether the message arrived is unknown. Publish it again, or set republishesAfterSessionLoss."
            )
        case .unsendable:
            self.init(
                .notAllowed,
                Self.sentence("The server's limits do not allow this message: \(reason)")
                    + " Compare it with MQTTConnectionInfo.limits.",
                reasonCode: reason)
        case .unsendableAgain:
            self.init(
                .connectionLost,
                Self.sentence(
                    "The connection ended before the server confirmed the message, and the server's limits do not allow it any more: \(reason)"
                )
                    + " Whether it arrived is unknown: publish it again, within MQTTConnectionInfo.limits, if it may arrive twice.",
                reasonCode: reason)
        case .discarded:
            self.init(
                .disconnected,
                "The session was discarded; whether the message arrived is unknown. Publish it again if it may arrive twice."
            )
        default:
            self.init(
                .refused,
                Self.sentence("The server refused the message: \(properties.text(after: reason))")
                    + " \(Self.advice(onMessage: reason))",
                reasonCode: reason, properties: properties)
        }
    }

    /// A request because of which the server ended connections, or which it never answered.
    init(_ refusal: MQTTRefusal) {
        let reason = refusal.disconnect?.reasonCode
        // Without a reason it may be any limit.
        let isVague = reason.flatMap { Self.advice(for: $0) } == nil && reason != .notAuthorized
        let (what, qos, advice): (String, QoS?, String) =
            switch refusal.request {
            case .message(let topic, let qos):
                (
                    "the message to '\(topic)'", qos,
                    Self.advice(onMessage: reason)
                        + (isVague && qos == .exactlyOnce
                            ? " Or try a lower QoS, since some servers do not accept QoS 2." : "")
                        + (isVague ? Self.size(ofMessageTo: topic, refusal.byteCount) : "")
                )
            case .subscription(let filters):
                (
                    "SUBSCRIBE for '\(filters.joined(separator: "', '"))'", nil,
                    Self.advice(onFilter: reason, isEach: true) + (isVague ? Self.size(of: filters) : "")
                )
            }
        guard !refusal.isSilence else {
            let asked = qos.map { " with QoS \($0.rawValue)" } ?? " with QoS 2"
            self.init(
                .refused,
                "The server has not answered \(what)\(asked) on several connections, on which nothing else was unanswered. Try QoS 1, since some servers never answer QoS 2."
            )
            return
        }
        let answer = refusal.disconnect.map { " with \($0.properties.text(afterDisconnect: $0.reasonCode))" } ?? ""
        self.init(
            .refused,
            "The server ended the connection\(answer) instead of answering \(what), whenever nothing else was unanswered. \(advice)",
            reasonCode: refusal.disconnect?.reasonCode, properties: refusal.disconnect?.properties ?? [])
    }

    /// A request during which connections have ended, which may have other reasons.
    init(passedOver refusal: MQTTRefusal) {
        let what =
            switch refusal.request {
            case .message(let topic, _): "the message to '\(topic)'"
            case .subscription(let filters): "SUBSCRIBE for '\(filters.joined(separator: "', '"))'"
            }
        self.init(
            .connectionLost,
            "Two connections ended while \(what) alone was unanswered: the server may refuse it so, or the link broke. Others pass it, and it is sent again later. Withdraw it, or cancel its call, if it need not arrive."
        )
    }

    /// The sizes of a message that may be beyond a limit of the server.
    private static func size(ofMessageTo topic: String, _ byteCount: Int) -> String {
        " Its topic has \(topic.utf8.count) bytes and \(slashes(in: topic)) slashes, and with its payload it has \(byteCount) bytes: some services allow 256 bytes, 7 slashes and 128 KiB."
    }

    /// The sizes of filters that may be beyond a limit of the server.
    private static func size(of filters: [String]) -> String {
        let longest = filters.reduce(0) { max($0, $1.utf8.count) }
        let deepest = filters.reduce(0) { max($0, slashes(in: $1)) }
        return
            " A filter has up to \(longest) bytes and \(deepest) slashes: some services allow 256 bytes and 7 slashes, and 50 subscriptions."
    }

    private static func slashes(in text: String) -> Int {
        text.utf8.reduce(0) { $1 == UInt8(ascii: "/") ? $0 + 1 : $0 }
    }

    /// ``MQTTAuthentication/begin`` threw before CONNECT.
    init(authenticationBegin error: any Error) {
        self.init(
            .noCredentials,
            "The authentication's begin failed: \(Self.withoutFullStop("\(error)")). Check what it depends on; the next attempt calls it again.",
            underlying: error)
    }

    /// A closure of ``MQTTAuthentication`` failed on an open connection.
    init(authentication error: any Error) {
        self.init(
            .badCredentials,
            Self.sentence("The authentication failed: \(error)") + " Check configuration.authentication.",
            underlying: error)
    }

    /// The closure that changes CONNECT threw.
    init(connectProvider error: any Error) {
        self.init(
            .connectFailed,
            "The connectProvider failed: \(Self.withoutFullStop("\(error)")). Check what it depends on; the next attempt calls it again.",
            underlying: error)
    }

    /// A session store failed.
    init(store error: any Error) {
        let message =
            error is SessionStoreError
            ? "\(error)"
            : Self.sentence("The session store cannot be used: \(error)")
                + " Repair or replace it, then call connect() again."
        self.init(.storeFailed, message, underlying: error)
    }

    /// What to do about a server that acknowledges no message.
    private static func adviceOnSilence(after qos: QoS) -> String {
        qos == .exactlyOnce
            ? "Try a lower QoS, since some servers never answer QoS 2, or raise acknowledgementTimeout if the server needs longer."
            : "Check the server, or raise acknowledgementTimeout if it needs longer."
    }

    /// What to do about a server that broke the protocol.
    private static func advice(on violation: MQTTProtocolError, isAnswerToConnect5: Bool) -> String {
        if violation.reasonCode == .receiveMaximumExceeded { return adviceOnReceiveMaximum }
        if isAnswerToConnect5, !isAboutAuthentication(violation), !violation.isOtherProtocol {
            return "If it is older than MQTT 5.0, set version to .v3_1_1, or fallbackVersions."
        }
        return "Check that the server speaks MQTT on this port."
    }

    /// What to do about a server that sends more messages without an acknowledgement than Receive Maximum.
    static let adviceOnReceiveMaximum =
        "Acknowledge messages earlier, raise receiveMaximum, or leave enforcesReceiveMaximum off, which accepts up to 65,535."

    /// Whether it is about AUTH or the authentication method, which only MQTT 5.0 has (4.12, 3.15).
    private static func isAboutAuthentication(_ violation: MQTTProtocolError) -> Bool {
        violation.clause.contains("4.12") || violation.clause.contains("3.15")
    }

    /// A text of the engine or of the server as a sentence: with a capital letter and a full stop.
    private static func sentence(_ text: String) -> String {
        withoutFullStop(text.prefix(1).uppercased() + text.dropFirst()) + "."
    }
}

// MARK: - Connecting

extension MQTTError {
    /// The subject of a sentence about the server that the client is connected to.
    static func name(of server: BrokerURL?) -> String { server.map { "\($0)" } ?? "The server" }

    /// CONNECT has no answer, and the time to connect was short because another address was waiting to be tried.
    static var hurriedConnectIsUnanswered: MQTTError {
        MQTTError(.timedOut, "The server did not answer CONNECT " + StreamOpener.hurry)
    }

    /// ``MQTTAuthentication/respond`` has not returned.
    static var respondIsLate: MQTTError {
        MQTTError(
            .timedOut,
            "authentication.respond did not return in time: the server waits for this client's AUTH. Check what respond is waiting for."
        )
    }

    static func authIsUnread(because pauseReason: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "The client read no answer to AUTH within connectTimeout, \(pauseReason) The authentication may still be completed."
        )
    }

    /// DISCONNECT says that another client has the identifier, soon after a CONNECT that was left without an answer.
    static func takenOverByOwnConnect(_ packet: MQTTPacket.Disconnect) -> MQTTError {
        MQTTError(
            .connectionLost,
            "A server reports that another client connected with the same client identifier. That is probably this client's own CONNECT, which was not answered in time, so that the client connects again. If it happens again, give each client an identifier of its own.",
            reasonCode: packet.reasonCode, properties: packet.properties)
    }

    // MARK: What is added to the report of an end

    static let hintAtOlderServer = " If it does not support MQTT 5.0, set version to .v3_1_1, or fallbackVersions."

    /// - Parameter silence: in nanoseconds.
    static func hint(atSilence silence: Int64) -> String {
        " Nothing had been sent or received for \(silence / 1_000_000_000) seconds: a proxy or load balancer may end connections that are idle for so long. Set keepAlive to a shorter time."
    }

    static func hint(atSharedIdentifier id: String) -> String {
        " It has done so twice soon after accepting it: if another client uses the client identifier '\(id)', the two end each other's connections. Give each client an identifier of its own."
    }

    static func advice(onUnfollowedReference reference: String) -> String {
        "\(refers(to: reference)): connect to that server, or set followsRedirects if you trust it with the credentials."
    }

    static func advice(onUnusableReference reference: String) -> String {
        "\(refers(to: reference)), which is neither a host nor a URL with the scheme of the client's own: connect to it with its URL."
    }

    static func remark(onFollowedReference reference: String) -> String {
        "\(refers(to: reference)), which the client follows."
    }

    private static func refers(to reference: String) -> String {
        "It refers clients to '\(OneLine.text(reference))'"
    }
}

// MARK: - Subscribing

extension MQTTError {
    static func subscribeRefused(
        _ filter: String, _ reason: MQTTReasonCode, _ properties: MQTTProperties
    ) -> MQTTError {
        MQTTError(
            .refused,
            "The server refused to subscribe to '\(filter)': \(properties.text(after: reason)). \(advice(onFilter: reason))",
            reasonCode: reason, properties: properties)
    }

    static func unsubscribeRefused(_ reason: MQTTReasonCode, _ properties: MQTTProperties) -> MQTTError {
        MQTTError(
            .refused,
            "The server refused to unsubscribe: \(properties.text(after: reason)). Its messages may still arrive and come to unmatchedMessages().",
            reasonCode: reason, properties: properties)
    }

    static func filterIsSubscribed(_ filter: String) -> MQTTError {
        .invalidRequest(
            "A subscription of this client has the filter '\(filter)'. Call unsubscribe() of it instead.")
    }

    static func filtersOverlap(_ filter: String, _ other: String) -> MQTTError {
        .invalidRequest(
            "The filter '\(filter)' matches topics that '\(other)' of this client matches too, and one of the two is shared. Only Subscription Identifiers tell which messages belong to which: set version to .v5_0 if the server supports them, or subscribe to one of the filters with another client."
        )
    }

    static func answerIsUnread(to packet: String, because pauseReason: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "The client read no answer to \(packet) within requestTimeout, \(pauseReason) The request may still take effect."
        )
    }

    static func acknowledgementIsUnread(because pauseReason: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "The client read no acknowledgement for requestTimeout, \(pauseReason) What was published is not taken back, and may still arrive; what waited for room in the queue was not published."
        )
    }

    static func queueStandsStill(because pauseReason: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "There was no room in the queue for requestTimeout, since the client read no acknowledgement, \(pauseReason) The message was not published."
        )
    }

    static var messageIsNotStored: MQTTError {
        MQTTError(
            .timedOut,
            "The message was not stored within requestTimeout, \(MQTTMachine.storeIsSilent) It is not in the queue, and will not be sent."
        )
    }

    static func outboxStandsStill(_ subscription: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "The server takes no bytes, perhaps since the client has read nothing for requestTimeout, \(MQTTMachine.isSlow(subscription)) The message was not published."
        )
    }

    static func isUnanswered(_ packet: String, _ advice: String) -> MQTTError {
        MQTTError(
            .timedOut,
            "The server did not answer \(packet) within requestTimeout; the request may still take effect. \(advice)")
    }

    static var connectionsEndBeforeSuback: MQTTError {
        MQTTError(
            .timedOut,
            "Connections end before the server answers SUBSCRIBE, for longer than requestTimeout; the request may still take effect. \(adviceOnLateSubscribe)"
        )
    }

    static let adviceOnLateSubscribe =
        "Some servers do not answer a request for QoS 2, or for many filters: lower qos or maximumFiltersPerRequest, or raise requestTimeout if the server is slow."

    static let adviceOnLateUnsubscribe = "Raise requestTimeout if the server needs longer."
}
