public import MQTTCore
public import Messaging
public import Transport

/// Where a client's connection stands; see ``MQTTClient/states``.
public typealias MQTTConnectionState = ConnectionState<MQTTError>

/// Something that happened to a client, for logs and dashboards; see ``MQTTClient/events``.
public enum MQTTEvent: ClientEvent {
    package typealias Failure = MQTTError

    /// The connection's state changed.
    case stateChanged(MQTTConnectionState)
    /// This server is tried now.
    case connecting(to: BrokerURL)
    /// It did not come to a connection; another server or another attempt may.
    case attemptFailed(BrokerURL, MQTTError)
    /// The server accepted the connection.
    case connected(MQTTConnectionInfo)
    /// The server had no session for us although we had one; messages may come twice.
    case sessionLost(republished: Int, possibleDuplicates: Int)
    /// The server answered a subscription after a reconnect.
    case resubscribed(filter: String, MQTTReasonCode)
    /// The server refused a subscription after a reconnect: its sequence has thrown.
    case subscriptionLost(filter: String, MQTTReasonCode)
    /// A received message was acknowledged and dropped, because its topic is invalid; see
    /// ``MQTTConfiguration/dropsInvalidMessages``.
    case invalidMessageDropped(topic: String, MQTTProtocolError)
    /// The server acknowledged a QoS 2 message as if it had QoS 1, as RabbitMQ 3 does with all of them: the messages of
    /// this connection arrive at least once, and may arrive more often. Reported once for each connection.
    case exactlyOnceUnavailable
    /// The server answered PINGREQ after this time.
    case pingAnswered(Duration)
    /// The server ended an authentication that was renewed.
    case reauthenticated
    /// The server sent us to another one; a permanent change is kept for the life of the client.
    case redirected(to: Endpoint, isPermanent: Bool)
    /// The server refused a version of the protocol, and this one is tried next.
    case versionChanged(MQTTVersion)
    /// A message that was taken by ``MQTTClient/enqueue(_:to:qos:retain:properties:)``, in this process or an earlier
    /// one, was given up: refused by the server, expired, not sendable, or dropped for want of room. Also a QoS 0 message
    /// that waited in the queue.
    case undelivered(MQTTError)
    /// A connection ended while this many QoS 0 messages waited in the outbox; they were discarded. What the system had
    /// taken for sending may be lost as well, and is not counted. With TLS, WebSocket or a proxy the count may include
    /// messages that were still sent.
    case unsentMessagesDiscarded(Int)
    /// A message that was kept because it matched no subscription was given up; see ``MQTTConfiguration/unmatchedMessagePolicy``.
    case unmatchedMessageDropped(topic: String, reason: MQTTUnmatchedMessagePolicy.DropReason)
    /// The session store was damaged: what it held before the damage is there.
    case storeDamaged(StoredSession.Damage)
    /// The server ended the connection and said why.
    case disconnectedByServer(MQTTReasonCode, MQTTProperties)
}
