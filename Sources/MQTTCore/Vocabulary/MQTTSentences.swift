// The sentences of an engine's errors: what happened, then what to do. The engine decides, and names the case and the clause.
// What the hot paths may throw is not inlined there.

import MessagingWire

// MARK: The peer breaks the protocol

extension MQTTProtocolError {
    // MARK: Opening

    @inline(never)
    static func arrivedBefore(
        _ first: MQTTPacketType, _ packet: MQTTPacketType, clause: String
    ) -> MQTTProtocolError {
        .protocolError("\(packet) arrived before \(first).", clause)
    }

    static func secondConnect(clause: String) -> MQTTProtocolError {
        .protocolError("The client sent a second CONNECT.", clause)
    }

    static func secondConnack(clause: String) -> MQTTProtocolError {
        .protocolError("The server sent a second CONNACK.", clause)
    }

    static func noClientIdentifier(clause: String) -> MQTTProtocolError {
        MQTTProtocolError(
            .clientIdentifierNotValid, "CONNECT has an empty client identifier without Clean Session.", clause: clause)
    }

    static func sessionPresentAfterCleanStart(clause: String) -> MQTTProtocolError {
        .protocolError("CONNACK has Session Present set although CONNECT requested a clean start.", clause)
    }

    static func sessionPresentWithoutSession(clause: String) -> MQTTProtocolError {
        .protocolError("CONNACK has Session Present set, but this client has no session.", clause)
    }

    static func receiveMaximumIsZero(clause: String) -> MQTTProtocolError {
        .protocolError("The Receive Maximum is 0.", clause)
    }

    static func maximumPacketSizeIsZero(clause: String) -> MQTTProtocolError {
        .protocolError("The Maximum Packet Size is 0.", clause)
    }

    // MARK: Authentication

    static func authIsNotInThisVersion(clause: String) -> MQTTProtocolError {
        .protocolError("MQTT before 5.0 has no AUTH.", clause)
    }

    static func authWithoutMethod(clause: String) -> MQTTProtocolError {
        .protocolError("AUTH arrived although CONNECT had no authentication method.", clause)
    }

    static func otherAuthenticationMethod(in packet: MQTTPacketType, clause: String) -> MQTTProtocolError {
        .protocolError("\(packet) has another authentication method than CONNECT.", clause)
    }

    static func secondAuth(clause: String) -> MQTTProtocolError {
        .protocolError("A second AUTH arrived before the first was answered.", clause)
    }

    static func authBeforeConnack(_ reason: MQTTReasonCode, clause: String) -> MQTTProtocolError {
        .protocolError("AUTH with \(reason) arrived before CONNACK.", clause)
    }

    static func authDoesNotFollow(_ reason: MQTTReasonCode, clause: String) -> MQTTProtocolError {
        .protocolError("AUTH has the reason code \(reason), which does not follow the previous step.", clause)
    }

    // MARK: Messages

    @inline(never)
    static func tooManyPropertyBytes(_ count: Int, limit: UInt32, clause: String) -> MQTTProtocolError {
        MQTTProtocolError(
            .packetTooLarge,
            "PUBLISH has \(count) bytes of properties; the limit is \(limit) bytes. Raise maximumControlPacketSize to accept it.",
            clause: clause)
    }

    static func subscriptionIdentifierFromClient(clause: String) -> MQTTProtocolError {
        .protocolError("A client sent a subscription identifier.", clause)
    }

    @inline(never)
    static func topicAliasTooLarge(_ alias: Int, maximum: Int, clause: String) -> MQTTProtocolError {
        MQTTProtocolError(
            .topicAliasInvalid, "The topic alias is \(alias); the maximum is \(maximum).", clause: clause)
    }

    @inline(never)
    static func topicAliasWithoutTopic(_ alias: Int, clause: String) -> MQTTProtocolError {
        .protocolError("The topic alias \(alias) has no topic yet.", clause)
    }

    @inline(never)
    static func retainIsNotAvailable(clause: String) -> MQTTProtocolError {
        MQTTProtocolError(.retainNotSupported, "A message is retained, which CONNACK did not allow.", clause: clause)
    }

    @inline(never)
    static func qosAboveMaximum(_ qos: QoS, maximum: QoS, clause: String) -> MQTTProtocolError {
        MQTTProtocolError(
            .qosNotSupported, "A message has \(qos), above the maximum \(maximum) of CONNACK.", clause: clause)
    }

    @inline(never)
    static func receiveMaximumExceeded(_ maximum: Int, clause: String) -> MQTTProtocolError {
        MQTTProtocolError(
            .receiveMaximumExceeded,
            "More than \(maximum) messages of QoS 1 and 2 arrived before one was acknowledged.", clause: clause)
    }

