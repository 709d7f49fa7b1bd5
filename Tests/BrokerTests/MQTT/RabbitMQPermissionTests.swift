import MQTT
import TestSupport
import Testing

/// RabbitMQ 3 closes the connection when a client publishes or subscribes to a topic that its user has no permission for:
/// one such request beside healthy ones.
@Suite(.serialized, .requires(.rabbitMQ), .turns(minutes: 10))
struct RabbitMQPermissionTests {
    private func start() async throws -> (RabbitMQ, Int) {
        let broker = try await RabbitMQ.start { $0.topics = (write: "^healthy.*", read: "^healthy.*") }
        return (broker, try #require(broker.mqttPort))
    }

    private func client(_ port: Int, _ id: String = "test-%%%%") -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: id)
        configuration.allowSlowBrokers()
        configuration.credentials = Credentials(userName: "guest", password: "guest")
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        return MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
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
        let (broker, port) = try await start()
        let receiver = client(port)
        try await receiver.connect()
        let messages = try await receiver.subscribe(to: "healthy/#", qos: .atLeastOnce)
        let sender = client(port)
        try await sender.connect()
        let forbidden = Task { try await sender.publish("x", to: "forbidden/a", qos: .atLeastOnce) }
        for number in 0..<20 {
            try await sender.enqueue(MQTTOutgoingMessage("\(number)", to: "healthy/\(number)", qos: .atLeastOnce))
            try await Task.sleep(for: .milliseconds(20))
        }
        let error = await #expect(throws: MQTTError.self) { try await forbidden.value }
        #expect(error?.code == .refused)
        #expect(error?.message.contains("forbidden/a") == true, "\(String(describing: error))")
        #expect(try await numbers(messages, 20) == Set((0..<20).map { "\($0)" }))
        try await sender.publish("more", to: "healthy/more", qos: .atLeastOnce)
        await sender.disconnect()
        await receiver.disconnect()
        await broker.stop()
    }

    @Test func `a forbidden subscription fails and names its filter, and all others receive`() async throws {
        let (broker, port) = try await start()
        let client = client(port)
        try await client.connect()
        let messages = try await client.subscribe(to: "healthy/#", qos: .atLeastOnce)
        let error = await #expect(throws: MQTTError.self) { try await client.subscribe(to: "forbidden/#") }
        #expect(error?.code == .refused)
        #expect(error?.message.contains("forbidden/#") == true, "\(String(describing: error))")
        for number in 0..<20 { try await client.publish("\(number)", to: "healthy/\(number)", qos: .atLeastOnce) }
        #expect(try await numbers(messages, 20) == Set((0..<20).map { "\($0)" }))
        await client.disconnect()
        await broker.stop()
    }
}
