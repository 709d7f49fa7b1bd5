public import MessagingShell
import MessagingWire
public import STOMPCore

/// The state of a client's connection; see ``STOMPClient/states``.
public typealias STOMPConnectionState = ConnectionState<STOMPError>

/// Something that happened to a client, for logs and dashboards; see ``STOMPClient/events``.
public enum STOMPEvent: ClientEvent {
    /// The connection's state changed.
    case stateChanged(STOMPConnectionState)
    /// The client tries to connect to this server.
    case connecting(to: BrokerURL)
    /// The client leaves this server gracefully, and opens another connection: because this one has reached its age of
    /// ``ReconnectPolicy/maximumConnectionAge``, or because of ``STOMPClient/reconnect()``.
    case moving(from: BrokerURL, after: Duration)
    /// The attempt failed; another server or attempt may succeed.
    case attemptFailed(BrokerURL, STOMPError)
    /// The server accepted the connection.
    case connected(STOMPConnected)
    /// The server sent ERROR; the connection ends.
    case errorReceived(STOMPServerError)
    /// The connection ended without a request of the user.
    case connectionLost(STOMPError)
    /// A connection ended while this many messages waited in the outbox; they were discarded. Messages with a receipt, and
    /// those of transactions, are not counted: their callers get an error. Messages that the system had accepted may be lost
    /// as well, and are not counted. With TLS, WebSocket or a proxy the count may include messages that were sent.
    case unsentMessagesDiscarded(Int)
    /// The `credentialsProvider` is called for this server.
    case credentialsRequested(for: BrokerURL)
    /// The server sent no RECEIPT for this time while some were awaited, and the connection ends: the frame with this
    /// `receipt` has waited longest. See ``STOMPConfiguration/acknowledgementTimeout``.
    case acknowledgementTimedOut(receiptID: String, after: Duration)
    /// The client has sent a heart-beat.
    case heartBeatSent
    /// This server sends no heart-beats, although the client asks for them (``STOMPConfiguration/incomingHeartBeat``).
    ///
    /// If the link breaks silently, only TCP keep-alive notices, after two and a half times that interval, and not beyond a
    /// proxy or a load balancer. Have the server send heart-beats; in Spring give the broker a `TaskScheduler`.
    case heartBeatsDeclined(by: BrokerURL)
    /// The server confirmed a new subscription.
    case subscribed(destination: String)
    /// The client ended a subscription.
    case unsubscribed(destination: String)
    /// A subscription ended while this many messages that the client had received for it were neither acknowledged nor
    /// rejected, read or not. ActiveMQ delivers them to another consumer at once, RabbitMQ only when this connection ends.
    case messagesLeftUnanswered(destination: String, count: Int)
    /// The server confirmed a subscription after a reconnect.
    case resubscribed(destination: String)
    /// The server refused a declared subscription, or any subscription after a reconnect: its sequence has thrown.
    case subscriptionLost(destination: String, STOMPError)
    /// The server sent a frame that the specification does not define; it is ignored.
    case unknownFrameReceived(STOMPFrame)
    /// This many messages arrived that belong to no subscription, or to no request that still waits; they are ignored.
    case unmatchedMessages(Int)
    /// Nothing more is read from the connection until the receiver of this subscription has taken half of what waits, because
    /// its buffer is full, or that of the whole connection. Answers wait meanwhile too: when
    /// the receiver has taken no message for ``STOMPConfiguration/requestTimeout``, calls that wait for a RECEIPT throw
    /// ``STOMPError/Code/timedOut``, and this is reported again. See ``BufferPolicy``.
    case readingPaused(for: String)
    /// The server has taken nothing for five seconds, while a caller of ``STOMPClient`` waits for room in the outbox
    /// (``STOMPConfiguration/maximumOutboxBytes``), or so much else waits there that nothing is read. Reported once;
    /// ``sendingResumed(after:)`` or the end of the connection follows. Callers wait for as long as the connection lasts, because
    /// the server may be overloaded, or its memory full; they throw `timedOut` if the client reads nothing either, see
    /// ``readingPaused(for:)``.
    case sendingStalled
    /// After ``sendingStalled``: there is room in the outbox again, or the callers that waited for it have ended. The time is
    /// how long that took.
    case sendingResumed(after: Duration)
    /// A task of ``STOMPClient/withExecutor(_:)``, or several in a row, took this long without a pause: no connection of the
    /// process was served meanwhile. Reported when it took more than 100 ms, to the clients whose `withExecutor` is under way.
    case executorHeld(for: Duration)
}

extension STOMPEvent: CustomStringConvertible {
    /// The case and its values.
    public var description: String {
        switch self {
        case .connected(let connected):
            "connected(STOMP \(connected.version), server: \(OneLine.text(connected.server ?? "unnamed")), heartBeat: \(connected.heartBeat))"
        case .heartBeatSent: "heartBeatSent"
        case .sendingStalled: "sendingStalled"
        case .stateChanged, .connecting, .moving, .attemptFailed, .errorReceived, .connectionLost,
            .unsentMessagesDiscarded, .credentialsRequested, .subscribed, .unsubscribed,
            .messagesLeftUnanswered, .resubscribed, .subscriptionLost, .acknowledgementTimedOut, .unknownFrameReceived,
            .unmatchedMessages, .executorHeld, .readingPaused, .sendingResumed, .heartBeatsDeclined:
            OneLine.values(of: self)
        }
    }
}
