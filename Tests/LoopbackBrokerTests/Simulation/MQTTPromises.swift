import LoopbackBroker
import MQTT
import Synchronization

/// A world of MQTT, with the promises of its clients and a model that checks them: QoS 0 at most once and in order, QoS 1
/// at least once with first deliveries in order, QoS 2 exactly once; each call ends, a cancelled one within 100 ms;
/// after a reconnect subscriptions come first, and receive again.
enum MQTTPromises {
    static var options: SimulationOptions {
        var options = SimulationOptions()
        options.faults = [.recoverable, .takeovers, .smallerLimits]
        options.acts = [
            "suspend the sender", "suspend the receiver", "disconnect the sender", "tell of a network",
            "subscribe for a time",
        ]
        return options
    }

    private static let publishers = 3
    private static let messages = 6

    @Sendable static func body(_ world: Simulation) async throws {
        var random = world.makeRandom()
        let broker = try await world.startBroker(host: "broker.example")
        // Some clients need a network and a name.
        let port = broker.ports.mqtt ?? 0
        let url = Bool.random(using: &random) ? "mqtt://broker.example:\(port)" : "mqtt://127.0.0.1:\(port)"
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
        let sender = MQTTClient(
            url, clientID: "sender", configuration: configuration, clock: world.clock)
        configuration.sessionStore = nil
        let receiver = MQTTClient(
            url, clientID: "receiver", configuration: configuration, clock: world.clock)
        let model = MQTTModel()
        await receiver.start()
        await sender.start()
        let keeping = Task { await keep([sender, receiver], world) }
        let reader = Task { [random = world.makeRandom()] in await read(receiver, random, world, model) }
        try await subscribed(receiver, world)

        act(world, sender, receiver, model)
        configuration.cleanStart = true
        configuration.sessionExpiry = .zero
        let forgetful = MQTTClient(
            url, clientID: "forgetful", configuration: configuration, clock: world.clock)
        let watching = watch(broker, model)
        await forgetful.start()
        let echoing = Task { await echo(forgetful, world) }
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
        try await publishEnd(sender, "t/end", .exactlyOnce, world)
        await reader.value
        // A subscription that was granted receives again after every fault that ends.
        try await publishEnd(forgetful, "echo", .atLeastOnce, world)
        await echoing.value
        keeping.cancel()
        await keeping.value
        try model.check(world)
        await sender.disconnect()
        await receiver.disconnect()
        await forgetful.disconnect()
        await broker.stop()
        await watching.value
    }

    /// Publishes the last message, as an app does that tries until it succeeds: the client may have stopped, or not noticed
    /// yet that its connection is dead.
    private static func publishEnd(
        _ client: MQTTClient, _ topic: String, _ qos: QoS, _ world: Simulation
    ) async throws {
        let start = world.clock.now
        while true {
            do {
                try await client.connect()
                try await client.publish("end", to: topic, qos: qos)
                return
            } catch {
                let time = start.duration(to: world.clock.now)
                try world.require(time < .seconds(600), "publishing still fails after \(time): \(error)")
                try await world.clock.sleep(for: .seconds(1))
            }
        }
    }

    /// Connects clients again that have stopped, because another client took their session over.
    private static func keep(_ clients: [MQTTClient], _ world: Simulation) async {
        while (try? await world.clock.sleep(for: .seconds(3))) != nil {
            for client in clients {
                if case .disconnected(let reason?) = client.state {
                    world.note("stopped: \(reason)")
                    await client.start()
                }
            }
        }
    }

