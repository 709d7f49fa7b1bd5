import MQTT
import STOMP

extension MQTTClient: VictimClient {
    nonisolated func listen() async throws -> MQTTSubscription { try await subscribe(to: "#", qos: .exactlyOnce) }

    nonisolated func unsubscribe(_ messages: MQTTSubscription) async throws { try await messages.unsubscribe() }

    nonisolated func publishUnanswered(_ payload: [UInt8]) async throws { try await publish(payload, to: "a") }

    nonisolated func publishAnswered() async throws { try await publish("x", to: "a", qos: .atLeastOnce) }

    nonisolated func publishExactlyOnce() async throws { try await publish("x", to: "a", qos: .exactlyOnce) }
}

extension STOMPClient: VictimClient {
    nonisolated func listen() async throws -> STOMPSubscription { try await subscribe(to: "/queue/a") }

    nonisolated func unsubscribe(_ messages: STOMPSubscription) async throws { try await messages.unsubscribe() }

    nonisolated func publishUnanswered(_ payload: [UInt8]) async throws { try await send(payload, to: "/queue/a") }

    nonisolated func publishAnswered() async throws { try await sendAndConfirm("x", to: "/queue/a") }
}
