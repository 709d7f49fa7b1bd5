import LoopbackBroker
import MQTT
import MessagingShell

extension GrowthRow {
    /// What waits in clients of MQTT, and what the broker keeps for them.
    static var mqtt: [GrowthRow] { filters + messages }

    private static var filters: [GrowthRow] {
        [
            GrowthRow("MQTT: subscribing to filters, unsubscribing from the first on") { bench, count in
                let client = try await bench.connectedMQTT()
                return try await bench.measure {
                    var all: [MQTTSubscription] = []
                    for number in 0..<count { all.append(try await client.subscribe(to: "s/\(number)")) }
                    for subscription in all { try await subscription.unsubscribe() }
                }
            },
            GrowthRow("MQTT: sequences of one filter, ended one after the other") { bench, count in
                let client = try await bench.connectedMQTT()
                return try await bench.measure {
                    var all: [MQTTSubscription] = []
                    for _ in 0..<count { all.append(try await client.subscribe(to: "s")) }
                    for subscription in all { try await subscription.unsubscribe() }
                }
            },
            GrowthRow("MQTT: callers that wait for one filter together") { bench, count in
                let client = try await bench.connectedMQTT()
                var all: [MQTTSubscription] = []
                let time = try await bench.measure {
                    all = try await withThrowingTaskGroup(of: MQTTSubscription.self) { group in
                        for _ in 0..<4 * count { group.addTask { try await client.subscribe(to: "s") } }
                        return try await group.reduce(into: []) { $0.append($1) }
                    }
                }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("MQTT: callers that are refused one filter together") { bench, count in
                let client = try await bench.connectedMQTT()
                bench.broker.changeFaults { $0.refusedFilters = ["s"] }
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<4 * count { group.addTask { _ = try? await client.subscribe(to: "s") } }
                    }
                }
            },
            GrowthRow("MQTT: messages with a guarantee that a small buffer keeps") { bench, count in
                let client = try await bench.connectedMQTT { $0.receiveMaximum = 65_000 }
                let subscription = try await client.subscribe(
                    to: "t", qos: .atLeastOnce, buffer: BufferPolicy(messages: 10))
                let time = try await bench.measure {
                    for number in 0..<count { try await client.publish("\(number)", to: "t", qos: .atLeastOnce) }
                }
                withExtendedLifetime(subscription) {}
                return time
            },
            GrowthRow("MQTT: a message on each of many filters") { bench, count in
                let client = try await bench.connectedMQTT()
                var all: [MQTTSubscription] = []
                for number in 0..<count { all.append(try await client.subscribe(to: "s/\(number)")) }
                let time = try await bench.measure {
                    for number in 0..<count { try await client.publish("x", to: "s/\(number)", qos: .atLeastOnce) }
                    await bench.settle()
                }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("MQTT: a connection that many filters are subscribed on again") { bench, count in
                let client = try await bench.connectedMQTT()
                var all: [MQTTSubscription] = []
                for number in 0..<count { all.append(try await client.subscribe(to: "s/\(number)")) }
                let time = try await bench.measure {
                    try await client.reconnect()
                    await bench.settle()
                }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("MQTT: streams of events, ended") { bench, count in
                let client = try await bench.connectedMQTT()
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count { group.addTask { for await _ in client.events {} } }
                        await bench.settle()
                        group.cancelAll()
                    }
                }
            },
            GrowthRow("MQTT: unmatched messages, with a subscription for each") { bench, count in
                let change: @Sendable (inout MQTTConfiguration) -> Void = { configuration in
                    configuration.cleanStart = false
                    configuration.sessionExpiry = .seconds(600)
                    configuration.receiveMaximum = 65_000
                    configuration.unmatchedMessagePolicy.maximumMessages = 1_000_000
                }
                let publisher = try await bench.connectedMQTT()
                let before = try await bench.connectedMQTT("u", change)
                let subscription = try await before.subscribe(to: "u/#")
                await before.disconnect()
                withExtendedLifetime(subscription) {}
                let messages = (0..<count).map { MQTTOutgoingMessage("\($0)", to: "u/\($0)", qos: .atLeastOnce) }
                _ = await publisher.publish(messages)
                let client = try await bench.connectedMQTT("u", change)
                await bench.settle()
                var all: [MQTTSubscription] = []
                let time = try await bench.measure {
                    for number in 0..<count { all.append(try await client.subscribe(to: "u/\(number)")) }
                }
                withExtendedLifetime(all) {}
                return time
            }.knownToGrow,
        ]
    }

    private static var messages: [GrowthRow] {
        [
            GrowthRow("MQTT: messages in flight whose tasks are cancelled") { bench, count in
                let client = try await bench.connectedMQTT()
                bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.publish("x", to: "t", qos: .atLeastOnce) }
                        }
                        await bench.settle()
                        group.cancelAll()
                    }
                }
            },
            GrowthRow("MQTT: messages in flight that are acknowledged") { bench, count in
                let client = try await bench.connectedMQTT()
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.publish("x", to: "t", qos: .exactlyOnce) }
                        }
                    }
                }
            },
            GrowthRow("MQTT: messages in flight that are sent again") { bench, count in
                let client = try await bench.connectedMQTT("again") { configuration in
                    configuration.cleanStart = false
                    configuration.sessionExpiry = .seconds(600)
                }
                bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
                return try await bench.measure {
                    try await withThrowingTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.publish("x", to: "t", qos: .atLeastOnce) }
                        }
                        await bench.settle()
                        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
                        try await client.reconnect()
                        try await group.waitForAll()
                    }
                }
            },
            GrowthRow("MQTT: publishers that wait for room, cancelled") { bench, count in
                let client = try await bench.connectedMQTT {
                    $0.maximumQueuedMessages = 1
                    $0.queueOverflow = .wait
                }
                bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.publish("x", to: "t", qos: .atLeastOnce) }
                        }
                        await bench.settle()
                        group.cancelAll()
                    }
                }
            },
            GrowthRow("MQTT: queued messages, withdrawn oldest first") { bench, count in
                try await withdrawing(bench, count) { $0 }
            },
            GrowthRow("MQTT: queued messages, withdrawn newest first") { bench, count in
                try await withdrawing(bench, count) { $0.reversed() }
            },
            GrowthRow("MQTT: queued messages, withdrawn from the middle on") { bench, count in
                try await withdrawing(bench, count) { all in
                    let half = all.count / 2
                    return zip(all[..<half].reversed(), all[half...]).flatMap { [$0, $1] }
                }
            },
            GrowthRow("MQTT: messages to a full queue that drops the oldest") { bench, count in
                try await overflowing(bench, count, .dropOldest)
            },
            GrowthRow("MQTT: messages to a full queue that keeps the newest of a topic") { bench, count in
                try await overflowing(bench, count, .newestPerTopic)
            },
            GrowthRow("MQTT: queued messages that leave") { bench, count in
                let client = try await bench.mqtt()
                for number in 0..<count {
                    _ = try await client.enqueue(MQTTOutgoingMessage("x", to: "t/\(number)", qos: .atLeastOnce))
                }
                return try await bench.measure {
                    try await client.connect()
                    await bench.settle()
                }
            },
            GrowthRow("MQTT: queued messages that expire") { bench, count in
                let client = try await bench.mqtt()
                for number in 0..<count {
                    var message = MQTTOutgoingMessage("x", to: "t", qos: .atLeastOnce)
                    message.timeToLive = .seconds(number + 1)
                    _ = try await client.enqueue(message)
                }
                return await bench.measure { await bench.clock.advance(by: .seconds(count + 10)) }
            },
            GrowthRow("MQTT: requests, cancelled") { bench, count in
                let client = try await bench.connectedMQTT()
                // Makes the subscription to replies.
                _ = try? await client.request("x", to: "nobody")
                // The answer that nobody has subscribed would end the others.
                bench.broker.changeFaults { $0.withholdsAcknowledgements = true }
                return await bench.measure {
                    await withTaskGroup(of: Void.self) { group in
                        for _ in 0..<count {
                            group.addTask { _ = try? await client.request("x", to: "nobody", timeout: .seconds(50)) }
                        }
                        await bench.settle()
                        group.cancelAll()
                    }
                }
            },
            GrowthRow("MQTT: unread messages, read") { bench, count in
                let client = try await bench.connectedMQTT { $0.receiveMaximum = 65_000 }
                let subscription = try await client.subscribe(
                    to: "t", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1_000_000))
                return try await bench.measure {
                    for number in 0..<count { try await client.publish("\(number)", to: "t", qos: .atLeastOnce) }
                    var left = count
                    for try await _ in subscription {
                        left -= 1
                        if left == 0 { break }
                    }
                }
            },
            GrowthRow("MQTT: messages that are acknowledged by hand, newest first") { bench, count in
                let client = try await bench.connectedMQTT { $0.receiveMaximum = 65_000 }
                let subscription = try await client.subscribe(
                    to: "t", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1_000_000), acknowledgement: .manual)
                return try await bench.measure {
                    for number in 0..<count { try await client.publish("\(number)", to: "t", qos: .atLeastOnce) }
                    var all: [MQTTMessage] = []
                    for try await message in subscription {
                        all.append(message)
                        if all.count == count { break }
                    }
                    for message in all.reversed() { message.acknowledge() }
                    await bench.settle()
                }
            },
            GrowthRow("MQTT: messages of a session that was away") { bench, count in
                let publisher = try await bench.connectedMQTT()
                let change: @Sendable (inout MQTTConfiguration) -> Void = { configuration in
                    configuration.cleanStart = false
                    configuration.sessionExpiry = .seconds(600)
                }
                let away = try await bench.connectedMQTT("away", change)
                let subscription = try await away.subscribe(to: "t", qos: .atLeastOnce)
                await away.disconnect()
                withExtendedLifetime(subscription) {}
                let messages = (0..<count).map { MQTTOutgoingMessage("\($0)", to: "t", qos: .atLeastOnce) }
                let again = try await bench.mqtt("away", change)
                return try await bench.measure {
                    _ = await publisher.publish(messages)
                    let subscription = again.subscription(
                        to: "t", qos: .atLeastOnce, buffer: BufferPolicy(messages: 1_000_000))
                    try await again.connect()
                    var left = count
                    for try await _ in subscription {
                        left -= 1
                        if left == 0 { break }
                    }
                }
            },
        ]
    }

    private static func withdrawing(
        _ bench: GrowthBench, _ count: Int,
        _ order: ([MQTTClient.EnqueuedMessage]) -> [MQTTClient.EnqueuedMessage]
    ) async throws -> Duration {
        let client = try await bench.mqtt()
        var all: [MQTTClient.EnqueuedMessage] = []
        for _ in 0..<count {
            all.append(try await client.enqueue(MQTTOutgoingMessage("x", to: "t", qos: .atLeastOnce)))
        }
        all = order(all)
        return await bench.measure { for message in all { _ = message.withdraw() } }
    }

    private static func overflowing(
        _ bench: GrowthBench, _ count: Int, _ overflow: MQTTConfiguration.QueueOverflow
    ) async throws -> Duration {
        let client = try await bench.mqtt {
            $0.maximumQueuedMessages = count
            $0.queueOverflow = overflow
        }
        func fill(_ topics: some Sequence<Int>) async throws {
            for topic in topics {
                _ = try await client.enqueue(MQTTOutgoingMessage("x", to: "t/\(topic)", qos: .atLeastOnce))
            }
        }
        try await fill(0..<count)
        return try await bench.measure { try await fill((0..<count).reversed()) }
    }
}
