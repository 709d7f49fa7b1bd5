import MQTT

/// Clients with sessions that outlive their connections, and what they publish.
enum KeptSessions {
    /// A client that is back soon, and finds its session.
    static func client(
        _ port: Int, _ id: String, _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: id)
        configuration.version = .v5_0
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(3600)
        configuration.reconnect.initialDelay = .milliseconds(20)
        configuration.reconnect.maximumDelay = .milliseconds(100)
        change(&configuration)
        return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
    }

    /// Publishes these numbers as texts, 500 at a time, and returns when all of them are acknowledged.
    static func publish(_ numbers: Range<Int>, to topic: String, _ qos: QoS, by sender: MQTTClient) async throws {
        for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 500) {
            let messages = (start..<min(numbers.upperBound, start + 500)).map {
                MQTTOutgoingMessage(Array("\($0)".utf8), to: topic, qos: qos)
            }
            try await sender.publish(messages).check()
        }
    }
}
