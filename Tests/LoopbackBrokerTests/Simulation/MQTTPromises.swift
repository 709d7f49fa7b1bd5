import LoopbackBroker
import MQTT
import Synchronization

/// A world of MQTT, with the promises of its clients and a model that checks them: QoS 0 at most once and in order, QoS 1
/// at least once with first deliveries in order, QoS 2 exactly once; each call ends, a cancelled one within 100 ms;
/// after a reconnect subscriptions come first, and receive again.
enum MQTTPromises {
    static var options: SimulationOptions {
        var options = SimulationOptions()
        options.acts = ["suspend the sender", "suspend the receiver", "disconnect the sender"]
        return options
    }

    private static let publishers = 3
    private static let messages = 6

    @Sendable static func body(_ world: Simulation) async throws {
        var random = world.makeRandom()
        let broker = try await world.startBroker()
        var configuration = MQTTConfiguration()
        configuration.version = Bool.random(using: &random) ? .v5_0 : .v3_1_1
        configuration.cleanStart = false
        if configuration.version == .v5_0 { configuration.sessionExpiry = .seconds(86_400) }
        configuration.maximumInFlight = [1, 2, 1024].randomElement(using: &random)
        configuration.credentialsProvider = { request in
            if request.attempt % 2 == 0 { try await world.clock.sleep(for: .milliseconds(10)) }
            return nil
        }
        if Bool.random(using: &random) { configuration.sessionStore = MemorySessionStore() }
        let sender = try MQTTClient(
            broker.mqttURL, clientID: "sender", configuration: configuration, clock: world.clock)
        configuration.sessionStore = nil
        let receiver = try MQTTClient(
            broker.mqttURL, clientID: "receiver", configuration: configuration, clock: world.clock)
        let model = MQTTModel()
        await receiver.start()
        await sender.start()
        let received = receiver.subscription(to: "t/#", qos: .exactlyOnce)
        try await subscribed(receiver, world)

        act(world, sender, receiver)
        let reader = Task {
            for try await message in received {
                model.received(message.topic, message.text ?? "")
                world.note("received \(message.topic) \(message.text ?? "")")
                if message.topic == "t/end" { return }
            }
        }
        configuration.cleanStart = true
        configuration.sessionExpiry = .zero
        let forgetful = try MQTTClient(
            broker.mqttURL, clientID: "forgetful", configuration: configuration, clock: world.clock)
        let watching = watch(broker, model)
        let echo = forgetful.subscription(to: "echo", qos: .atLeastOnce)
        await forgetful.start()
        let echoing = Task { for try await message in echo where message.text == "end" { return } }
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                for number in 0..<10 {
                    try? await world.clock.sleep(for: .seconds(11))
                    _ = try? await forgetful.publish("\(number)", to: "echo", qos: .atLeastOnce)
                }
            }
            for publisher in 0..<publishers {
                let random = world.makeRandom()
                group.addTask { await publish(publisher, random, world, sender, model) }
            }
        }
        try await world.faultsHaveEnded()
        // The app may have ended the supervision.
        try await sender.connect()
        try await sender.publish("end", to: "t/end", qos: .exactlyOnce)
        try await reader.value
        // A subscription that was granted receives again after every fault that ends.
        try await forgetful.publish("end", to: "echo", qos: .atLeastOnce)
        try await echoing.value
        try model.check(world)
        await sender.disconnect()
        await receiver.disconnect()
        await forgetful.disconnect()
        await broker.stop()
        await watching.value
    }

    /// Checks that a client without a session subscribes before it publishes, on each of its connections.
    private static func watch(_ broker: LoopbackBroker, _ model: MQTTModel) -> Task<Void, Never> {
        let arrivals = broker.arrivals()
        return Task {
            var isFirst = false
            for await arrival in arrivals where arrival.client == "forgetful" {
                if isFirst, arrival.packet == .mqtt(.publish) { model.publishedFirst() }
                isFirst = arrival.packet == .mqtt(.connect)
            }
        }
    }

    /// Nothing is promised for messages before the subscription has been granted: waits until one arrives.
    private static func subscribed(_ receiver: MQTTClient, _ world: Simulation) async throws {
        while true {
            do {
                _ = try await receiver.subscribe(to: "first", qos: .atLeastOnce)
                return
            } catch {
                try await world.clock.sleep(for: .seconds(1))
            }
        }
    }

    private static func act(_ world: Simulation, _ sender: MQTTClient, _ receiver: MQTTClient) {
        for (name, client) in [("suspend the sender", sender), ("suspend the receiver", receiver)] {
            world.onAct(name) { random in
                var random = random
                await client.suspend()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                client.resume()
            }
        }
        world.onAct("disconnect the sender") { random in
            var random = random
            await sender.disconnect()
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            await sender.start()
        }
    }

    /// One message after the other, each for a topic of its publisher and its quality of service; some calls are cancelled.
    private static func publish(
        _ publisher: Int, _ random: SimulationRandom, _ world: Simulation, _ client: MQTTClient, _ model: MQTTModel
    ) async {
        var random = random
        for number in 0..<messages {
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            let qos = QoS.allCases.randomElement(using: &random) ?? .atMostOnce
            let topic = "t/\(publisher)/\(qos.rawValue)"
            model.began(topic, number)
            let call = Task {
                do {
                    try await client.publish("\(number)", to: topic, qos: qos)
                    model.ended(topic, number)
                    world.note("published \(topic) \(number)")
                } catch {
                    world.note("failed \(topic) \(number): \(error)")
                }
            }
            if Int.random(in: 0..<5, using: &random) == 0 {
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...1000, using: &random)))
                call.cancel()
                let start = world.clock.now
                await call.value
                model.cancelled(topic, after: start.duration(to: world.clock.now))
            }
            await call.value
        }
    }
}

