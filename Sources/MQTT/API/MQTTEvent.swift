public import MQTTCore
public import MessagingShell
import MessagingWire
public import Transport

/// The state of a client's connection; see ``MQTTClient/states``.
public typealias MQTTConnectionState = ConnectionState<MQTTError>

/// Something that happened to a client, for logs and dashboards; see ``MQTTClient/events``.
public enum MQTTEvent: ClientEvent {
    /// The connection's state changed.
    case stateChanged(MQTTConnectionState)
    /// The client tries to connect to this server.
    case connecting(to: BrokerURL)
    /// The client leaves this server gracefully, and opens another connection: because this one has reached its age of
    /// ``ReconnectPolicy/maximumConnectionAge``, or because of ``MQTTClient/reconnect()``.
    case moving(from: BrokerURL, after: Duration)
    /// The attempt failed; another server or attempt may succeed.
    case attemptFailed(BrokerURL, MQTTError)
    /// The server accepted the connection.
    case connected(MQTTConnectionInfo)
    /// The server has lost the session while messages were under way, here or in an earlier process with the same store.
    /// Nothing is lost: `republished` messages are sent again, and `possibleDuplicates` of them have QoS 2 and may arrive
    /// twice. A clean start discards the session too. Not reported for messages that cannot have been sent.
    /// Without such messages the loss shows in ``connected(_:)``, whose `sessionPresent` is false.
    case sessionLost(republished: Int, possibleDuplicates: Int)
    /// The `credentialsProvider` is called for this server.
    case credentialsRequested(for: BrokerURL)
    /// The connection ended without a request of the user.
    case connectionLost(MQTTError)
    /// The server granted a new subscription to this filter, with this reason code; again if the filter is subscribed once more
    /// because one was added that overlaps with it.
    case subscribed(filter: String, MQTTReasonCode)
    /// The server has answered UNSUBSCRIBE for this filter.
    case unsubscribed(filter: String)
    /// The server granted a subscription after a reconnect, with this reason code.
    case resubscribed(filter: String, MQTTReasonCode)
    /// The server refused a filter of a declared subscription, or of any subscription after a reconnect. The sequence throws
    /// when it has lost its last filter.
    case subscriptionLost(filter: String, MQTTReasonCode)
    /// A received message was acknowledged and dropped, because its topic or its properties are invalid; see
    /// ``MQTTConfiguration/dropsInvalidMessages``.
    case invalidMessageDropped(topic: String, MQTTProtocolError)
    /// The server acknowledged a QoS 2 message as if it had QoS 1, as RabbitMQ 3 does with all of them: the messages of
    /// this connection arrive at least once, and may arrive more often. Reported once for each connection.
    case exactlyOnceUnavailable
    /// The server acknowledged no message for this time while some were awaited, and the connection ends: the message that
    /// has waited longest was published to this topic with this QoS. See ``MQTTConfiguration/acknowledgementTimeout``.
    case acknowledgementTimedOut(topic: String, QoS, after: Duration)
    /// The server has sent more QoS 1 and 2 messages without an acknowledgement than the client allows with this Receive
    /// Maximum, as Mosquitto 2.0.11 does. They are received nevertheless, unless
    /// ``MQTTConfiguration/enforcesReceiveMaximum`` is set. Reported once for each connection.
    case receiveMaximumExceeded(UInt16)
    /// The server may send no more QoS 1 and 2 messages, because a subscription with manual acknowledgement has not
    /// acknowledged what it received: the oldest message has this topic, and arrived this long ago. A message that was
    /// forgotten holds up all after it, since acknowledgements leave in order. Reported once until at least half of
    /// ``MQTTConfiguration/receiveMaximum`` is free again, and every ten seconds at most; 5.0 only. See ``ClientBacklog/unacknowledgedMessages``.
    case receiveMaximumReached(oldestTopic: String, age: Duration)
    /// The client has sent PINGREQ.
    case pingSent
    /// The server answered PINGREQ after this time.
    case pingAnswered(Duration)
    /// The server has completed a repeated authentication.
    case reauthenticated
    /// The server redirected the client to another one; a permanent redirection holds for the life of the client.
    case redirected(to: Endpoint, isPermanent: Bool)
    /// The server refused a version of the protocol, and this one is tried next.
    case versionChanged(MQTTVersion)
    /// A message of ``MQTTClient/enqueue(_:)``, in this process or an earlier one, will not be
    /// delivered: the server refused it, it expired, it cannot be sent, or it was dropped from a full queue. Also for a
    /// QoS 0 message that waited in the queue.
    case undelivered(MQTTError)
    /// Two connections have ended while this message, or SUBSCRIBE, alone was unanswered. Others pass it from now on: see
    /// <doc:Sessions#Requests-that-end-connections>. It is neither lost nor given up.
    case requestPassedOver(MQTTError)
    /// A connection ended while this many QoS 0 messages waited in the outbox; they were discarded. Messages that
    /// the system had accepted may be lost as well, and are not counted. With TLS, WebSocket or a proxy the count may
    /// include messages that were sent.
    case unsentMessagesDiscarded(Int)
    /// The client acknowledged messages on its own, because no subscription that matches them followed within ten
    /// seconds. ``MQTTConfiguration/unmatchedMessagePolicy`` then keeps or drops them.
    ///
    /// They are those that a subscription with manual acknowledgement and these filters left when it ended; without filters
    /// those of a resumed session that no subscription matched. With a session that ends with its connection, or a session
    /// store, the messages of a subscription are acknowledged when it ends.
    case messagesUnclaimed(filters: [String], count: Int)
    /// A message that was kept because it matched no subscription was dropped, or with
    /// ``MQTTUnmatchedMessagePolicy/off`` was not kept; see ``MQTTConfiguration/unmatchedMessagePolicy``.
    case unmatchedMessageDropped(topic: String, reason: MQTTUnmatchedMessagePolicy.DropReason)
    /// The session store is damaged: only the records before the damage were read.
    case storeDamaged(StoredSession.Damage)
    /// The session store has stored nothing for ``MQTTConfiguration/requestTimeout``, although something waits for it: calls that
    /// wait for an answer end with ``MQTTError/Code/timedOut``. Reported again after that time.
    case storeUnanswered
    /// The server ended the connection with DISCONNECT.
    case disconnectedByServer(MQTTReasonCode, MQTTProperties)
    /// Nothing more is read from the connection until the receiver of this subscription has taken half of what waits, because
    /// its buffer is full, or that of the whole connection. Answers wait meanwhile too. See ``BufferPolicy``.
    ///
    /// Reported again each time that the receiver has taken no message for ``MQTTConfiguration/requestTimeout``. Calls that wait
    /// for an acknowledgement then throw ``MQTTError/Code/timedOut``. After this time it is also reported for a receiver with
    /// automatic acknowledgement for which nothing but acknowledgements wait, if the server may send no more without them, or if
    /// acknowledgements of other messages wait behind them.
    case readingPaused(for: String)
    /// The server has taken nothing for five seconds, while a caller of ``MQTTClient`` waits for room in the outbox
    /// (``MQTTConfiguration/maximumOutboxBytes``), or so much else waits there that nothing is read. Reported once;
    /// ``sendingResumed(after:)`` or the end of the connection follows. Callers wait for as long as the connection lasts, because
    /// the server may be overloaded, or its memory full; they throw `timedOut` if the client reads nothing either, see
    /// ``readingPaused(for:)``.
    case sendingStalled
    /// After ``sendingStalled``: there is room in the outbox again, or the callers that waited for it have ended. The time is
    /// how long that took.
    case sendingResumed(after: Duration)
    /// A task of ``MQTTClient/withExecutor(_:)``, or several in a row, took this long without a pause: no connection of the
    /// process was served meanwhile. Reported when it took more than 100 ms, to the clients whose `withExecutor` is under way.
    case executorHeld(for: Duration)
}

