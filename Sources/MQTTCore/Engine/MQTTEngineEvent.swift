/// One thing that happened, and where between the messages of its batch.
public struct MQTTEngineEvent: Sendable {
    /// The number of messages in the same ``MQTTEffects`` that came before.
    public var messagesBefore: Int
    /// What happened.
    public var kind: Kind

    public init(messagesBefore: Int, kind: Kind) {
        self.messagesBefore = messagesBefore
        self.kind = kind
    }

    /// What can happen.
    public enum Kind: Sendable {
        // MARK: Both roles

        /// The peer broke the protocol, or a timeout expired. `output` holds a DISCONNECT with the reason where the version
        /// has one; close the connection after it is written.
        case connectionFailed(MQTTConnectionFailure)

        /// The server sent a packet that breaks the protocol: the ``connectionFailed(_:)`` that follows has the details.
        indirect case packetRefused(MQTTRefusedPacket)

        /// The server sent a message with an invalid topic or invalid properties, which was acknowledged and dropped; see
        /// ``MQTTEngineConfiguration/dropsInvalidMessages``.
        indirect case invalidMessageDropped(topic: String, MQTTProtocolError)

        /// The peer sent DISCONNECT. Close the connection. Servers should send none before 5.0; some do.
        indirect case disconnectReceived(MQTTPacket.Disconnect)

        /// The peer sent AUTH: answer with ``MQTTEngine/authenticate(reason:data:properties:at:)``, or nothing is left
        /// to do if its reason code is success.
        indirect case authenticationReceived(MQTTPacket.Auth)

        /// PUBACK, PUBREC or PUBCOMP of a publish carried a reason string or user properties. Comes before the
        /// completion of the same token is reported.
        indirect case acknowledgementProperties(token: UInt64, MQTTProperties)

        // MARK: Client

        /// The server accepted the connection.
        indirect case connected(MQTTConnectionInfo)

        /// The server refused the connection, or ended an accepted one with a second CONNACK, as some do. Close it.
        indirect case connectionRefused(MQTTPacket.Connack)

        /// The answer to SUBSCRIBE: one reason code for each filter, in the order of the filters [MQTT 5.0 3.9.3-1].
        indirect case subscribeCompleted(
            MQTTFilterRequest, codes: [MQTTReasonCode], properties: MQTTProperties)

        /// The answer to UNSUBSCRIBE: one reason code for each filter, success for those that the server left out; none before
        /// 5.0.
        indirect case unsubscribeCompleted(
            MQTTFilterRequest, codes: [MQTTReasonCode], properties: MQTTProperties)

        /// SUBSCRIBE or UNSUBSCRIBE will have no answer: the connection closed. What is wanted is requested again on the
        /// next one.
        indirect case requestFailed(MQTTFilterRequest)

        /// SUBSCRIBE or UNSUBSCRIBE had no answer in time. Its packet identifier stays taken, and a late answer is ignored.
        /// The connection ends if messages wait for the answer: ``MQTTConnectionFailure/subscribeTimeout``.
        indirect case requestLate(MQTTFilterRequest)

        /// SUBSCRIBE or UNSUBSCRIBE of a filter cannot be written: the server does not support what is wanted, or accepts no
        /// packet of that size. A subscription counts as refused.
        indirect case requestNotWritten(MQTTFilterRequest, MQTTUsageError)

        /// A request was given up, because the server ends connections instead of answering it. Comes before the completion
        /// of a message is reported, which is ``MQTTPublishCompletion/Outcome/refused``.
        indirect case requestRefused(MQTTRefusal)

        /// Two connections have ended while a request alone was unanswered, which proves nothing: the link may have broken. The
        /// request waits for its answer still, but others pass it; see ``MQTTEngine``. It is sent after 20 seconds of a
        /// connection, then after 40, and so on up to 640, earlier if connections end for other reasons, and at once if
        /// nothing else is sent or received. Reported once for each request.
        indirect case requestPassedOver(MQTTRefusal)

        /// The server answered a QoS 2 PUBLISH with PUBACK, which ended its exchange as if it had QoS 1: it may arrive more
        /// than once. Reported once for each connection.
        case exactlyOnceUnavailable

        /// The server has sent more messages of QoS 1 and 2 without an acknowledgement than this Receive Maximum of CONNECT
        /// allows. Reported once for each connection.
        case receiveMaximumExceeded(UInt16)

