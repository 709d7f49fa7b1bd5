import MQTT
import Synchronization

@testable import LoopbackBroker

/// A world of MQTT, with the promises of its clients and a model that checks them (``MQTTModel``): a sender with or without a
/// session store, whose process may die, a receiver with a session, and a client without a session.
enum MQTTPromises {
    /// What may happen to a world.
    enum Kind {
        /// Servers keep their sessions.
        case lasting
        /// Servers forget: what they had queued is lost, and what a client publishes again may come twice.
        case forgetful
        /// Links, names, answers and the disk are slow, but no connection may end: nothing is lost, not even QoS 0.
        case unbroken

        /// Half of the worlds are lasting.
        init(seed: UInt64) { self = [.lasting, .forgetful, .lasting, .unbroken][Int(seed % 4)] }
    }

    /// Runs the worlds of several seeds, each of its kind.
    static func run(seeds: Range<UInt64>) async throws {
        for seed in seeds {
            let kind = Kind(seed: seed)
            try await Simulation.run(seed: seed, options: options(kind)) { world in try await run(world, kind) }
        }
    }

    static var options: SimulationOptions { options(.lasting) }

    private static func options(_ kind: Kind) -> SimulationOptions {
        var options = SimulationOptions()
        if kind == .unbroken {
            options.faults = [.latency, .slowness, .slowAnswers, .names, .slowDisk]
            options.calm = .zero
            return options
        }
        options.faults = [.recoverable, .takeovers, .smallerLimits, .disk, .clockChanges]
        if kind == .forgetful { options.faults.insert(.losses) }
        options.acts = [
            "suspend the sender", "suspend the receiver", "disconnect the sender", "tell of a network",
            "subscribe for a time", "the sender's process ends", "the sender's process ends",
        ]
        return options
    }

    private static let publishers = 3
    private static let messages = 6
    private static let directory = "/sender"

    @Sendable static func body(_ world: Simulation) async throws { try await run(world, .lasting) }

    private static func run(_ world: Simulation, _ kind: Kind) async throws {
        let serverForgets = kind == .forgetful
        var random = world.makeRandom()
        let broker = try await world.startBroker(host: "broker.example")
        let url = broker.url("mqtt", broker.ports.mqtt, using: &random)
        var configuration = MQTTConfiguration()
        configuration.version = Bool.random(using: &random) ? .v5_0 : .v3_1_1
        configuration.cleanStart = false
        if configuration.version == .v5_0 { configuration.sessionExpiry = .seconds(86_400) }
        let window: UInt16 = [1, 2, 1024].randomElement(using: &random) ?? 1
        configuration.maximumInFlight = window
        configuration.queuesQoS0WhileOffline = kind == .unbroken || Bool.random(using: &random)
        // So that PINGREQ waits behind bytes of a slow link.
        if kind == .unbroken { configuration.keepAlive = .seconds(20) }
        configuration.credentialsProvider = { request in
            if request.attempt % 2 == 0 { try await world.clock.sleep(for: .milliseconds(10)) }
            return nil
        }
        let model = MQTTModel(serverForgets: serverForgets, isUnbroken: kind == .unbroken)
        let store = StoreKind.allCases.randomElement(using: &random) ?? .none
        world.note("the sender's store: \(store)")
        let sender = SenderProcess(url, configuration, store, directory, world, model)
        let receiver = MQTTClient(
            url, clientID: "receiver", configuration: configuration, clock: world.clock)
        let receiverWatch = ClientWatch("receiver")
        let watchingReceiver = receiverWatch.watch(receiver, world) { _ in }
        await receiver.start()
        if kind != .unbroken { await sender.start() }
        let keeping = Task { await keep(sender, receiver, world, model) }
        let reader = Task { [random = world.makeRandom()] in await read(receiver, random, world, model) }
        try await subscribed(receiver, world)

        act(world, broker, sender, receiver, model)
        configuration.cleanStart = true
        configuration.sessionExpiry = .zero
        let forgetful = MQTTClient(
            url, clientID: "forgetful", configuration: configuration, clock: world.clock)
        let watching = watch(broker, sender, window, model, ordersSender: store == .none)
        await forgetful.start()
        // The first messages wait for the store too.
        if kind == .unbroken { await sender.start() }
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
        await sender.isRunning()
        try await publishEnd(sender.client, "t/end", .exactlyOnce, world, reader: serverForgets ? reader : nil)
        await reader.value
        // A subscription that was granted receives again after every fault that ends.
        try await publishEnd(forgetful, "echo", .atLeastOnce, world, reader: serverForgets ? echoing : nil)
        await echoing.value
        keeping.cancel()
        await keeping.value
        sender.finish()
        try world.require(
            sender.client.backlog.queuedMessages == 0 && sender.client.backlog.messagesInFlight == 0,
            "the sender has a backlog of \(sender.client.backlog) after its last message")
        let held = broker.filters(of: "receiver").subtracting(["t/#"]).subtracting(model.filtersLeft)
        try world.require(held.isEmpty, "the server was not told that subscriptions to \(held.sorted()) have ended")
        await sender.client.disconnect()
        await receiver.disconnect()
        await forgetful.disconnect()
        await broker.stop()
        await watching.value
        try model.check(world)
        try await sender.check(world)
        // What was reported before the end has to arrive.
        try await world.clock.sleep(for: .seconds(1))
        watchingReceiver.cancel()
        await watchingReceiver.value
        try receiverWatch.check(receiver.counters, world)
        if kind == .unbroken {
            for client in [sender.client, receiver] {
                let count = client.counters.connections
                try world.require(count == 1, "a client made \(count) connections, but none was lost")
            }
        }
        let (counted, taken) = (receiver.counters.messagesReceived, model.receivedCount)
        try world.require(counted >= taken, "the receiver counted \(counted) of \(taken) messages")
        // Keep alive, the wait for PINGRESP, and the time that closing takes. The wait begins again while bytes move that
        // PINGREQ follows.
        let longest = world.world.longestStillness
        try world.require(longest < .seconds(75), "a client kept a dead connection for \(longest)")
    }

