import Foundation
import STOMP
import STOMPCore

extension STOMPClient {
    /// Reads and writes so far.
    nonisolated func calls() -> Int { counters.reads + counters.writes }
}

/// The rows for STOMP 1.2 with the book's location messages, end to end over loopback against the broker in C.
struct STOMPRows {
    let port: String
    let limit: String
    let rounds: Int
    let scale: Double

    static let destination = "/topic/device.2262EC25-E9FD-4578-BADE-4E113DE45934.location"
    static let body = Array(
        #"{"deviceID":"2262EC25-E9FD-4578-BADE-4E113DE45934","lat":37.33521504,"lng":-122.03254905,"ts":"2014-03-13T17:19:05+01:00"}"#
            .utf8)
    static let headers: STOMPHeaders = ["content-type": "application/json;charset=utf-8"]
    static let options = STOMPSendOptions(contentType: "application/json;charset=utf-8")

    /// Thousands, so that every way of sharing them out comes out even enough.
    private func scaled(_ count: Int) -> Int { max(1, Int(Double(count) * scale) / 1000) * 1000 }

    func client() async throws -> STOMPClient {
        let client = STOMPClient("stomp://127.0.0.1:\(port)")
        try await client.connect()
        return client
    }

    private func limitRate(_ mode: String, _ count: Int) throws -> Double {
        let text = try Shell.run(limit, [port, mode, "\(count)"]).trimmingCharacters(in: .whitespacesAndNewlines)
        return Double(count) / (Double(text) ?? .nan)
    }