        /// PINGRESP arrived this many nanoseconds after PINGREQ, without the time in which the caller did not read.
        case pingAnswered(after: Int64)

        /// The server had no session for us. Messages that it had not finally acknowledged went back into the queue and
        /// are published again under new identifiers; the tokens are of QoS 2 messages that may have been delivered, so
        /// that they may now be delivered twice [MQTT 5.0 3.2.2-5].
        case sessionLost(republished: Int, possibleDuplicates: [UInt64])

        // MARK: Server

        /// A client asks to connect: answer with ``MQTTEngine/acceptConnection(sessionPresent:properties:at:into:)`` or
        /// ``MQTTEngine/refuseConnection(_:properties:at:)``. The client sent the packets that the same batch reports
        /// after it without waiting for the answer; drop them if the answer is a refusal.
        indirect case connectReceived(MQTTPacket.Connect)

        /// A client subscribes: answer with ``MQTTEngine/acknowledgeSubscribe(_:codes:properties:at:)``.
        indirect case subscribeReceived(MQTTPacket.Subscribe)

        /// A client unsubscribes: answer with ``MQTTEngine/acknowledgeUnsubscribe(_:codes:properties:at:)``.
        indirect case unsubscribeReceived(MQTTPacket.Unsubscribe)
    }
}

/// Why a connection failed.
public enum MQTTConnectionFailure: Sendable, Equatable {
    /// The peer broke the protocol.
    case violation(MQTTProtocolError)
    /// No CONNACK (client) or CONNECT (server) in time.
    case connectTimeout
    /// Nothing was read after PINGREQ within the ping timeout: the connection is dead.
    case pingTimeout
    /// The server acknowledged no message for this many nanoseconds while some were awaited: the oldest was published to
    /// this topic with this QoS. See ``MQTTEngineConfiguration/acknowledgementTimeout``.
    case acknowledgementTimeout(topic: String, QoS, after: Int64)
    /// A client was silent for one and a half times its keep alive [MQTT 5.0 3.1.2-22].
    case keepAliveTimeout
    /// The server did not answer an authentication step in time.
    case authenticationTimeout
    /// The server did not answer a SUBSCRIBE in time that had to come before messages; see
    /// ``MQTTEngine/reconcile(at:into:)``.
    case subscribeTimeout
}

/// What CONNACK established.
public struct MQTTConnectionInfo: Sendable {
    /// The protocol version of the connection.
    public var version: MQTTVersion
    /// Whether the server kept a session for us.
    public var sessionPresent: Bool
    /// The client identifier in force, which the server may have assigned.
    public var clientID: String
    /// The keep alive in force, in seconds; 0 means none [MQTT 5.0 3.1.2-21].
    public var keepAlive: UInt16
    /// The session expiry in force, in seconds.
    public var sessionExpiry: UInt32
    /// What may be sent to the peer.
    public var limits: MQTTPeerLimits
    /// All properties of CONNACK.
    public var properties: MQTTProperties
    /// Whether the session that is present may be another than the client's, so that it has to subscribe again: a CONNECT
    /// before had no answer, with which the server may have begun one, or the server is another.
    public var sessionMayBeAnother = false
    /// Whether the client continues its session: the server reports that it has one, or is of 3.1, which cannot report it,
    /// and was asked to resume it.
    package var continuesSession = false
}

/// What a peer accepts.
public struct MQTTPeerLimits: Sendable, Equatable {
    /// The number of unacknowledged QoS 1 and QoS 2 messages.
    public var receiveMaximum: UInt16 = 65_535
    /// The largest packet in bytes.
    public var maximumPacketSize: UInt32 = .max
    /// The number of topic aliases.
    public var topicAliasMaximum: UInt16 = 0
    /// The highest QoS.
    public var maximumQoS: QoS = .exactlyOnce
    /// Whether retained messages are kept.
    public var retainAvailable = true
    /// Whether filters may hold wildcards.
    public var wildcardSubscriptionAvailable = true
    /// Whether subscription identifiers are understood.
    public var subscriptionIdentifiersAvailable = true
    /// Whether shared subscriptions are understood.
    public var sharedSubscriptionAvailable = true

    /// What every server accepts unless it announces other limits.
    public init() {}
}
