import MQTT

/// What a short program costs: connects to a port of this machine, publishes one message, and ends when it is
/// acknowledged. Without a port it ends at once, as an empty program with the same imports does.
@main
enum FirstMessage {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 1 else { return }
        let client = MQTTClient(
            "mqtt://127.0.0.1:\(arguments[1])", configuration: MQTTConfiguration(clientID: "first"))
        try await client.connect()
        try await client.publish("hello", to: "first", qos: .atLeastOnce)
    }
}
