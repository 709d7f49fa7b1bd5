import MQTT
import TestSupport
import Testing

/// RabbitMQ 3 closes the connection when a client publishes or subscribes to a topic that its user has no permission for:
/// one such request beside healthy ones.
@Suite(.serialized, .requires(.rabbitMQ), .turns)
struct RabbitMQPermissionTests {
    private func client() async throws -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "test-%%%%")
        configuration.allowSlowBrokers()
        configuration.credentials = Credentials(
            userName: SharedBrokers.limitedUser.name, password: SharedBrokers.limitedUser.password)
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        let port = try #require(try await SharedBrokers.rabbitMQ().mqttPort)
        let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
        try await client.connect()
        return client
    }

    private func numbers(_ messages: MQTTSubscription, _ count: Int) async throws -> Set<String> {
        try await withTimeout(.patience, "\(count) messages") {
            var received: Set<String> = []
            for try await message in messages where received.count < count {
                received.insert(message.text ?? "")
                if received.count == count { break }
            }
            return received
        }
    }

    @Test func `a forbidden publish fails and names its topic, and all others arrive`() async throws {
        let receiver = try await client()
        let messages = try await receiver.subscribe(to: "healthy/p/#", qos: .atLeastOnce)
        let sender = try await client()
        let forbidden = Task { try await sender.publish("x", to: "forbidden/a", qos: .atLeastOnce) }
        for number in 0..<20 {
            try await sender.enqueue(MQTTOutgoingMessage("\(number)", to: "healthy/p/\(number)", qos: .atLeastOnce))
            try await Task.sleep(for: .milliseconds(20))
        }
        let error = await #expect(throws: MQTTError.self) { try await forbidden.value }
        #expect(error?.code == .refused)
        #expect(error?.message.contains("forbidden/a") == true, "\(String(describing: error))")
        #expect(try await numbers(messages, 20) == Set((0..<20).map { "\($0)" }))
        try await sender.publish("more", to: "healthy/p/more", qos: .atLeastOnce)
        await sender.disconnect()
        await receiver.disconnect()
    }

    @Test func `a forbidden subscription fails and names its filter, and all others receive`() async throws {
        let client = try await client()
        let messages = try await client.subscribe(to: "healthy/s/#", qos: .atLeastOnce)
        let error = await #expect(throws: MQTTError.self) { try await client.subscribe(to: "forbidden/#") }
        #expect(error?.code == .refused)
        #expect(error?.message.contains("forbidden/#") == true, "\(String(describing: error))")
        for number in 0..<20 { try await client.publish("\(number)", to: "healthy/s/\(number)", qos: .atLeastOnce) }
        #expect(try await numbers(messages, 20) == Set((0..<20).map { "\($0)" }))
        await client.disconnect()
    }
}