extension MQTTEvent: CustomStringConvertible {
    /// The case and its values.
    public var description: String {
        switch self {
        case .connected(let info):
            "connected(MQTT \(info.version), clientID: \(OneLine.text(info.clientID)), sessionPresent: \(info.sessionPresent)\(info.sessionMayBeAnother ? " (it may be another)" : ""), "
                + "keepAlive: \(info.keepAlive) s, sessionExpiry: \(info.sessionExpiry) s)"
        case .exactlyOnceUnavailable: "exactlyOnceUnavailable"
        case .pingSent: "pingSent"
        case .sendingStalled: "sendingStalled"
        case .reauthenticated: "reauthenticated"
        case .disconnectedByServer(let reason, let properties):
            "disconnectedByServer(\(properties.text(afterDisconnect: reason)))"
        case .stateChanged, .connecting, .moving, .attemptFailed, .sessionLost, .credentialsRequested,
            .connectionLost, .subscribed, .unsubscribed, .resubscribed, .subscriptionLost, .invalidMessageDropped,
            .acknowledgementTimedOut, .receiveMaximumExceeded, .receiveMaximumReached, .pingAnswered, .redirected,
            .versionChanged, .undelivered, .requestPassedOver, .unsentMessagesDiscarded, .messagesUnclaimed,
            .unmatchedMessageDropped,
            .storeDamaged, .storeUnanswered, .executorHeld, .readingPaused, .sendingResumed:
            OneLine.values(of: self)
        }
    }
}
