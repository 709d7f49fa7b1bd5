import ClientTestSupport
import MQTT
import TestSupport
import Testing

@Suite("Delivery: batches", .turns)
struct BatchTests {
    @Test func `batches hold the same messages, and go on where an iterator of messages was left`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a/#", qos: .atLeastOnce)
        try await ClientChecks.batches(of: messages, client) { texts in
            let sent = texts.enumerated().map { MQTTOutgoingMessage($1, to: "a/\($0 % 7)", qos: .atLeastOnce) }
            try await client.publish(sent).check()
        }
        await bench.stop()
    }
}
