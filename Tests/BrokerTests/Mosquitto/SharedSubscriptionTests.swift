import MQTT
import TestSupport
import Testing

/// Mosquitto 2.0 resumes a session after its restart, and has forgotten the session's shared subscriptions.
@Suite(.serialized, .requires(.mosquitto), .turns)
struct SharedSubscriptionTests {
    private func client(
        _ broker: Mosquitto, _ id: String, _ version: MQTTVersion,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        KeptSessions.client(broker.port, id) {
            $0.version = version
            change(&$0)
        }
    }

    private func texts(_ count: Int, of messages: MQTTSubscription) async throws -> [String?] {
        try await withTimeout(.patience, "\(count) messages") {
            var texts: [String?] = []
            for try await message in messages {
                texts.append(message.text)
                if texts.count == count { break }
            }
            return texts
        }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a shared subscription receives every message after the broker has restarted`(version: MQTTVersion)
        async throws
    {
        let broker = try await Mosquitto.start { $0.persistence = true }
        let worker = client(broker, "worker", version)
        try await worker.connect()
        let shared = try await worker.subscribe(to: "$share/workers/jobs", qos: .atLeastOnce)
        let plain = try await worker.subscribe(to: "plain", qos: .atLeastOnce)
        let events = worker.events
        try await broker.restart()
        let resumed = await events.first { event in
            if case .connected(let info) = event { info.sessionPresent } else { false }
        }
        #expect(resumed != nil)
        let sender = client(broker, "sender", version)
        try await sender.connect()
        #expect(
            await eventually {
                // Until the worker is back, nobody has the shared subscription.
                worker.state.isConnected && worker.counters.connections == 2
            })
        // What leaves after the worker's SUBACK comes to its subscription.
        try await worker.publish("ready", to: "plain", qos: .atLeastOnce)
        #expect(try await texts(1, of: plain) == ["ready"])
        for number in 0..<10 { try await sender.publish("\(number)", to: "jobs", qos: .atLeastOnce) }
        let received = try await texts(10, of: shared)
        #expect(received == (0..<10).map { "\($0)" })
        await sender.disconnect()
        await worker.disconnect()
        await broker.stop()
    }

    @Test func `with the option a filter of a kept session brings no retained message again`() async throws {
        let broker = try await Mosquitto.start { $0.persistence = true }
        let client = client(broker, "again", .v5_0) { $0.resubscribesWithSessionPresent = true }
        try await client.connect()
        try await client.publish("kept", to: "retained", qos: .atLeastOnce, retain: true)
        let messages = try await client.subscribe(to: "retained", qos: .atLeastOnce)
        #expect(try await texts(1, of: messages) == ["kept"])
        let events = client.events
        try await broker.restart()
        let resubscribed = try await withTimeout(.patience, "subscribing again") {
            await events.first { event in
                if case .resubscribed("retained", _) = event { true } else { false }
            }
        }
        #expect(resubscribed != nil)
        try await client.publish("new", to: "retained", qos: .atLeastOnce)
        #expect(try await texts(1, of: messages) == ["new"])
        await client.disconnect()
        await broker.stop()
    }
}
