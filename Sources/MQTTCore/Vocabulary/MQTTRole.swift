/// The two ends of an MQTT connection.
public enum MQTTRole: Sendable, Hashable {
    case client
    case server
}

extension MQTTRole: CustomStringConvertible {
    public var description: String { self == .client ? "client" : "server" }
}
