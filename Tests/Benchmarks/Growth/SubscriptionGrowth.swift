import Foundation
import MQTT

extension Growth {
    /// Subscriptions with wildcards of one client.
    func subscriptions() async throws -> GrowthTable {
        var table = GrowthTable(
            "Subscriptions with wildcards on one client", sizes: "filters",
            note: """
                Filters `growth/+/NUMBER/#`, each a subscription with a task that reads it. A message comes on one of n \
                topics in turn and matches one filter: what one read brings is many messages for one task where n is small, \
                and one message for each of many tasks where n is large. *Of one sequence*: the same filters in one \
                subscription. *Beside a shared one*: one more subscription of a client that has n and one to \
                `$share/group/other`.
                """,
            .each("subscribe"), .each("message"), .each("unsubscribe"), .each("message of one sequence"),
            .each("one more beside a shared one"))
        for count in sizes([1, 10, 100, 1000, 10_000, 30_000]) {
            let messages = max(count, scaled(200_000) / count * count)
            var figures = [Double](repeating: .infinity, count: 5)
            for _ in 0..<max(1, setting.rounds) {
                let several = try await separately(count, messages)
                let one = try await together(count, messages)
                let shared = try await besideSharedFilter(count)
                for (index, figure) in (several + [one, shared]).enumerated() {
                    figures[index] = min(figures[index], figure)
                }
            }
            table.add(count, figures[0], figures[1], figures[2], figures[3], figures[4])
        }
        return table
    }

    private func client() async throws -> MQTTClient {
        let client = MQTTClient("mqtt://127.0.0.1:\(setting.mqtt.port)", clientID: "growth")
        try await client.connect()
        return client
    }

    private func filter(_ number: Int) -> String { "growth/+/\(String(format: "%05d", number))/#" }

    private static let buffer = BufferPolicy(overflow: .pauseReading)

    /// What subscribing, a message and unsubscribing cost with a subscription for each filter.
    private func separately(_ count: Int, _ messages: Int) async throws -> [Double] {
        let client = try await client()
        var subscriptions: [MQTTSubscription] = []
        let subscribe = try await measured {
            for number in 0..<count {
                subscriptions.append(
                    try await client.subscribe(to: filter(number), qos: .atMostOnce, buffer: Self.buffer))
            }
        }
        let message = try await measured {
            let all = subscriptions
            try await withThrowingTaskGroup(of: Void.self) { group in
                for subscription in all {
                    group.addTask { try await Self.receive(messages / count, from: subscription) }
                }
                group.addTask { _ = try await client.subscribe(to: "floods/\(messages)/\(count)", qos: .atMostOnce) }
                try await group.waitForAll()
            }
        }
        let unsubscribe = try await measured {
            for subscription in subscriptions { try await subscription.unsubscribe() }
        }
        await client.disconnect()
        return [
            subscribe.processorSeconds / Double(count), message.processorSeconds / Double(messages),
            unsubscribe.processorSeconds / Double(count),
        ]
    }

    /// What a message costs with one subscription for all filters.
    private func together(_ count: Int, _ messages: Int) async throws -> Double {
        let client = try await client()
        let requests = (0..<count).map { MQTTSubscriptionRequest(filter: filter($0), qos: .atMostOnce) }
        let subscription = try await client.subscribe(to: requests, buffer: Self.buffer)
        let costs = try await measured {
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await Self.receive(messages, from: subscription) }
                group.addTask { _ = try await client.subscribe(to: "floods/\(messages)/\(count)", qos: .atMostOnce) }
                try await group.waitForAll()
            }
        }
        await client.disconnect()
        return costs.processorSeconds / Double(messages)
    }

    /// What one more subscription costs a client that has a shared filter too.
    private func besideSharedFilter(_ count: Int) async throws -> Double {
        let client = try await client()
        var subscriptions: [MQTTSubscription] = []
        func subscribe(to filter: String) async throws {
            subscriptions.append(try await client.subscribe(to: filter, qos: .atMostOnce))
        }
        for number in 0..<count { try await subscribe(to: filter(number)) }
        try await subscribe(to: "$share/group/other")
        let more = 20
        let costs = try await measured {
            for number in count..<(count + more) { try await subscribe(to: filter(number)) }
        }
        await client.disconnect()
        return costs.processorSeconds / Double(more)
    }

    private static func receive(_ count: Int, from subscription: MQTTSubscription) async throws {
        var seen = 0
        for try await _ in subscription {
            seen += 1
            if seen == count { break }
        }
    }
}