/// What a receiver may and must have received.
final class MQTTModel: Sendable {
    private struct Topic {
        var begun: [Int] = []
        var succeeded: Set<Int> = []
        var received: [Int] = []
        var longestCancellation = Duration.zero
    }

    private let topics = Mutex<[String: Topic]>([:])
    private let isOutOfOrder = Atomic(false)

    func publishedFirst() { isOutOfOrder.store(true, ordering: .relaxed) }

    func began(_ topic: String, _ number: Int) { topics.withLock { $0[topic, default: Topic()].begun.append(number) } }
    func ended(_ topic: String, _ number: Int) { topics.withLock { _ = $0[topic]?.succeeded.insert(number) } }

    func received(_ topic: String, _ text: String) {
        guard let number = Int(text) else { return }
        topics.withLock { $0[topic, default: Topic()].received.append(number) }
    }

    func cancelled(_ topic: String, after time: Duration) {
        topics.withLock { topics in
            let longest = topics[topic]?.longestCancellation ?? .zero
            topics[topic]?.longestCancellation = max(longest, time)
        }
    }

    func check(_ world: Simulation) throws {
        try world.require(
            !isOutOfOrder.load(ordering: .relaxed), "a client published before it had subscribed again")
        for (name, topic) in topics.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let numbers = topic.received
            let first = numbers.indices.filter { !numbers[..<$0].contains(numbers[$0]) }.map { numbers[$0] }
            let lost = topic.succeeded.subtracting(numbers)
            let foreign = Set(numbers).subtracting(topic.begun)
            try world.require(foreign.isEmpty, "\(name) received \(foreign), which nobody has published")
            try world.require(first == first.sorted(), "\(name) received \(numbers), out of order")
            try world.require(
                topic.longestCancellation <= .milliseconds(100),
                "a cancelled call for \(name) ended after \(topic.longestCancellation)")
            if !name.hasSuffix("/0") { try world.require(lost.isEmpty, "\(name) lost \(lost.sorted())") }
            if !name.hasSuffix("/1") {
                try world.require(first == numbers, "\(name) received \(numbers): some more than once")
            }
        }
    }
}
