import ClientTestSupport
import MessagingShell
import MessagingWire
import TestSupport
import Testing
import Transport

@testable import STOMP

@Suite("Delivery: batches", .turns)
struct BatchTests {
    @Test func `batches hold the same messages, and continue where an iterator of messages stopped`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let messages = try await client.subscribe(to: "/queue/numbers")
            try await ClientChecks.batches(of: messages, client) { texts in
                try await client.send(texts.map { STOMPOutgoingMessage($0, to: "/queue/numbers") })
            }
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

    @Test func `a long read lets others have the lock after each 64 KiB, and is one batch all the same`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected()
            let subscription = try await client.subscribe(to: "/queue/q")
            let id = subscription.handle.route.id
            let head = "MESSAGE\nsubscription:\(id)\nmessage-id:1\ndestination:/queue/q\n\n"
            let frame = Array((head + String(repeating: "x", count: 1_000) + "\0").utf8)
            let count = 500
            let bytes = (0..<count).flatMap { _ in frame }
            let core = client.core
            let calls = await core.loop.result {
                let afterLock = STOMPAfterLock()
                let now = core.loop.now
                var (calls, consumed) = (0, 0)
                repeat {
                    consumed = core.link.perform { $0.receive(bytes.span.bytes, at: now, into: afterLock) }
                    calls += 1
                } while afterLock.isReceiving
                #expect(consumed == bytes.count)
                #expect(afterLock.effects.messages.count == count)
                afterLock.perform(bytes.span.bytes)
                return calls
            }
            let perPiece = (64 << 10) / frame.count
            #expect(calls == (count + perPiece - 1) / perPiece)
            var batches = subscription.batches.makeAsyncIterator()
            let batch = try #require(try await batches.next())
            #expect(batch.count == count && batch.allSatisfy { $0.body.count == 1_000 })
            await client.disconnect()
        }
    }

    @Test func `the memory of large batches is freed when no more arrive, without heart-beats and while connected`()
        async throws
    {
        let server = FakeServer()
        let clock = try ManualClock()
        let client = server.client(clock: clock) {
            ($0.outgoingHeartBeat, $0.incomingHeartBeat) = (.zero, .zero)
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        let subscribing = Task { try await client.subscribe(to: "/queue/q") }
        let lines = try await connection.frame().split(separator: "\n")
        func header(_ name: String) -> Substring { lines.first { $0.hasPrefix(name) }?.dropFirst(name.count) ?? "" }
        connection.send("RECEIPT\nreceipt-id:\(header("receipt:"))\n\n\0")
        let messages = try await subscribing.value
        func receive(_ count: Int) async throws {
            let message = "MESSAGE\nsubscription:\(header("id:"))\nmessage-id:1\ndestination:/queue/q\n\n"
            let frame = message + String(repeating: "x", count: 1_000) + "\0"
            connection.send(String(repeating: frame, count: count))
            _ = try await messages.first(count)
        }
        let loop = clock.loop
        @Sendable func keptBytes() async -> Int {
            await loop.result { loop.sharedObject(STOMPAfterLock.self) { STOMPAfterLock() }.pool.keptBytes }
        }
        try await receive(30)
        #expect(await eventually { await keptBytes() >= 16 << 10 })
        await clock.advance(by: .seconds(5))
        try await receive(30)
        #expect(await eventually { await keptBytes() >= 16 << 10 })
        await clock.advance(by: .seconds(6))
        #expect(await keptBytes() > 0, "used six seconds ago")
        await clock.advance(by: .seconds(10))
        #expect(await keptBytes() == 0)
        #expect(client.state.isConnected)
        connection.close()
        await client.disconnect()
    }

    @Test func `the bound of a buffer counts the memory of small messages, which is more than their bytes`()
        async throws
    {
        let server = FakeServer()
        let client = server.client()
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        let bound = 64 << 10
        let subscribing = Task {
            try await client.subscribe(to: "/queue/q", buffer: BufferPolicy(messages: 100_000, bytes: bound))
        }
        let lines = try await connection.frame().split(separator: "\n")
        func header(_ name: String) -> Substring { lines.first { $0.hasPrefix(name) }?.dropFirst(name.count) ?? "" }
        connection.send("RECEIPT\nreceipt-id:\(header("receipt:"))\n\n\0")
        let messages = try await subscribing.value
        // One read each: the most memory for a message.
        let frame = "MESSAGE\nsubscription:\(header("id:"))\nmessage-id:1\ndestination:/q\n\n24 bytes, or nearly that\0"
        for number in 1...600 {
            connection.send(frame)
            #expect(await eventually(every: .zero) { client.counters.messagesReceived == number })
        }
        // The object of a batch, its two arrays and a place in a queue take more than 200 bytes.
        #expect(600 - messages.droppedCount <= bound / 256, "\(600 - messages.droppedCount) wait")
        #expect(600 - messages.droppedCount > bound / 1024)
        connection.close()
        await client.disconnect()
    }

    #if os(Linux)
        @Test func `receiving a body of 64 MiB takes the memory of two bodies at most`() async {
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
                #expect(peak < 2 * count + 12_000_000 || isSanitized, "\(peak) bytes")
            }
        }
    #endif
}
