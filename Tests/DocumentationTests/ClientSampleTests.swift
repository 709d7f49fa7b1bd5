import MQTT
import Testing

/// What the client is meant to read like: a value to publish, values to receive, and a worker, without a declaration of
/// formats. It compiles as it is written.
@Suite struct ClientSampleTests {
    private struct Alert: Codable, Sendable {
        var text: String
    }

    private struct Motion: Codable, Sendable {
        var pitch, roll, yaw: Double
    }

    private func motions(_ id: String, _ attitude: Motion, show: (Alert) -> Void) async throws {
        let client = MQTTClient("mqtt://localhost", clientID: "motions-%%%%")
        await client.start()
        let alerts = try await client.subscribe(to: "/mwm/\(id)/alert", as: Alert.self)
        // Before connecting: a worker misses nothing.
        let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
        try await client.publish(attitude, to: "/mwm/\(id)/motion", retain: true)
        for try await alert in alerts { show(try alert.value) }
        for try await job in jobs { job.acknowledge() }
    }

    @Test func `The sample is compiled, and refuses a client that is never started`() async {
        let client = MQTTClient("mqtt://localhost")
        await #expect(throws: MQTTError.self) {
            try await client.publish(Motion(pitch: 0, roll: 0, yaw: 0), to: "motion", retain: true)
        }
    }
}
