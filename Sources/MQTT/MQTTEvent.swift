public import MQTTCore
public import Messaging

/// Where a client's connection stands; see ``MQTTClient/states``.
public typealias MQTTConnectionState = ConnectionState<MQTTError>

/// Something that happened to a client, for logs and dashboards; see ``MQTTClient/events``.
public enum MQTTEvent: Sendable {
    /// The connection's state changed.
    case stateChanged(MQTTConnectionState)
    /// The server accepted the connection.
    case connected(MQTTConnectionInfo)
    /// The server had no session for us although we had one; messages may come twice.
    case sessionLost(republished: Int, possibleDuplicates: Int)
    /// The server answered a subscription after a reconnect.
    case resubscribed(filter: String, MQTTReasonCode)
    /// The server refused a subscription after a reconnect: its sequence has thrown.
    case subscriptionLost(filter: String, MQTTReasonCode)
    /// The server answered PINGREQ after this time.
    case pingAnswered(Duration)
    /// The server ended the connection and said why.
    case disconnectedByServer(MQTTReasonCode, MQTTProperties)
}
