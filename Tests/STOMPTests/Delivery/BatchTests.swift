import STOMP
import TestSupport
import Testing

@Suite("Delivery: batches", .turns)
struct BatchTests {
    @Test func `batches hold the same messages, and continue where an iterator of messages stopped`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/numbers")
            let count = 2_000
            try await client.send((0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/numbers") })
            var numbers = try await messages.texts(3).map { Int($0) ?? -1 }
            let left = count - numbers.count
            numbers += try await withTimeout(.seconds(60), "the batches") {
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
        }
    }
}
