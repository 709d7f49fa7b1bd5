import MQTT
import TestSupport
import Testing

@Suite("Delivery: batches", .turns)
struct BatchTests {
    @Test func `batches hold the same messages, and go on where an iterator of messages was left`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a/#", qos: .atLeastOnce)
        let count = 2_000
        try await client.publish(
            (0..<count).map { .init(Array("\($0)".utf8), to: "a/\($0 % 7)", qos: .atLeastOnce) }
        ).check()
        var numbers: [Int] = []
        for message in try await messages.first(3) { numbers.append(Int(message.text ?? "") ?? -1) }
        let left = count - numbers.count
        numbers += try await withTimeout(.patience, "the batches") {
            var numbers: [Int] = []
            for try await batch in messages.batches {
                #expect(!batch.isEmpty)
                #expect(batch.count == batch.endIndex - batch.startIndex)
                for message in batch { numbers.append(Int(message.text ?? "") ?? -1) }
                if numbers.count >= left { break }
            }
            return numbers
        }
        #expect(numbers == Array(0..<count))
        await client.disconnect()
        for try await _ in messages.batches { Issue.record("a batch after the end") }
        await bench.stop()
    }
}
