import STOMP
import Synchronization
import TestSupport
import Testing

/// Persistent messages that hold the numbers below `count`, on their way through a queue of a broker that tests kill.
final class NumberedMessages: Sendable {
    let broker: STOMPBroker
    let queue: String
    let count: Int
    private let sent = Atomic(0)
    private static let options = STOMPSendOptions(persistent: true)

    init(_ count: Int, to queue: String, of broker: STOMPBroker) {
        self.count = count
        self.queue = queue
        self.broker = broker
    }

    /// Sends all and returns those that were confirmed, over several connections: a broker that writes each message to
    /// its disk before it confirms it does so for many connections at once.
    func send(halfway: @escaping @Sendable () async throws -> Void) async throws -> Set<Int> {
        try await withThrowingTaskGroup(of: Set<Int>.self) { group in
            group.addTask {
                let isHalfway = await eventually(timeout: .seconds(600)) {
                    self.sent.load(ordering: .relaxed) >= self.count / 2
                }
                guard isHalfway else { throw TimeoutError("half of the messages were not sent") }
                try await halfway()
                return []
            }
            let senders = 8
            for first in 0..<senders {
                group.addTask { try await self.send(stride(from: first, to: self.count, by: senders)) }
            }
            return try await group.reduce(into: Set<Int>()) { $0.formUnion($1) }
        }
    }

    /// Sends some over a connection of their own, hundreds ahead of their receipts.
    private func send(_ numbers: some Sequence<Int>) async throws -> Set<Int> {
        // The broker may be gone before the last of the connections is made.
        let client = try await broker.ownClient { $0.reconnect.firstConnectAttempts = nil }
        try await client.connect()
        var waiting: [(number: Int, receipt: STOMPReceipt)] = []
        var confirmed = Set<Int>()
        func settle(downTo few: Int) async {
            let settled = waiting.prefix(max(0, waiting.count - few))
            for entry in settled where (try? await entry.receipt.confirmed()) != nil { confirmed.insert(entry.number) }
            waiting.removeFirst(settled.count)
        }
        for number in numbers {
            let body = Array("\(number)".utf8)
            while true {
                do {
                    waiting.append(
                        (
                            number,
                            try await client.sendForReceipt(
                                STOMPOutgoingMessage(body, to: queue, options: Self.options))
                        ))
                    break
                } catch {
                    // Between two connections: wait for the next.
                    try await Task.sleep(for: .milliseconds(5))
                }
            }
            sent.add(1, ordering: .relaxed)
            if waiting.count >= 50 { await settle(downTo: 25) }
        }
        await settle(downTo: 0)
        await client.disconnect()
        return confirmed
    }

    /// Takes all out of the queue and returns how often each number came.
    func receive(over client: STOMPClient) async throws -> [Int] {
        try await client.sendAndConfirm("end", to: queue, options: Self.options)
        let messages = try await client.subscribe(to: queue, acknowledgement: .client)
        return try await withTimeout(.patience + .seconds(count / 1000), "the arrival of all confirmed messages") {
            var received = [Int](repeating: 0, count: self.count)
            var unacknowledged = 0
            for try await message in messages {
                unacknowledged += 1
                let isEnd = message.text == "end"
                if let number = message.text.flatMap({ Int($0) }) { received[number] += 1 }
                // ActiveMQ pages a queue in by 200 messages and looks for the next page when something is acknowledged or
                // twice a minute: 500 at a time would be 100 a second.
                if unacknowledged == 100 || isEnd {
                    try message.acknowledge()
                    unacknowledged = 0
                }
                if isEnd { break }
            }
            return received
        }
    }
}