    /// CONNECT, CONNECTED, DISCONNECT and its RECEIPT, one connection after the other.
    func connections() async throws -> Row {
        let count = scaled(2_000)
        var row = Row("STOMP connect and disconnect", unit: "/s", goal: "≥ 0.6")
        for _ in 0..<rounds {
            let limit = try limitRate("connect", count)
            let costs = try await measured {
                for _ in 0..<count {
                    let client = try await client()
                    await client.disconnect()
                }
            }
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// One `await send` for each message.
    func send() async throws -> Row {
        let count = scaled(1_000_000)
        var row = Row("STOMP send, one call each", unit: "frames/s", goal: "≥ 0.25")
        for _ in 0..<rounds {
            let limit = try limitRate("send", count)
            let client = try await client()
            let costs = try await measured(calls: client.calls) {
                for _ in 0..<count { try await client.send(Self.body, to: Self.destination, options: Self.options) }
                try await client.sendAndConfirm(Self.body, to: Self.destination, options: Self.options)
            }
            await client.disconnect()
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// A task of its own, as a program's loop over messages is; returns how many bytes there were.
    @concurrent private static func consume(
        _ messages: STOMPSubscription, _ count: Int, readsHeaders: Bool = false
    ) async throws -> Int {
        var seen = 0
        var bytes = 0
        for try await message in messages {
            bytes &+= message.body.count
            if readsHeaders {
                bytes &+= message.destination.utf8.count
                bytes &+= (message.messageID?.utf8.count ?? 0) &+ (message.contentType?.utf8.count ?? 0)
            }
            seen += 1
            if seen == count { break }
        }
        return bytes
    }

    /// `for try await` over a subscription.
    func receive() async throws -> Row {
        let count = scaled(1_000_000)
        var row = Row("STOMP receive", unit: "frames/s", goal: "≥ 0.15")
        for _ in 0..<rounds {
            let limit = try limitRate("receive", count)
            let client = try await client()
            var bytes = 0
            let costs = try await measured(calls: client.calls) {
                let messages = try await client.subscribe(
                    to: "flood/\(count)", buffer: BufferPolicy(overflow: .pauseReading))
                bytes = try await Self.consume(messages, count)
            }
            await client.disconnect()
            precondition(bytes == count * Self.body.count, "the broker sent something else")
            row.add(costs, count, limit: limit)
        }
        return row
    }

    /// `for try await` over a subscription, with `destination`, `message-id` and `content-type` read of each message.
    func receiveHeaders() async throws -> Row {
        let count = scaled(1_000_000)
        var row = Row("STOMP receive, destination and two headers read", unit: "frames/s", goal: "≥ 0.25")
        for _ in 0..<rounds {
            let limit = try limitRate("receive", count)
            row.add(try await received(count, readsHeaders: true), count, limit: limit)
        }
        return row
    }

    private func received(_ count: Int, log: FrameLog? = nil, readsHeaders: Bool = false) async throws -> Costs {
        let client = try await client()
        if let log { client.inspect(into: log) }
        var bytes = 0
        let costs = try await measured(calls: client.calls) {
            let messages = try await client.subscribe(
                to: "flood/\(count)", buffer: BufferPolicy(overflow: .pauseReading))
            bytes = try await Self.consume(messages, count, readsHeaders: readsHeaders)
        }
        await client.disconnect()
        precondition(bytes >= count * Self.body.count, "the broker sent something else")
        return costs
    }

    /// The same with a log that records each frame, and without.
    func watched() async throws -> Row {
        let count = scaled(500_000)
        var row = Row("STOMP receive, watched ÷ not", unit: "frames/s", goal: "≥ 0.4")
        for _ in 0..<rounds {
            let without = try await received(count)
            row.add(
                try await received(count, log: FrameLog()), count, limit: Double(count) / without.seconds,
                limitProcessor: without.processorSeconds * 1e9 / Double(count))
        }
        return row
    }

    /// One `await send` for each message, to 1,000 destinations in turn, beside the same to one.
    func sendToMany() async throws -> Row {
        let count = scaled(1_000_000)
        var row = Row("STOMP send, 1,000 destinations ÷ one", unit: "frames/s", goal: "≥ 0.75")
        let destinations = (0..<1_000).map { Self.destination + "." + String($0 + 1_000) }
        for _ in 0..<rounds {
            let one = try await sent(count, [destinations[0]])
            row.add(
                try await sent(count, destinations), count, limit: Double(count) / one.seconds,
                limitProcessor: one.processorSeconds * 1e9 / Double(count))
        }
        return row
    }

    private func sent(_ count: Int, _ destinations: [String]) async throws -> Costs {
        let client = try await client()
        let costs = try await measured(calls: client.calls) {
            var next = 0
            for _ in 0..<count {
                try await client.send(Self.body, to: destinations[next], options: Self.options)
                next = next + 1 == destinations.count ? 0 : next + 1
            }
            try await client.sendAndConfirm(Self.body, to: destinations[0], options: Self.options)
        }
        await client.disconnect()
        return costs
    }

    /// 1,024 tasks that each await a receipt.
    func receipts(_ place: Place) async throws -> Row {
        let count = scaled(300_000)
        // See the rows "Resuming … tasks of the pool".
        let goal = place == .pool ? "≥ 0.3" : "≥ 0.49"
        var row = Row("STOMP send with receipt, 1,024 tasks awaiting\(place.rawValue)", unit: "frames/s", goal: goal)
        for _ in 0..<rounds {
            let limit = try limitRate("receipts", count)
            let client = try await client()
            let each = max(1, count / 1024)
            let costs = try await measured(calls: client.calls) {
                try await place.run(on: client) {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<1024 {
                            group.addTask {
                                for _ in 0..<each {
                                    try await client.sendAndConfirm(
                                        Self.body, to: Self.destination, options: Self.options)
                                }
                            }
                        }
                        try await group.waitForAll()
                    }
                }
            }
            await client.disconnect()
            row.add(costs, each * 1024, limit: limit)
        }
        return row
    }

    /// Arrays of 512 with one await each, two of them under way: 1,024 receipts in flight.
    func receiptsByArray() async throws -> Row {
        let count = scaled(300_000)
        var row = Row("STOMP send with receipt, arrays of 512, two under way", unit: "frames/s", goal: "≥ 0.80")
        let message = STOMPOutgoingMessage(Self.body, to: Self.destination, options: Self.options)
        let array = [STOMPOutgoingMessage](repeating: message, count: 512)
        for _ in 0..<rounds {
            let limit = try limitRate("receipts", count)
            let client = try await client()
            let each = max(1, count / 1024)
            let costs = try await measured(calls: client.calls) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<2 {
                        group.addTask { for _ in 0..<each { try await client.sendAndConfirm(array).check() } }
                    }
                    try await group.waitForAll()
                }
            }
            await client.disconnect()
            row.add(costs, each * 1024, limit: limit)
        }
        return row
    }
}
