import MQTT

/// What a short program costs: connects to a port of this machine, publishes one message, and ends when it is
/// acknowledged. Without a port it ends at once, as an empty program with the same imports does.
///
/// With a topic behind the port it has a will for that topic, and ends at once after `disconnect()`.
@main
enum FirstMessage {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count > 1 else { return }
        var configuration = MQTTConfiguration(clientID: "first")
        if arguments.count > 2 { configuration.will = MQTTWill("gone".utf8, to: arguments[2]) }
        let client = MQTTClient("mqtt://127.0.0.1:\(arguments[1])", configuration: configuration)
        try await client.connect()
        try await client.publish("hello", to: "first", qos: .atLeastOnce)
        if arguments.count > 2 { await client.disconnect() }
    }
}
