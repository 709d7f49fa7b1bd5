import MQTT
import STOMP

@testable import LoopbackBroker

extension GrowthRow {
    /// What the broker keeps for nobody in particular.
    static var broker: [GrowthRow] { queues + sessions }

    private static var queues: [GrowthRow] {
        [
            GrowthRow("Broker: messages that the only consumer of their queue does not accept") { bench, count in
                let (consumer, sender) = (try await bench.stomp(), try await bench.stomp())
                let subscription = try await consumer.subscribe(
                    to: "/queue/q", acknowledgement: .clientIndividual, options: selecting("a"))
                let messages = (0..<count).map {
                    STOMPOutgoingMessage("\($0)", to: "/queue/q", options: kind("b"))
                }
                let time = await bench.measure { _ = await sender.sendAndConfirm(messages) }
                withExtendedLifetime(subscription) {}
                return time
            },
            GrowthRow("Broker: messages for a consumer without room beside a consumer with room") { bench, count in
                let (consumer, sender) = (try await bench.stomp(), try await bench.stomp())
                var full = selecting("a")
                full.headers["prefetch-count"] = "1"
                let slow = try await consumer.subscribe(
                    to: "/queue/q", acknowledgement: .clientIndividual, options: full)
                let fast = try await consumer.subscribe(to: "/queue/q", options: selecting("b"))
                let messages = (0..<count).flatMap { number in
                    ["a", "b"].map { STOMPOutgoingMessage("\(number)", to: "/queue/q", options: kind($0)) }
                }
                let time = await bench.measure { _ = await sender.sendAndConfirm(messages) }
                withExtendedLifetime((slow, fast)) {}
                return time
            },
            GrowthRow("Broker: messages to consumers that all have no room") { bench, count in
                let (consumer, sender) = (try await bench.stomp(), try await bench.stomp())
                var options = STOMPSubscribeOptions()
                options.headers["prefetch-count"] = "1"
                var all: [STOMPSubscription] = []
                for _ in 0..<count {
                    all.append(
                        try await consumer.subscribe(
                            to: "/queue/q", acknowledgement: .clientIndividual, options: options))
                }
                let messages = (0..<2 * count).map { STOMPOutgoingMessage("\($0)", to: "/queue/q") }
                let time = await bench.measure { _ = await sender.sendAndConfirm(messages) }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("Broker: messages to a full queue", full: true) { bench, count in
                let sender = try await bench.stomp()
                let messages = (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/q") }
                _ = await sender.sendAndConfirm(messages)
                return await bench.measure { _ = await sender.sendAndConfirm(messages) }
            },
            GrowthRow("Broker: queues, each with a message, under one pattern") { bench, count in
                let (consumer, sender) = (try await bench.stomp(), try await bench.stomp())
                let messages = (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/q.\($0)") }
                return try await bench.measure {
                    _ = await sender.sendAndConfirm(messages)
                    let subscription = try await consumer.subscribe(
                        to: "/queue/q.*", acknowledgement: .clientIndividual)
                    var left = count
                    for try await message in subscription {
                        try message.acknowledge()
                        left -= 1
                        if left == 0 { break }
                    }
                    await bench.settle()
                }
            },
            GrowthRow("Broker: messages to topics beside many queues") { bench, count in
                let sender = try await bench.stomp()
                let queued = (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/q.\($0)") }
                let messages = (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/topic/t.\($0)") }
                _ = await sender.sendAndConfirm(queued)
                return await bench.measure { _ = await sender.sendAndConfirm(messages) }
            },
            GrowthRow("Broker: connections of STOMP that end beside many queues") { bench, count in
                let sender = try await bench.stomp()
                let queued = (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/q.\($0)") }
                _ = await sender.sendAndConfirm(queued)
                return try await bench.measure {
                    for _ in 0..<count / 8 {
                        let client = try await bench.stomp()
                        await client.disconnect()
                    }
                }
            },
        ]
    }

    private static var sessions: [GrowthRow] {
        [
            GrowthRow("Broker: retained messages, with a subscription for each") { bench, count in
                let client = try await bench.connectedMQTT()
                let retained = (0..<count).map {
                    MQTTOutgoingMessage("\($0)", to: "r/\($0)", qos: .atLeastOnce, retain: true)
                }
                _ = await client.publish(retained)
                var all: [MQTTSubscription] = []
                let time = try await bench.measure {
                    for number in 0..<count { all.append(try await client.subscribe(to: "r/\(number)")) }
                }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("Broker: retained messages, with a pattern for each") { bench, count in
                let client = try await bench.connectedMQTT()
                let retained = (0..<count).map {
                    MQTTOutgoingMessage("\($0)", to: "r/\($0)/state", qos: .atLeastOnce, retain: true)
                }
                _ = await client.publish(retained)
                var all: [MQTTSubscription] = []
                let time = try await bench.measure {
                    for number in 0..<count { all.append(try await client.subscribe(to: "r/\(number)/+")) }
                }
                withExtendedLifetime(all) {}
                return time
            },
            GrowthRow("Broker: sessions that are kept") { bench, count in
                try await bench.measure {
                    for number in 0..<count / 8 {
                        let client = try await bench.connectedMQTT("c\(number)") { configuration in
                            configuration.cleanStart = false
                            configuration.sessionExpiry = .seconds(600)
                        }
                        await client.disconnect()
                    }
                }
            },
            GrowthRow("Broker: connections that end beside many sessions") { bench, count in
                for number in 0..<count {
                    bench.broker.hub.route(at: 0) { router, effects in
                        let opened = router.openSession(
                            clientID: "kept \(number)", connection: -1 - number, cleanStart: false, expiry: 1_000,
                            will: nil, at: 0, into: &effects)
                        guard let opened else { return }
                        router.closeSession(
                            opened.session, kept: opened.kept, queue: opened.queue, sendsWill: false, at: 0,
                            into: &effects)
                    }
                }
                return try await bench.measure {
                    for _ in 0..<count / 8 {
                        let client = try await bench.connectedMQTT()
                        await client.disconnect()
                    }
                }
            },
            GrowthRow("Broker: sessions that end for newer ones", sessions: true) { bench, count in
                await bench.measure {
                    for number in 0..<2 * count {
                        bench.broker.hub.route(at: 0) { router, effects in
                            let opened = router.openSession(
                                clientID: "kept \(number)", connection: -1 - number, cleanStart: false, expiry: 1_000,
                                will: nil, at: 0, into: &effects)
                            guard let opened else { return }
                            router.closeSession(
                                opened.session, kept: opened.kept, queue: opened.queue, sendsWill: false, at: 0,
                                into: &effects)
                        }
                    }
                }
            },
            GrowthRow("Broker: clients that subscribe to one filter, and leave") { bench, count in
                var all: [MQTTClient] = []
                var held: [MQTTSubscription] = []
                let time = try await bench.measure {
                    for _ in 0..<count / 8 {
                        let client = try await bench.connectedMQTT()
                        held.append(try await client.subscribe(to: "t"))
                        all.append(client)
                    }
                    for client in all { await client.disconnect() }
                }
                withExtendedLifetime(held) {}
                return time
            },
            GrowthRow("Broker: members of a shared subscription, and a message for each") { bench, count in
                var held: [MQTTSubscription] = []
                let sender = try await bench.connectedMQTT()
                let messages = (0..<count).map { MQTTOutgoingMessage("\($0)", to: "t", qos: .atLeastOnce) }
                for _ in 0..<count / 8 {
                    let client = try await bench.connectedMQTT()
                    held.append(try await client.subscribe(to: "$share/g/t"))
                }
                let time = await bench.measure { _ = await sender.publish(messages) }
                withExtendedLifetime(held) {}
                return time
            },
        ]
    }

    private static func selecting(_ kind: String) -> STOMPSubscribeOptions {
        var options = STOMPSubscribeOptions()
        options.selector = "kind = '\(kind)'"
        return options
    }

    private static func kind(_ kind: String) -> STOMPSendOptions {
        var options = STOMPSendOptions()
        options.headers["kind"] = kind
        return options
    }

    /// A row whose broker has room for exactly so many messages in a queue, or for so many sessions.
    private init(
        _ name: String, full: Bool = false, sessions: Bool = false,
        _ body: @escaping @Sendable (GrowthBench, Int) async throws -> Duration
    ) {
        self.init(testDescription: name) { count in
            var options = GrowthBench.roomy
            if full { options.limits.maximumQueueMessages = count }
            if sessions { options.limits.maximumSessions = count }
            return try await GrowthBench.run(options) { try await body($0, count) }
        }
    }
}
