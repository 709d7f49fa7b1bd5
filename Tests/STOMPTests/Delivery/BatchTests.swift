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
        }
    }

    @Test func `bodies that are kept do not change when the memory of their batches is used again`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(
                to: "/queue/large", buffer: BufferPolicy(overflow: .pauseReading))
            let count = 400
            let sending = Task {
                for number in 0..<count {
                    let body = [UInt8](repeating: UInt8(number % 251), count: 20_000 + number)
                    try await client.send(body, to: "/queue/large")
                }
            }
            let bodies = try await withTimeout(.patience, "the messages") {
                var bodies: [ArraySlice<UInt8>] = []
                for try await message in messages {
                    // Every other one, so that memory is used again.
                    bodies.append(bodies.count % 2 == 0 ? message.body : message.bytes[...])
                    if bodies.count == count { break }
                }
                return bodies
            }
            try await sending.value
            for (number, body) in bodies.enumerated() {
                #expect(body.count == 20_000 + number && body.allSatisfy { $0 == number % 251 })
            }
            await client.disconnect()
        }
    }

    #if os(Linux)
        @Test func `receiving a body of 64 MiB takes the memory of one body`() async {
            await #expect(processExitsWith: .success) {
                let count = 64 << 20
                @Sendable func value(_ name: String, _ request: [UInt8]) -> Substring {
                    let lines = String(decoding: request, as: UTF8.self).split(separator: "\n")
                    return lines.first { $0.hasPrefix(name + ":") }?.dropFirst(name.utf8.count + 1) ?? ""
                }
                @Sendable func message(_ request: [UInt8]) -> String {
                    "MESSAGE\nsubscription:\(value("id", request))\nmessage-id:1\ndestination:/queue/a\n"
                }
                let port = try LargeMessageServer.start(
                    answers: [
                        { _ in Array("CONNECTED\nversion:1.2\n\n\0".utf8) },
                        { request in
                            let receipt = "RECEIPT\nreceipt-id:\(value("receipt", request))\n\n\0"
                            return Array((receipt + message(request) + "content-length:\(count)\n\n").utf8)
                        },
                    ], count: count, end: { Array("\0\(message($0))\nnext\0".utf8) })
                var configuration = STOMPConfiguration()
                configuration.maximumUnreadBytes = 2 * count
                let client = STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
                try await client.connect()
                let peak = try await LargeMessageServer.peak {
                    let messages = try await client.subscribe(to: "/queue/a").first(2)
                    #expect(messages[0].body.count == count)
                    #expect(messages[0].destination == "/queue/a")
                    #expect(messages[1].text == "next")
                }
                // The address sanitizer needs memory of its own.
                let isSanitized = Campaign.environment("ASAN_OPTIONS") != nil
                #expect(peak < 80_000_000 || isSanitized, "\(peak) bytes")
            }
        }
    #endif
}
