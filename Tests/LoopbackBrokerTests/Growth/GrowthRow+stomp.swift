import LoopbackBroker
import MessagingShell
import STOMP

extension GrowthRow {
    /// What waits in clients of STOMP, and what the broker keeps for them.
    static var stomp: [GrowthRow] {
        [
            GrowthRow("STOMP: subscriptions to topics, ended from the first on") { bench, count in
                let client = try await bench.stomp()
                return try await bench.measure {
                    var all: [STOMPSubscription] = []
                    for number in 0..<count { all.append(try await client.subscribe(to: "/topic/\(number)")) }
                    for subscription in all { try await subscription.unsubscribe() }
                }
            },
            GrowthRow("STOMP: subscriptions to topics that acknowledge, and a message for each") { bench, count in
                let client = try await bench.stomp()
                return try await bench.measure {
                    var all: [STOMPSubscription] = []
                    for number in 0..<count {
                        all.append(
                            try await client.subscribe(to: "/topic/\(number)", acknowledgement: .clientIndividual))
                    }
                    for number in 0..<count { try await client.sendAndConfirm("x", to: "/topic/\(number)") }
                    for subscription in all { try await subscription.unsubscribe() }
                }
            },
            GrowthRow("STOMP: consumers of one queue, and a message for each") { bench, count in
                let client = try await bench.stomp()
                return try await bench.measure {
                    var all: [STOMPSubscription] = []
                    for _ in 0..<count { all.append(try await client.subscribe(to: "/queue/q")) }
                    for number in 0..<count { try await client.sendAndConfirm("\(number)", to: "/queue/q") }
                    for subscription in all { try await subscription.unsubscribe() }
                }
            },
            GrowthRow("STOMP: sends whose receipt is awaited, cancelled") { bench, count in
                let client = try await bench.stomp()
                bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.sendAndConfirm("x", to: "/queue/q") }
                        }
                        await bench.settle()
                        group.cancelAll()
                    }
                }
            },
            GrowthRow("STOMP: receipts that come") { bench, count in
                let client = try await bench.stomp()
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.sendAndConfirm("x", to: "/topic/t") }
                        }
                    }
                }
            },
            GrowthRow("STOMP: messages that are acknowledged each, newest first") { bench, count in
                try await acknowledging(bench, count, .clientIndividual) { $0.reversed() }
            },
            GrowthRow("STOMP: messages that are acknowledged each, oldest first") { bench, count in
                try await acknowledging(bench, count, .clientIndividual) { $0 }
            },
            GrowthRow("STOMP: messages that are acknowledged together") { bench, count in
                try await acknowledging(bench, count, .client) { [$0[$0.count / 2], $0[$0.count - 1]] }
            },
            GrowthRow("STOMP: messages that are rejected and delivered again") { bench, count in
                let client = try await bench.stomp()
                let subscription = try await client.subscribe(
                    to: "/queue/q", acknowledgement: .clientIndividual, buffer: BufferPolicy(messages: 1_000_000))
                for number in 0..<count { try await client.send("\(number)", to: "/queue/q") }
                return try await bench.measure {
                    var all: [STOMPMessage] = []
                    var iterator = subscription.makeAsyncIterator()
                    while all.count < count, let message = try await iterator.next() { all.append(message) }
                    for message in all.reversed() { try message.reject(requeue: true) }
                    var left = count
                    while left > 0, try await iterator.next() != nil { left -= 1 }
                }
            },
            GrowthRow("STOMP: open transactions, committed from the first on") { bench, count in
                // The broker allows 1,000 at once.
                let client = try await bench.stomp()
                return try await bench.measure {
                    for _ in 0..<max(1, count / 200) {
                        let all = try (0..<200).map { _ in try client.begin() }
                        for handle in all {
                            try await client.send("x", to: "/topic/t", in: handle)
                        }
                        for handle in all { try await client.commit(handle) }
                    }
                }
            },
            GrowthRow("STOMP: messages in one transaction") { bench, count in
                let client = try await bench.stomp()
                return try await bench.measure {
                    let handle = try client.begin()
                    for _ in 0..<count { try await client.send("x", to: "/queue/q", in: handle) }
                    try await client.commit(handle)
                }
            },
        ]
    }

    private static func acknowledging(
        _ bench: GrowthBench, _ count: Int, _ mode: STOMPAckMode,
        _ choice: ([STOMPMessage]) -> [STOMPMessage]
    ) async throws -> Duration {
        let client = try await bench.stomp()
        for number in 0..<count { try await client.send("\(number)", to: "/queue/q") }
        return try await bench.measure {
            let subscription = try await client.subscribe(
                to: "/queue/q", acknowledgement: mode, buffer: BufferPolicy(messages: 1_000_000))
            var all: [STOMPMessage] = []
            for try await message in subscription {
                all.append(message)
                if all.count == count { break }
            }
            for message in choice(all) { try message.acknowledge() }
            await bench.settle()
        }
    }
}