    /// Notes what arrives, now and then slowly; subscribes again when the client has stopped.
    private static func read(
        _ receiver: MQTTClient, _ random: SimulationRandom, _ world: Simulation, _ model: MQTTModel
    ) async {
        var random = random
        while true {
            let received = receiver.subscription(to: "t/#", qos: .exactlyOnce, buffer: BufferPolicy(messages: 4))
            do {
                for try await message in received {
                    model.received(message.topic, message.text ?? "")
                    world.note("received \(message.topic) \(message.text?.prefix(4) ?? "")")
                    if message.topic == "t/end" { return }
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        let pause = Duration.milliseconds(Int.random(in: 0...20_000, using: &random))
                        try await world.clock.sleep(for: pause)
                    }
                }
            } catch {
                world.note("the reader stops: \(error)")
            }
            try? await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Reads until the last message; connects and subscribes again when the client has stopped.
    private static func echo(_ client: MQTTClient, _ world: Simulation) async {
        while true {
            let echo = client.subscription(to: "echo", qos: .atLeastOnce)
            await client.start()
            do {
                for try await message in echo where message.text == "end" { return }
            } catch {
                world.note("the echo stops: \(error)")
            }
            try? await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Checks that a client without a session subscribes before it publishes, on each of its connections.
    private static func watch(_ broker: LoopbackBroker, _ model: MQTTModel) -> Task<Void, Never> {
        let arrivals = broker.arrivals()
        return Task {
            var isFirst = false
            for await arrival in arrivals where arrival.client == "forgetful" {
                // The reader releases its subscription when this arrives.
                if arrival.payload.elementsEqual("end".utf8) { return }
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

    private static func act(
        _ world: Simulation, _ sender: MQTTClient, _ receiver: MQTTClient, _ model: MQTTModel
    ) {
        world.onAct("tell of a network") { _ in
            for client in [sender, receiver] { client.networkChanged() }
        }
        // Released and not released subscriptions beside the one that counts, some of them cancelled.
        world.onAct("subscribe for a time") { random in
            var random = random
            let call = Task {
                do {
                    let other = try await receiver.subscribe(to: "t/+/0", qos: .atMostOnce)
                    try await world.clock.sleep(for: .seconds(5))
                    try await other.unsubscribe()
                    let release = model.now
                    for try await message in other {
                        model.received(message.topic, message.text ?? "", after: release)
                    }
                } catch {
                    world.note("another subscription: \(error)")
                }
            }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...10_000, using: &random)))
            await model.cancel(call, "subscribe", world)
        }
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
            // Some are larger than a server with smaller limits accepts.
            let text = "\(number)" + String(repeating: " ", count: Int.random(in: 0..<6, using: &random) == 0 ? 600 : 0)
            let call = Task {
                do {
                    try await client.publish(text, to: topic, qos: qos)
                    model.ended(topic, number)
                    world.note("published \(topic) \(number)")
                } catch {
                    world.note("failed \(topic) \(number): \(error)")
                }
            }
            if Int.random(in: 0..<5, using: &random) == 0 {
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...1000, using: &random)))
                await model.cancel(call, topic, world)
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
        /// When each was begun, among all messages.
        var places: [Int: Int] = [:]
    }

    private let topics = Mutex<[String: Topic]>([:])
    private let isOutOfOrder = Atomic(false)
    private let count = Atomic(0)
    private let late = Atomic(0)
    private let longestCancellation = Mutex<(name: String, time: Duration)>(("", .zero))

    func publishedFirst() { isOutOfOrder.store(true, ordering: .relaxed) }

    /// Counts messages that were begun.
    var now: Int { count.load(ordering: .relaxed) }

    func began(_ topic: String, _ number: Int) {
        let place = count.add(1, ordering: .relaxed).newValue
        topics.withLock { topics in
            topics[topic, default: Topic()].begun.append(number)
            topics[topic]?.places[number] = place
        }
    }

    /// A subscription that was released received this.
    func received(_ topic: String, _ text: String, after release: Int) {
        let place = Int(text.prefix { $0 != " " }).flatMap { number in topics.withLock { $0[topic]?.places[number] } }
        if let place, place > release { late.add(1, ordering: .relaxed) }
    }

    /// Cancels a call and waits for its end.
    func cancel(_ call: Task<Void, Never>, _ name: String, _ world: Simulation) async {
        call.cancel()
        let start = world.clock.now
        await call.value
        let time = start.duration(to: world.clock.now)
        longestCancellation.withLock { if time > $0.time { $0 = (name, time) } }
    }

    func ended(_ topic: String, _ number: Int) { topics.withLock { _ = $0[topic]?.succeeded.insert(number) } }

    func received(_ topic: String, _ text: String) {
        guard let number = Int(text.prefix { $0 != " " }) else { return }
        topics.withLock { $0[topic, default: Topic()].received.append(number) }
    }

    func check(_ world: Simulation) throws {
        try world.require(
            !isOutOfOrder.load(ordering: .relaxed), "a client published before it had subscribed again")
        try world.require(
            late.load(ordering: .relaxed) == 0, "a subscription received what was published after its end")
        let longest = longestCancellation.withLock { $0 }
        try world.require(
            longest.time <= .milliseconds(100), "a cancelled call for \(longest.name) ended after \(longest.time)")
        for (name, topic) in topics.withLock({ $0 }).sorted(by: { $0.key < $1.key }) {
            let numbers = topic.received
            let first = numbers.indices.filter { !numbers[..<$0].contains(numbers[$0]) }.map { numbers[$0] }
            let lost = topic.succeeded.subtracting(numbers)
            let foreign = Set(numbers).subtracting(topic.begun)
            try world.require(foreign.isEmpty, "\(name) received \(foreign), which nobody has published")
            try world.require(first == first.sorted(), "\(name) received \(numbers), out of order")
            if !name.hasSuffix("/0") { try world.require(lost.isEmpty, "\(name) lost \(lost.sorted())") }
            if !name.hasSuffix("/1") {
                try world.require(first == numbers, "\(name) received \(numbers): some more than once")
            }
        }
    }
}
