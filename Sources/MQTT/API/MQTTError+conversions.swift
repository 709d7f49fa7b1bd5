import MQTTCore
import Messaging
import Transport

extension MQTTError {
    /// A refusal by the engine, before anything was written.
    init(_ misuse: MQTTUsageError) {
        let code: Code =
            switch misuse.code {
            case .notConnected: .notConnected
            case .closing: .disconnected
            case .queueFull: .queueFull
            case .packetTooLarge, .qosNotSupported, .retainNotAvailable, .subscriptionNotSupported: .notAllowed
            default: .invalidRequest
            }
        // The engine does not know what its caller's options are called.
        let hint =
            switch misuse.code {
            case .queueFull: "; see maximumQueuedMessages, maximumQueuedBytes and queueOverflow"
            case .notConnected:
                "; call connect(), or resume() if the client is suspended, and wait until it is connected"
                    + " (with queuesQoS0WhileOffline, QoS 0 messages wait too)"
            default: ""
            }
        self.init(code, misuse.message + hint, underlying: misuse)
    }

    /// The end of a connection that the engine or the stream found.
    ///
    /// - Parameter isAnswerToConnect5: the connection was to speak 5.0 and was never accepted: older servers answer
    ///   in their own format. A server that sends AUTH knows 5.0, whatever else is wrong with it.
    init(_ failure: MQTTConnectionFailure, isAnswerToConnect5: Bool = false) {
        switch failure {
        case .violation(let violation):
            let mayBeOlder = isAnswerToConnect5 && !Self.isAboutAuthentication(violation)
            let hint = mayBeOlder ? "; if it is older than MQTT 5.0, set version to 3.1.1, or fallbackVersions" : ""
            self.init(
                .protocolError, "the server broke the MQTT protocol: \(violation.message)\(hint)",
                reasonCode: violation.reasonCode, underlying: violation)
        case .connectTimeout:
            self.init(
                .timedOut,
                "the server did not answer CONNECT in time; check that it speaks MQTT on this port, or raise connectTimeout"
            )
        case .pingTimeout:
            self.init(.connectionLost, "the server does not answer PINGREQ: the connection is dead")
        case .keepAliveTimeout:
            self.init(.connectionLost, "the peer was silent for longer than its keep alive")
        case .authenticationTimeout:
            self.init(.timedOut, "the server did not answer the authentication in time")
        case .subscribeTimeout:
            self.init(
                .timedOut,
                "The server did not answer SUBSCRIBE within requestTimeout after a reconnect. Raise requestTimeout if it needs longer."
            )
        }
    }

    /// CONNACK with a failure.
    init(refusal reason: MQTTReasonCode, properties: MQTTProperties) {
        let words = reason.words(properties)
        switch reason {
        case .badAuthenticationMethod:
            self.init(
                .badCredentials,
                "the server refused the connection: it does not support this authentication method; set another in "
                    + "authentication", reasonCode: reason, properties: properties)
        case .badUserNameOrPassword:
            self.init(
                .badCredentials, "the server refused the connection: bad user name or password", reasonCode: reason,
                properties: properties)
        case .notAuthorized:
            self.init(
                .badCredentials, "the server refused the connection: not authorized; check user name and password",
                reasonCode: reason, properties: properties)
        case .unsupportedProtocolVersion:
            self.init(
                .unsupportedVersion, "the server does not speak this version of MQTT (\(words)); choose another",
                reasonCode: reason, properties: properties)
        default:
            self.init(
                .refused, "the server refused the connection: \(words)", reasonCode: reason, properties: properties)
        }
    }

    /// DISCONNECT from the server.
    init(disconnect reason: MQTTReasonCode, properties: MQTTProperties) {
        // 0x00 is called success in every other packet (MQTT 5.0, 3.14.2.1).
        let words =
            reason == .normalDisconnection
            ? "normal disconnection (0x00)" + (properties.reasonString.map { ": \($0)" } ?? "")
            : reason.words(properties)
        if reason == .sessionTakenOver {
            self.init(
                .takenOver, "another client connected with the same client identifier; give each its own",
                reasonCode: reason, properties: properties)
        } else {
            self.init(
                .connectionLost, "the server ended the connection: \(words)", reasonCode: reason,
                properties: properties)
        }
    }

    /// A message that its publisher waits for, or that was enqueued, was not delivered.
    init(undelivered outcome: MQTTPublishCompletion.Outcome, _ reason: MQTTReasonCode, _ properties: MQTTProperties) {
        switch outcome {
        case .expired:
            self.init(
                .expired,
                "The message expired before it could be sent. Raise its Message Expiry Interval if it may wait.")
        case .sessionLost:
            self.init(
                .sessionLost,
                "The server lost the session; whether the message arrived is unknown. Publish it again, or set republishesAfterSessionLoss."
            )
        case .unsendable:
            self.init(
                .notAllowed,
                "The server's limits do not allow this message: \(reason). Publish one within MQTTConnectionInfo's limits.",
                reasonCode: reason)
        case .discarded:
            self.init(.disconnected, "The session was discarded; whether the message arrived is unknown.")
        default:
            self.init(
                .refused,
                "The server refused the message: \(reason.words(properties)). Check what this user may publish.",
                reasonCode: reason, properties: properties)
        }
    }

    /// A closure of ``MQTTAuthentication`` failed.
    init(authentication error: any Error) {
        self.init(
            .badCredentials,
            "The authentication failed: \(error). Check configuration.authentication.", underlying: error)
    }

    init(store error: any Error) {
        self.init(
            .storeFailed,
            "The session store cannot be used: \(error). Repair or replace it, then call connect() again.",
            underlying: error)
    }

    /// Whether it is about AUTH or the authentication method, which only MQTT 5.0 has (4.12, 3.15).
    private static func isAboutAuthentication(_ violation: MQTTProtocolError) -> Bool {
        violation.clause.contains("4.12") || violation.clause.contains("3.15")
    }
}