    // MARK: Answers, and the end

    @inline(never)
    static func identifierAwaitsAnother(
        _ id: UInt16, than packet: MQTTPacketType, clause: String
    ) -> MQTTProtocolError {
        .protocolError("\(packet) names packet identifier \(id), which awaits another packet.", clause)
    }

    static func wrongNumberOfCodes(_ count: Int, filters: Int, clause: String) -> MQTTProtocolError {
        let codes = count == 1 ? "1 reason code" : "\(count) reason codes"
        let filters = filters == 1 ? "1 topic filter" : "\(filters) topic filters"
        return .protocolError("SUBACK has \(codes) for \(filters).", clause)
    }

    static func mustNotBeSent(
        _ packet: MQTTPacketType, by role: MQTTRole, clause: String
    ) -> MQTTProtocolError {
        .protocolError("A \(role) must not send \(packet).", clause)
    }

    static func expiryAfterZero(clause: String) -> MQTTProtocolError {
        .protocolError("DISCONNECT sets a session expiry although CONNECT had 0.", clause)
    }
}

// MARK: The caller's mistake

extension MQTTUsageError {
    // MARK: The role and the state of the connection

    static func isSentByClients(_ packet: String) -> MQTTUsageError {
        .init(.wrongRole, "Only clients send \(packet).")
    }

    static func isSentByServers(_ packet: String) -> MQTTUsageError {
        .init(.wrongRole, "Only servers send \(packet).")
    }

    static func cannotSend(_ packet: String, in phase: MQTTEngine.Phase) -> MQTTUsageError {
        switch phase {
        case .closing, .leaving:
            .init(
                .closing,
                "\(packet) cannot be sent: the connection is being closed with DISCONNECT. Connect again first.")
        case .connected:
            .init(.alreadyConnected, "\(packet) cannot be sent: the connection is already accepted.")
        case .closed, .connecting, .deciding:
            .init(.notConnected, "\(packet) cannot be sent: there is no accepted connection. Connect first.")
        }
    }

    static var connectionIsOpen: MQTTUsageError {
        .init(.alreadyConnected, "A connection is open. Report that it closed before opening another.")
    }

    static var sessionToReplaceIsInUse: MQTTUsageError {
        .init(
            .alreadyConnected,
            "A session cannot be replaced while a connection is accepted. Close the connection first.")
    }

    static var sessionToDiscardIsInUse: MQTTUsageError {
        .init(
            .alreadyConnected, "A session cannot be discarded while a connection is open. Close the connection first.")
    }

    // MARK: CONNECT

    static func clientIdentifierIsEmpty(in version: MQTTVersion) -> MQTTUsageError {
        .init(
            .invalidConfiguration,
            version == .v3_1
                ? "MQTT 3.1 requires a client identifier of 1 to 23 characters. Set clientID."
                : "An empty client identifier requires cleanStart in MQTT 3.1.1 [MQTT-3.1.3-7]. Set either.")
    }

    static func passwordWithoutUserName(in version: MQTTVersion) -> MQTTUsageError {
        .init(
            .invalidConfiguration,
            "MQTT \(version) allows a password only with a user name [MQTT-3.1.2-22]. Set userName.")
    }

    static var authenticationDataWithoutMethod: MQTTUsageError {
        .init(
            .invalidConfiguration,
            "Authentication data needs a method [MQTT 5.0 3.1.2.11.10]. Set authenticationMethod.")
    }

    static func connectPropertyHasOption(
        _ property: MQTTPropertyIdentifier, _ option: String
    ) -> MQTTUsageError {
        .init(
            .propertyNotAllowed,
            "The connect properties contain \(property), which has an option of its own. Use the option \(option) and leave the property out."
        )
    }

    static func connectCannotBeEncoded(_ error: MQTTEncodingError) -> MQTTUsageError {
        // No other topic is in CONNECT.
        let subject = error.code == .invalidTopicName ? "The will has no valid topic." : "CONNECT cannot be encoded."
        return .init(.invalidConfiguration, "\(subject) \(error.message)")
    }

    // MARK: CONNACK

    static var sessionPresentAfterCleanStart: MQTTUsageError {
        .init(
            .answerMismatch,
            "Session Present must not follow Clean Start [MQTT-3.2.2-2]. Answer with sessionPresent off.")
    }

    static func isNotRefusal(_ reason: MQTTReasonCode) -> MQTTUsageError {
        .init(.answerMismatch, "\(reason) is not a refusal. Use a code from 0x80 on.")
    }

    // MARK: AUTH