    /// Publishes the last message, as an app does that tries until it succeeds: the client may have stopped, or not noticed
    /// yet that its connection is dead.
    ///
    /// - Parameter reader: ends with the message, which a server that forgets may lose after it has acknowledged it.
    private static func publishEnd(
        _ client: MQTTClient, _ topic: String, _ qos: QoS, _ world: Simulation, reader: Task<Void, Never>?
    ) async throws {
        let start = world.clock.now
        let isOver = Atomic(reader == nil)
        let waiting = Task {
            await reader?.value
            isOver.store(true, ordering: .relaxed)
        }
        _ = waiting
        while true {
            do {
                try await client.connect()
                try await client.publish("end", to: topic, qos: qos)
                if isOver.load(ordering: .relaxed) { return }
            } catch {
                let time = start.duration(to: world.clock.now)
                try world.require(time < .seconds(600), "publishing still fails after \(time): \(error)")
            }
            try await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Connects clients again that have stopped, because another client took their session over or the store failed.
    private static func keep(
        _ sender: SenderProcess, _ receiver: MQTTClient, _ world: Simulation, _ model: MQTTModel
    ) async {
        while (try? await world.clock.sleep(for: .seconds(3))) != nil {
            for client in [sender.client, receiver] {
                if case .disconnected(let reason?) = client.state {
                    world.note("stopped: \(reason)")
                    if client === receiver { model.receiverStopped() }
                    await client.start()
                    // Its process may have ended meanwhile.
                    if client !== sender.client && client !== receiver { await client.disconnect() }
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
            let buffer = BufferPolicy(
                messages: [1, 2, 4].randomElement(using: &random) ?? 1,
                overflow: model.isUnbroken ? .pauseReading : .dropOldest)
            let received = receiver.subscription(to: "t/#", qos: .exactlyOnce, buffer: buffer)
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

    /// Checks, on each connection, that a client without a session subscribes before it publishes, and that a sender
    /// publishes in the order in which its messages were accepted: first those that were unfinished, then the queue.
    ///
    /// And that no more messages are in flight than allowed, and that DUP is set where a message was sent before and only
    /// there [MQTT-3.3.1-1].
    private static func watch(
        _ broker: LoopbackBroker, _ sender: SenderProcess, _ window: UInt16, _ model: MQTTModel, ordersSender: Bool
    ) -> Task<Void, Never> {
        let arrivals = broker.arrivals()
        return Task {
            var isFirst = false
            var isOver = false
            var last = 0
            // Messages that were begun before the connection was opened, and those that have arrived.
            var before = 0
            var arrived: Set<Int> = []
            for await arrival in arrivals {
                if arrival.client == "sender" {
                    // A session that was read from a store counts those that it may have sent.
                    let inFlight = ordersSender ? sender.client.backlog.messagesInFlight : 0
                    if inFlight > window { model.broke("\(inFlight) messages are in flight, \(window) are allowed") }
                    if arrival.packet == .mqtt(.connect) { before = model.now }
                    if let topic = arrival.topic, arrival.packet == .mqtt(.publish),
                        let place = model.place(of: topic, arrival.text)
                    {
                        if arrival.isDuplicate, topic.hasSuffix("/0") || place > before {
                            model.broke("\(topic) \(arrival.text.prefix(4)) has DUP, but was never sent before")
                        }
                        let isFirst = arrived.insert(place).inserted
                        if !isFirst, !arrival.isDuplicate, !model.serverForgets {
                            model.broke("\(topic) \(arrival.text.prefix(4)) came again without DUP")
                        }
                    }
                }
                if ordersSender, arrival.client == "sender" {
                    if arrival.packet == .mqtt(.connect) { last = 0 }
                    if let topic = arrival.topic, arrival.packet == .mqtt(.publish), !topic.hasSuffix("/0"),
                        let place = model.place(of: topic, String(decoding: arrival.payload, as: UTF8.self))
                    {
                        if place < last { model.sentOutOfOrder() }
                        last = place
                    }
                }
                guard arrival.client == "forgetful" else { continue }
                // The reader releases its subscription when the last message arrives.
                isOver = isOver || arrival.payload.elementsEqual("end".utf8)
                if isFirst, !isOver, arrival.packet == .mqtt(.publish) { model.publishedFirst() }
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
        _ world: Simulation, _ broker: LoopbackBroker, _ sender: SenderProcess, _ receiver: MQTTClient,
        _ model: MQTTModel
    ) {
        world.onAct("tell of a network") { _ in
            for client in [sender.client, receiver] { client.networkChanged() }
        }
        // Released and not released subscriptions beside the one that counts, some of them cancelled.
        world.onAct("subscribe for a time") { random in
            var random = random
            let stops = model.receiverStops
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
            // The end of its client ends a subscription, and leaves its filter in the session.
            var hasStopped = model.receiverStops != stops
            if case .disconnected = receiver.state { hasStopped = true }
            model.ended("t/+/0", byStop: hasStopped)
        }
        for name in ["suspend the sender", "suspend the receiver"] {
            world.onAct(name) { random in
                var random = random
                let client = name == "suspend the sender" ? sender.client : receiver
                await client.suspend()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                if client === receiver || sender.uses(client) { client.resume() }
            }
        }
        world.onAct("disconnect the sender") { random in
            var random = random
            let client = sender.client
            await client.disconnect()
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            // Its process may have ended.
            if sender.uses(client) { await client.start() }
        }
        world.onAct("the sender's process ends") { random in
            var random = random
            await sender.end(broker, losingPower: Bool.random(using: &random)) {
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            }
        }
    }

    /// One message after the other, each for a topic of its publisher and its quality of service; some calls are cancelled.
    private static func publish(
        _ publisher: Int, _ random: SimulationRandom, _ world: Simulation, _ sender: SenderProcess, _ model: MQTTModel
    ) async {
        var random = random
        for number in stride(from: 0, to: 16 * messages, by: 16) {
            let pause = number == 0 && model.isUnbroken ? 0 : Int.random(in: 0...20_000, using: &random)
            // No two publishers begin at the same time: their tasks would have no order.
            try? await world.clock.sleep(for: .milliseconds(pause) + .microseconds(publisher))
            await sender.isRunning()
            let qos = QoS.allCases.randomElement(using: &random) ?? .atMostOnce
            let topic = "t/\(publisher)/\(qos.rawValue)"
            let enqueues = qos != .atMostOnce && Int.random(in: 0..<3, using: &random) == 0
            // Some are larger than a server with smaller limits accepts.
            let rest = String(repeating: " ", count: Int.random(in: 0..<6, using: &random) == 0 ? 600 : 0)
            let text = "\(number)\(rest)"
            // A clock that is set forward while the process does not run lets it expire, which is reported.
            var properties = MQTTProperties()
            if sender.configuration.version == .v5_0, Int.random(in: 0..<4, using: &random) == 0 {
                properties.messageExpiryInterval = 3600
            }
            let (client, life) = sender.current
            if qos == .atMostOnce {
                // More of them at once, which nobody waits for: a slow link carries them for a minute.
                for extra in (number - Int.random(in: 0..<(model.isUnbroken ? 13 : 4), using: &random))..<number {
                    model.began(topic, extra)
                    let message = MQTTOutgoingMessage("\(extra)\(rest)", to: topic, qos: qos)
                    if (try? client.tryPublish(message)) == true { model.ended(topic, extra) }
                }
            }
            let call = Task {
                model.began(topic, number)
                do {
                    if enqueues {
                        let message = MQTTOutgoingMessage(text, to: topic, qos: qos, properties: properties)
                        try await client.enqueue(message)
                    } else {
                        try await client.publish(text, to: topic, qos: qos)
                    }
                    // What a process that has ended would have learnt counts for nothing.
                    guard sender.current.life == life else { return }
                    if enqueues { model.enqueued(topic, number) } else { model.ended(topic, number) }
                    world.note("\(enqueues ? "enqueued" : "published") \(topic) \(number)")
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

/// Where the sender has its session.
enum StoreKind: CaseIterable {
    case none, memory, file
    /// Written records are not forced to the disk, so that the power must not fail.
    case unsynced
}

/// The process of a client that publishes: it may end at any moment, and starts again with what is in its store.
final class SenderProcess: Sendable {
    private struct State {
        var client: MQTTClient
        var life = 1
        var isDown = false
        var isOver = false
        var watches: [(ClientWatch, MQTTClient, Task<Void, Never>)] = []
    }

    private let url: String
    let configuration: MQTTConfiguration
    private let store: StoreKind
    private let directory: String
    private let world: Simulation
    private let model: MQTTModel
    private let state: Mutex<State>

    init(
        _ url: String, _ configuration: MQTTConfiguration, _ store: StoreKind, _ directory: String,
        _ world: Simulation, _ model: MQTTModel
    ) {
        (self.url, self.store, self.directory, self.world, self.model) = (url, store, directory, world, model)
        var configuration = configuration
        if store == .memory { configuration.sessionStore = MemorySessionStore() }
        self.configuration = configuration
        let client = Self.makeClient(url, configuration, store, directory, world)
        state = Mutex(State(client: client))
        watch(client, 1)
    }

    private static func makeClient(
        _ url: String, _ configuration: MQTTConfiguration, _ store: StoreKind, _ directory: String, _ world: Simulation
    ) -> MQTTClient {
        var configuration = configuration
        if store == .file || store == .unsynced {
            var options = FileSessionStore.Options()
            options.sync = store == .file ? .always : .never
            // So that the log is rewritten now and then.
            options.compactionSize = 200
            configuration.sessionStore = FileSessionStore(directory: directory, options: options)
        }
        return MQTTClient(url, clientID: "sender", configuration: configuration, clock: world.clock)
    }

    private func watch(_ client: MQTTClient, _ life: Int) {
        let watch = ClientWatch("sender")
        let task = watch.watch(client, world) { [model, world] event in
            switch event {
            case .undelivered(let error):
                world.note("undelivered: \(error)")
                model.undelivered()
            case .sessionLost(_, let possibleDuplicates): model.sessionLost(possibleDuplicates)
            case .storeDamaged(let damage): model.damaged("\(damage)")
            default: break
            }
        }
        state.withLock { $0.watches.append((watch, client, task)) }
    }

    var current: (client: MQTTClient, life: Int) { state.withLock { ($0.client, $0.life) } }
    var client: MQTTClient { current.client }

    /// Whether a client is that of the process that runs now.
    func uses(_ client: MQTTClient) -> Bool { state.withLock { !$0.isOver && $0.client === client } }

    /// The world is over.
    func finish() { state.withLock { $0.isOver = true } }

    func start() async { await client.start() }

    /// Returns when the process runs.
    func isRunning() async {
        while state.withLock({ $0.isDown }) { try? await world.clock.sleep(for: .milliseconds(100)) }
    }

    /// The process ends at this moment, and starts again after `pause`. Without a store on the disk nothing happens.
    func end(_ broker: LoopbackBroker, losingPower: Bool, pause: () async -> Void) async {
        guard store == .file || store == .unsynced else { return }
        // Nobody uses the old client any more.
        let client = Self.makeClient(url, configuration, store, directory, world)
        let (old, life) = state.withLock { state -> (MQTTClient?, Int) in
            guard !state.isDown, !state.isOver else { return (nil, 0) }
            state.isDown = true
            state.life += 1
            defer { state.client = client }
            return (state.client, state.life)
        }
        guard let old else { return }
        world.endProcess(usingStoreIn: directory, losingPower: losingPower && store == .file)
        await broker.dropConnection(of: "sender")
        watch(client, life)
        await old.disconnect()
        await pause()
        await client.start()
        state.withLock { $0.isDown = false }
    }

    /// Checks what its clients have reported, all of which have disconnected.
    func check(_ world: Simulation) async throws {
        try await world.clock.sleep(for: .seconds(1))
        for (watch, client, task) in state.withLock({ $0.watches }) {
            task.cancel()
            await task.value
            try watch.check(client.counters, world)
        }
    }
}
