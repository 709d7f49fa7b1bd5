public import Messaging
public import STOMPCore

/// Where a client's connection stands; see ``STOMPClient/states``.
public typealias STOMPConnectionState = ConnectionState<STOMPError>

/// Something that happened to a client, for logs and dashboards; see ``STOMPClient/events``.
public enum STOMPClientEvent: Sendable {
    /// The connection's state changed.
    case stateChanged(STOMPConnectionState)
    /// The server accepted the connection.
    case connected(STOMPConnected)
    /// The server sent ERROR; the connection ends.
    case errorReceived(STOMPServerError)
    /// The server confirmed a subscription after a reconnect.
    case resubscribed(destination: String)
    /// The server refused a subscription after a reconnect: its sequence has thrown.
    case subscriptionLost(destination: String, STOMPError)
    /// A message came that belongs to no subscription; it is passed over.
    case unmatchedMessages(Int)
}
