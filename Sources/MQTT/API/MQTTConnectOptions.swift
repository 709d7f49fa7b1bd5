public import MQTTCore

/// What ``MQTTConfiguration/connectProvider`` may change about the next CONNECT. It begins with the configuration's values.
public struct MQTTConnectOptions: Sendable {
    /// The number of the attempt, from 1 since the last success; a round through all servers counts as one.
    public let attempt: Int
    /// The message that the server publishes when this connection ends without DISCONNECT.
    public var will: MQTTWill?
    /// Further properties of CONNECT; 5.0 only.
    public var properties: MQTTProperties
    /// The longest silence on the connection, rounded up to whole seconds, up to 65,535; zero turns keep alive off.
    public var keepAlive: Duration
    /// Whether the connection begins a new session. It begins with what the last attempt had, and with false after a
    /// connection has begun a session that the server keeps.
    public var cleanStart: Bool
}
