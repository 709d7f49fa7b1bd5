public import Messaging
public import STOMPCore

/// Where a client's connection stands; see ``STOMPClient/states``.
public typealias STOMPConnectionState = ConnectionState<STOMPError>

/// Something that happened to a client, for logs and dashboards; see ``STOMPClient/events``.
public enum STOMPEvent: ClientEvent {
    package typealias Failure = STOMPError

    /// The connection's state changed.
    case stateChanged(STOMPConnectionState)
    /// This server is tried now.
    case connecting(to: BrokerURL)
    /// It did not come to a connection; another server or another attempt may.
    case attemptFailed(BrokerURL, STOMPError)
    /// The server accepted the connection.
    case connected(STOMPConnected)
    /// The server sent ERROR; the connection ends.
    case errorReceived(STOMPServerError)
    /// The connection ended, and nobody had asked for it.
    case connectionLost(STOMPError)
    /// A connection ended while this many messages waited in the outbox; they were discarded. Messages with a receipt, and
    /// those of transactions, are not counted: their callers get an error. What the system had taken for sending may be
    /// lost as well, and is not counted. With TLS, WebSocket or a proxy the count may include messages that were still
    /// sent.
    case unsentMessagesDiscarded(Int)
    /// The server confirmed a new subscription.
    case subscribed(destination: String)
    /// A subscription was ended from here.
    case unsubscribed(destination: String)
    /// The server confirmed a subscription after a reconnect.
    case resubscribed(destination: String)
    /// The server refused a subscription after a reconnect: its sequence has thrown.
    case subscriptionLost(destination: String, STOMPError)
    /// A frame that the specification does not list; it is passed over.
    case unknownFrameReceived(STOMPFrame)
    /// A message came that belongs to no subscription; it is passed over.
    case unmatchedMessages(Int)
}