    static func authIsNotInThisVersion(_ version: MQTTVersion) -> MQTTUsageError {
        .init(.notInThisVersion, "MQTT \(version) has no AUTH. Connect with 5.0.")
    }

    static var authWithoutMethod: MQTTUsageError {
        .init(.answerMismatch, "CONNECT had no authentication method. Set authenticationMethod.")
    }

    static func cannotSendAuth(_ reason: MQTTReasonCode, awaitsAnswer: Bool) -> MQTTUsageError {
        let cause = awaitsAnswer ? "the answer to the previous step is awaited" : "it does not follow the previous step"
        return .init(.answerMismatch, "\(reason) cannot be sent in AUTH now: \(cause).")
    }

    // MARK: PUBLISH

    @inline(never)
    static func qosAboveMaximum(_ qos: QoS, maximum: QoS) -> MQTTUsageError {
        .init(.qosNotSupported, "\(qos) is above the peer's maximum, \(maximum). Publish with that or less.")
    }

    @inline(never)
    static func retainIsNotAvailable() -> MQTTUsageError {
        .init(.retainNotAvailable, "The peer does not retain messages. Publish without retain.")
    }

    static func propertiesAreNotInThisVersion(_ version: MQTTVersion) -> MQTTUsageError {
        .init(.notInThisVersion, "MQTT \(version) has no properties. Leave them out, or connect with 5.0.")
    }

    static var topicAliasIsAssigned: MQTTUsageError {
        .init(
            .propertyNotAllowed,
            "Topic aliases are assigned by the engine. Leave the property out and set outboundTopicAliasMaximum.")
    }

    static var subscriptionIdentifierFromClient: MQTTUsageError {
        .init(
            .propertyNotAllowed,
            "A client must not send a subscription identifier in PUBLISH [MQTT-3.3.4-6]. Leave it out.")
    }

    static var qos0NeedsConnection: MQTTUsageError {
        .init(
            .notConnected,
            "A QoS 0 message requires an accepted connection. Connect first, or publish with QoS 1 or 2.")
    }

    static var noPacketIdentifierIsFree: MQTTUsageError {
        .init(.noPacketIdentifier, "All 65,535 packet identifiers are in use. Wait for acknowledgements.")
    }

    static func largerThanQueue(_ size: Int, maximum: Int) -> MQTTUsageError {
        .init(.largerThanQueue, "The message takes \(size) bytes, more than the whole queue may hold (\(maximum)).")
    }

    static func queueIsFull(messages count: Int) -> MQTTUsageError {
        .init(.queueFull, "The queue holds \(count) messages, its limit.")
    }

    static func queueIsFull(bytes count: Int, adding size: Int, maximum: Int) -> MQTTUsageError {
        .init(.queueFull, "The queue holds \(count) bytes; \(size) more exceed its limit of \(maximum).")
    }

    // MARK: SUBSCRIBE and UNSUBSCRIBE

    static var subscriptionIdentifiersAreNotAvailable: MQTTUsageError {
        .init(
            .subscriptionNotSupported,
            "The server does not support subscription identifiers. Leave the identifier out.")
    }

    static var noLocalOnSharedSubscription: MQTTUsageError {
        .init(
            .subscriptionNotSupported,
            "No Local is not allowed on a shared subscription [MQTT-3.8.3-4]. Turn it off.")
    }

    static var sharedSubscriptionsAreNotAvailable: MQTTUsageError {
        .init(
            .subscriptionNotSupported,
            "The server does not support shared subscriptions. Subscribe without $share.")
    }

    static var wildcardsAreNotAvailable: MQTTUsageError {
        .init(
            .subscriptionNotSupported,
            "The server does not support wildcards. Subscribe to topics without + and #.")
    }

    // MARK: DISCONNECT

    static func disconnectHasNoReason(in version: MQTTVersion) -> MQTTUsageError {
        .init(
            .notInThisVersion, "MQTT \(version) has neither reason nor properties in DISCONNECT. Leave them out.")
    }

    static func cannotSetExpiry(_ expiry: UInt32, isServer: Bool) -> MQTTUsageError {
        let cause = isServer ? "only clients send it." : "CONNECT had 0. Set sessionExpiry before connecting."
        return .init(.propertyNotAllowed, "DISCONNECT must not set a session expiry of \(expiry) s: \(cause)")
    }

    static func mustNotDisconnect(_ role: MQTTRole, with reason: MQTTReasonCode) -> MQTTUsageError {
        .init(
            .invalidValue,
            "A \(role) must not send \(reason) in DISCONNECT [MQTT-3.14.2-1]. Use another reason code.")
    }
}
