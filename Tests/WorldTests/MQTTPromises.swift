import MessagingJudge
import Synchronization

@testable import LoopbackBroker
@testable import MQTT

/// A world of MQTT, with the promises of its clients and a model that checks them (``MQTTModel``): a sender with or without a
/// session store, whose process may die, a receiver with a session, or a worker with a store, whose process may die too, and
/// a client without a session.
enum MQTTPromises {
    /// What may happen to a world.
    enum Kind {
        /// Servers keep their sessions.
        case lasting
        /// Servers forget: what they had queued is lost, and what a client publishes again may come twice.
        case forgetful
        /// Links, names, answers and the disk are slow, but no connection may end: nothing is lost, not even QoS 0.
        case unbroken
        /// Servers keep their sessions; the receiver acknowledges what it has processed, has a store, and may die.
        case worker
        /// What waits, and what leaves in a second, has a small bound; see ``MQTTBounds``.
        case bounded

        init(seed: UInt64) { self = [.lasting, .forgetful, .worker, .unbroken, .bounded][Int(seed % 5)] }
    }

    /// Runs the worlds of several seeds, each of its kind.
    static func run(seeds: Range<UInt64>) async throws {
        for seed in seeds {
            let (options, body) = world(of: seed)
            try await Simulation.run(seed: seed, options: options, body)
        }
    }

    /// What may happen to the world of a seed, and what does.
    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        // One of thirteen, so that the others keep what they were.
        if seed % 13 == 11 { return MQTTServers.world(of: seed) }
        let kind = Kind(seed: seed)
        if kind == .bounded { return MQTTBounds.world(of: seed) }
        return (options(kind), { world in try await run(world, kind) })
    }

    static var options: SimulationOptions { options(.lasting) }

    private static func options(_ kind: Kind) -> SimulationOptions {
        var options = SimulationOptions()
        if kind == .unbroken {
            options.faults = [.latency, .slowness, .slowAnswers, .names, .slowDisk]
            options.calm = .zero
            return options
        }
        if kind == .worker {
            options.faults = [.recoverable, .takeovers, .disk]
            options.maximumEntries = 20
            options.acts = [
                "disconnect the receiver", "the receiver's process ends", "the receiver's process ends",
                "suspend the receiver", "the sender's process ends", "move the receiver",
            ]
            return options
        }
        options.faults = [.recoverable, .takeovers, .smallerLimits, .disk, .clockChanges]
        if kind == .forgetful { options.faults.insert(.losses) }
        options.acts = [
            "suspend the sender", "suspend the receiver", "disconnect the sender", "tell of a network",
            "subscribe for a time", "the sender's process ends", "the sender's process ends", "move the sender",
            "move the receiver",
        ]
        return options
    }

    private static let publishers = 3
    /// 600 characters that follow the number of a large message; no two parts of it are alike.
    private static let rest = String((0..<200).map { " \($0 * 7)" }.joined().prefix(600))
    private static let messages = 6

    @Sendable static func body(_ world: Simulation) async throws { try await run(world, .lasting) }

    private static func run(_ world: Simulation, _ kind: Kind) async throws {
        let serverForgets = kind == .forgetful
        var random = world.makeRandom()
        let users = WorldUsers(world)
        var brokerOptions = users.options
        // A process that starts anew, or an app that connects again, does not know what it has subscribed.
        brokerOptions.judging.mayBreak = kind == .worker ? [.needlessSubscribe] : []
        let model = MQTTModel(serverForgets: serverForgets, isUnbroken: kind == .unbroken, world)
        // An open finding, world 20261129003127: connections that the client ends itself, because its store fails, are taken for
        // answers of the server to the message that has its PUBREC, which is given up after two of them.
        brokerOptions.judging.isExcused = {
            $0.clause == .unfinishedFirst && $0.client == "sender" && model.wasRefused
        }
        let broker = try await world.startBroker(brokerOptions, host: "broker.example")
        let url = broker.url("mqtt", broker.ports.mqtt, using: &random)
        var configuration = MQTTConfiguration()
        configuration.version = Bool.random(using: &random) ? .v5_0 : .v3_1_1
        configuration.cleanStart = false
        if configuration.version == .v5_0 { configuration.sessionExpiry = .seconds(86_400) }
        let window: UInt16 = [1, 2, 1024].randomElement(using: &random) ?? 1
        configuration.maximumInFlight = window
        configuration.queuesQoS0WhileOffline = kind == .unbroken || Bool.random(using: &random)
        if kind != .unbroken {
            let ages: [Duration?] = [nil, nil, .seconds(5), .seconds(40)]
            configuration.reconnect.maximumConnectionAge = ages.randomElement(using: &random) ?? nil
        }
        // So that PINGREQ waits behind bytes of a slow link. A server that gets no whole packet for one and a half times as long
        // ends the connection, so that the slowest link has to carry the largest message in half of this.
        if kind == .unbroken { configuration.keepAlive = .seconds(20) }
        // Decided by the seed itself, so that other worlds keep their random numbers.
        let isSlow = world.seed % 3 == 1
        configuration.credentialsProvider = { request in
            if request.attempt % 2 == 0 { try await world.clock.sleep(for: .milliseconds(10)) }
            // Longer than an attempt may take.
            if isSlow, request.attempt % 4 == 3 { try await world.clock.sleep(for: .seconds(300)) }
            return users.credentials(for: request)
        }
        // A full buffer stops the reading of all packets.
        let pausesReading = kind == .unbroken || kind != .worker && isSlow
        // Of each client its name, so that the other worlds stay as they are.
        let hasWill = world.seed % 4 == 0
        func will(_ name: String) -> MQTTWill? { hasWill ? MQTTWill(name, to: "will", qos: .atLeastOnce) : nil }
        broker.collect(topic: "will")
        // Read at the end, since another task would change the order of what happens.
        let all = broker.arrivals(maximumCount: 100_000)
        configuration.will = will("sender")
        let store = StoreKind.allCases.randomElement(using: &random) ?? .none
        world.note("the sender's store: \(store)")
        let connections = Atomic(0)
        let sender = ClientProcess("sender", [url], configuration, store, world) { event, contents in
            switch event {
            case .connected: connections.add(1, ordering: .relaxed)
            case .undelivered(let error):
                world.note("undelivered: \(error)")
                model.undelivered()
                model.failed(error)
            case .sessionLost(_, let possibleDuplicates):
                // Of an earlier process it is only known that a CONNECT may have left.
                let isKnown = connections.load(ordering: .relaxed) > 1 || contents?.wasEstablished != true
                model.sessionLost(possibleDuplicates, wasConnected: isKnown)
            case .storeDamaged(let damage): model.damaged("\(damage)")
            case .stateChanged(.disconnected(let reason?)): model.stopped("sender", reason)
            default: break
            }
        }
        configuration.will = will("receiver")
        let workStore = Int.random(in: 0..<4, using: &random) == 0 ? StoreKind.memory : .file
        let receiverStore = kind == .worker ? workStore : .none
        let asksAgain = configuration.version == .v5_0
        let receiver = ClientProcess("receiver", [url], configuration, receiverStore, world) { event, _ in
            if case .storeDamaged(let damage) = event { model.damaged("\(damage)") }
            switch event {
            case .subscribed(let filter, let code), .resubscribed(let filter, let code):
                // A server of 3.1.1 does not say what it grants at most, so that nobody asks again when that has become more.
                if filter == "t/#", code != .grantedQoS2, !asksAgain { model.grantedLess() }
            case .stateChanged(.disconnected(let reason?)):
                if reason.code == .storeFailed { model.workStoreFails() }
                model.stopped("receiver", reason)
            default: break
            }
        }
        // The disks of machines that have just started are slow.
        if Bool.random(using: &random) { world.world.changeNetwork { $0.diskDelay = 0...3_000_000_000 } }
        await receiver.start()
        if kind != .unbroken { await sender.start() }
        let keeping = Task { await keep(sender, receiver, world, model) }
        let reader = Task { [random = world.makeRandom()] in
            if kind == .worker {
                await work(receiver, world, model)
            } else {
                await read(receiver.client, random, world, model, pausesReading: pausesReading)
            }
        }
        try await subscribed(receiver.client, world)

        act(world, broker, sender, receiver, model, pausesReading: pausesReading && kind != .unbroken)
        configuration.cleanStart = true
        configuration.sessionExpiry = .zero
        configuration.will = will("forgetful")
        let forgetful = MQTTClient(
            url, clientID: "forgetful", configuration: configuration, clock: world.clock)
        let watching = watch(broker, sender, receiver, window, model, users, ordersSender: store == .none)
        await forgetful.start()
        // The first messages wait for the store too.
        if kind == .unbroken { await sender.start() }
        let echoing = Task { await echo(forgetful, world, model) }
        let reporting = pausesReading && kind != .unbroken ? Task { await report(receiver.client, world) } : nil
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
        await reporting?.value
        // A subscription that was granted receives again after every fault that ends.
        try await publishEnd(forgetful, "echo", .atLeastOnce, world, reader: serverForgets ? echoing : nil)
        await echoing.value
        // An answer shows that the server has what the receiver sent before, also if its connection was dead.
        let start = world.clock.now
        while (try? await receiver.client.publish("", to: "last", qos: .atLeastOnce)) == nil {
            let time = start.duration(to: world.clock.now)
            try world.require(time < .seconds(200), "publishing still fails after \(time)")
            try await world.clock.sleep(for: .seconds(1))
        }
        keeping.cancel()
        await keeping.value
        sender.finish()
        receiver.finish()
        try world.require(
            sender.client.backlog.queuedMessages == 0 && sender.client.backlog.messagesInFlight == 0,
            "the sender has a backlog of \(sender.client.backlog) after its last message")
        let held = broker.filters(of: "receiver").subtracting(["t/#"]).subtracting(model.filtersLeft)
        // A process that ends leaves them.
        try world.require(
            held.isEmpty || kind == .worker,
            "the server was not told that subscriptions to \(held.sorted()) have ended")
        await sender.client.disconnect()
        await receiver.client.disconnect()
        await forgetful.disconnect()
        for client in [sender.client, receiver.client, forgetful] { try await world.requireEnd(of: client) }
        await broker.stop()
        await watching.value
        for await arrival in all { model.arrived(arrival, hasWill: hasWill) }
        try model.check(world)
        // A CONNECT that is refused has no connection that could end, and a server that forgets loses what was collected.
        if hasWill, !users.hasUsers, !serverForgets { try model.check(wills: broker.collected(topic: "will"), world) }
        let mayAbandon = options(kind).faults.contains(.smallerLimits) || model.wasRefused
        try await sender.check(world, mayAbandon: mayAbandon)
        try await receiver.check(world)
        let unused = MQTTClient(url, clientID: "forgetful", configuration: configuration, clock: world.clock)
        try world.requireNothingLeft(in: forgetful, unlike: unused)
        if kind == .unbroken {
            for client in [sender.client, receiver.client] {
                let count = client.counters.connections
                try world.require(count == 1, "a client made \(count) connections, but none was lost")
            }
        }
        if kind != .worker {
            let (counted, taken) = (receiver.client.counters.messagesReceived, model.receivedCount)
            try world.require(counted >= taken, "the receiver counted \(counted) of \(taken) messages")
        }
        try world.requireNoDeadConnection()
        // Also of processes that have ended, and of one that took a session over.
        try await world.requireNoConnection(afterAtMost: 10)
        // For each connection an attempt, and the credentials that it waits for.
        try world.requireNoTask(afterAtMost: 20)
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
        _ sender: ClientProcess, _ receiver: ClientProcess, _ world: Simulation, _ model: MQTTModel
    ) async {
        while (try? await world.clock.sleep(for: .seconds(3))) != nil {
            for process in [sender, receiver] {
                let client = process.client
                if case .disconnected(let reason?) = client.state {
                    world.note("stopped: \(reason)")
                    if process === receiver { model.receiverStopped() }
                    await client.start()
                    // Its process may have ended meanwhile.
                    if client !== process.client { await client.disconnect() }
                }
            }
        }
    }

    /// Notes what arrives, now and then slowly; subscribes again when the client has stopped.
    private static func read(
        _ receiver: MQTTClient, _ random: SimulationRandom, _ world: Simulation, _ model: MQTTModel, pausesReading: Bool
    ) async {
        var random = random
        while true {
            let buffer = BufferPolicy(
                messages: [1, 2, 4].randomElement(using: &random) ?? 1,
                overflow: pausesReading ? .pauseReading : .dropOldest)
            let received = receiver.subscription(to: "t/#", qos: .exactlyOnce, buffer: buffer)
            do {
                for try await message in received {
                    model.received(message.topic, message.text)
                    world.note("received \(message.topic) \(message.text?.prefix(4) ?? "")")
                    if message.topic == "t/end" { return }
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        let pause = Int.random(in: 0...20_000, using: &random)
                        if pausesReading, !model.isUnbroken, pause % 2 == 1 {
                            // The answer may be behind messages that only this task can take.
                            _ = try? await receiver.publish("read", to: "report", qos: .atLeastOnce)
                        } else {
                            try await world.clock.sleep(for: .milliseconds(pause))
                        }
                    }
                }
            } catch {
                world.note("the reader stops: \(error)")
                if model.isUnbroken { model.broke("the reader stops although no connection ended: \(error)") }
            }
            try? await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Publishes with the client that reads slowly: it notices the end of a connection when it writes, also while it does
    /// not read, and each call ends although answers wait behind messages.
    private static func report(_ receiver: MQTTClient, _ world: Simulation) async {
        for number in 0..<16 {
            try? await world.clock.sleep(for: .seconds(7))
            _ = try? await receiver.publish("\(number)", to: "report", qos: .atLeastOnce)
        }
    }

    /// Acknowledges what it has processed, sooner or later and in any order; declares its subscription again when the
    /// process has ended or the client has stopped.
    ///
    /// Acknowledgements of what a client received before it disconnected do nothing: it comes again. Those of messages that
    /// the store holds in place of the server end them.
    private static func work(_ worker: ClientProcess, _ world: Simulation, _ model: MQTTModel) async {
        var (old, oldLife) = ([MQTTMessage](), 0)
        while true {
            let (client, life) = worker.current
            if oldLife != life { (old, oldLife) = ([], life) }
            model.workBegins()
            let turn = Task { [old, random = world.makeRandom()] in
                await workUntilEnd(worker, client, old, random, world, model)
            }
            worker.hold(client) {
                turn.cancel()
                model.workProcessEnds()
            }
            guard let left = await turn.value else { return }
            old = left
            try? await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Works until the client has no connection any more or its process ends.
    ///
    /// - Parameter old: what the process received before the client disconnected.
    /// - Returns: that and what it received since; nil after the last message.
    private static func workUntilEnd(
        _ worker: ClientProcess, _ client: MQTTClient, _ old: [MQTTMessage], _ random: SimulationRandom,
        _ world: Simulation, _ model: MQTTModel
    ) async -> [MQTTMessage]? {
        var (random, received) = (random, old)
        let jobs = client.subscription(to: "t/#", qos: .exactlyOnce, acknowledgement: .manual)
        var open: [MQTTMessage] = []
        func process(_ job: MQTTMessage) {
            job.acknowledge()
            model.processed(job.topic, job.text ?? "")
        }
        do {
            for try await job in jobs {
                // What a process that has ended would still do counts for nothing.
                guard worker.uses(client) else { break }
                world.note("job \(job.topic) \(job.text?.prefix(4) ?? "")")
                model.delivered(job.topic, job.text)
                open.append(job)
                received.append(job)
                if job.topic == "t/end" {
                    for job in open { process(job) }
                    return nil
                }
                if let earlier = old.randomElement(using: &random) {
                    earlier.acknowledge()
                    if earlier.isKept { model.processedEarlier(earlier.topic, earlier.text ?? "") }
                }
                switch Int.random(in: 0..<4, using: &random) {
                case 0:
                    let pause = Duration.milliseconds(Int.random(in: 0...5_000, using: &random))
                    try await world.clock.sleep(for: pause)
                    guard worker.uses(client) else { continue }
                    process(open.remove(at: Int.random(in: 0..<open.count, using: &random)))
                case 1:
                    for job in open { process(job) }
                    open = []
                default: break
                }
            }
        } catch {
            world.note("the worker stops: \(error)")
        }
        return received
    }

    /// Reads until the last message; connects and subscribes again when the client has stopped.
    private static func echo(_ client: MQTTClient, _ world: Simulation, _ model: MQTTModel) async {
        while true {
            let echo = client.subscription(to: "echo", qos: .atLeastOnce)
            await client.start()
            do {
                for try await message in echo where message.text == "end" { return }
            } catch {
                world.note("the echo stops: \(error)")
                model.stopped("client without a session", error)
            }
            try? await world.clock.sleep(for: .seconds(1))
        }
    }

    /// Checks, on each connection, that a client without a session subscribes before it publishes, and that a sender
    /// publishes in the order in which its messages were accepted: first those that were unfinished, then the queue.
    ///
    /// And that no more messages are in flight than allowed, and that DUP is set where a message was sent before and only
    /// there [MQTT-3.3.1-1].
    ///
    /// And that CONNECT, PUBLISH and PUBREC leave when the store holds what they depend on, as the article on sessions says,
    /// and that nothing of an earlier session is sent to a server that has none [MQTT-3.2.2-5].
    private static func watch(
        _ broker: LoopbackBroker, _ sender: ClientProcess, _ receiver: ClientProcess, _ window: UInt16,
        _ model: MQTTModel, _ users: WorldUsers, ordersSender: Bool
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
                if let process = [sender, receiver].first(where: { $0.name == arrival.client }),
                    let contents = process.contents, let text = unstored(arrival, contents)
                {
                    model.broke("\(text) of the \(process.name) left before it was stored")
                }
                // Packets are known by their arrival, filters by what the server has then.
                if let contents = receiver.contents, arrival.client == receiver.name {
                    let unknown = broker.filters(of: receiver.name).subtracting(contents.filters)
                    if !unknown.isEmpty {
                        model.broke("the server has \(unknown.sorted()), of which the receiver's store knows nothing")
                    }
                }
                if arrival.client == "sender" {
                    // A session that was read from a store counts those that it may have sent.
                    let inFlight = ordersSender ? sender.client.backlog.messagesInFlight : 0
                    if inFlight > window { model.broke("\(inFlight) messages are in flight, \(window) are allowed") }
                    if arrival.packet == .mqtt(.connect) { before = model.now }
                    if let topic = arrival.topic, arrival.packet == .mqtt(.publish) {
                        model.arrivedAtBroker(topic, arrival.payload)
                    }
                    if let topic = arrival.topic, arrival.packet == .mqtt(.publish),
                        let place = model.place(of: topic, arrival.text)
                    {
                        if arrival.isDuplicate, topic.hasSuffix("/0") || place > before {
                            model.broke("\(topic) \(arrival.text.prefix(4)) has DUP, but was never sent before")
                        }
                        if arrival.isDuplicate, !arrival.continuesSession {
                            model.broke("\(topic) \(arrival.text.prefix(4)) has DUP, but the server has no session")
                        }
                        let isFirst = arrived.insert(place).inserted
                        if !isFirst, !arrival.isDuplicate, topic.hasSuffix("/2") { model.sentAnew() }
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
                // After a CONNECT that is refused may come what the connection before it has sent.
                if isFirst, !isOver, !users.hasUsers, arrival.packet == .mqtt(.publish) { model.publishedFirst() }
                if arrival.packet == .mqtt(.connect) { isFirst = true }
                if arrival.packet == .mqtt(.subscribe) { isFirst = false }
            }
        }
    }

    /// What has arrived although the store does not hold what it depends on.
    private static func unstored(_ arrival: LoopbackArrival, _ contents: StoreContents) -> String? {
        switch arrival.packet {
        case .mqtt(.connect): contents.isEstablished ? nil : "CONNECT"
        case .mqtt(.pubrec): contents.hasReceived(arrival.packetID) ? nil : "PUBREC"
        case .mqtt(.publish):
            arrival.topic.flatMap { topic in
                topic.hasSuffix("/0") || contents.hasHeld(topic, arrival.text)
                    ? nil : "\(topic) \(arrival.text.prefix(4))"
            }
        default: nil
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
        _ world: Simulation, _ broker: LoopbackBroker, _ sender: ClientProcess, _ receiver: ClientProcess,
        _ model: MQTTModel, pausesReading: Bool
    ) {
        world.onAct("tell of a network") { _ in
            for client in [sender.client, receiver.client] { client.networkChanged() }
        }
        // Released and not released subscriptions beside the one that counts, some of them cancelled.
        world.onAct("subscribe for a time") { random in
            var random = random
            let receiver = receiver.client
            let stops = model.receiverStops
            let call = Task {
                do {
                    let buffer = pausesReading ? BufferPolicy(messages: 1, overflow: .pauseReading) : BufferPolicy()
                    let other = try await receiver.subscribe(to: "t/+/0", qos: .atMostOnce, buffer: buffer)
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
        for process in [sender, receiver] {
            world.onAct("suspend the \(process.name)") { random in
                var random = random
                let client = process.client
                await client.suspend()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                if process.uses(client) { client.resume() }
            }
            world.onAct("move the \(process.name)") { random in
                var random = random
                let client = process.client
                guard client.state.isConnected else { return }
                let call = Task { _ = try? await client.reconnect() }
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                await model.cancel(call, "reconnect", world)
            }
            world.onAct("disconnect the \(process.name)") { random in
                var random = random
                let client = process.client
                if process === receiver { model.workIsLeft() }
                await client.disconnect()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                // Its process may have ended.
                if process.uses(client) { await client.start() }
            }
            world.onAct("the \(process.name)'s process ends") { random in
                var random = random
                await process.end(broker, losingPower: Bool.random(using: &random)) {
                    try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                }
            }
        }
    }

    /// One message after the other, each for a topic of its publisher and its quality of service; some calls are cancelled.
    private static func publish(
        _ publisher: Int, _ random: SimulationRandom, _ world: Simulation, _ sender: ClientProcess, _ model: MQTTModel
    ) async {
        var random = random
        for number in stride(from: 0, to: 64 * messages, by: 64) {
            // The first ones wait for the connection, the next ones come while those leave.
            let longest = number == 0 && model.isUnbroken ? 0 : number == 64 && model.isUnbroken ? 4_000 : 20_000
            let pause = Int.random(in: 0...longest, using: &random)
            // No two publishers begin at the same time: their tasks would have no order.
            try? await world.clock.sleep(for: .milliseconds(pause) + .microseconds(publisher))
            await sender.isRunning()
            let qos = QoS.allCases.randomElement(using: &random) ?? .atMostOnce
            let topic = "t/\(publisher)/\(qos.rawValue)"
            let enqueues = qos != .atMostOnce && Int.random(in: 0..<3, using: &random) == 0
            // Some are larger than a server with smaller limits accepts.
            let isLarge = Int.random(in: 0..<(model.isUnbroken ? 3 : 6), using: &random) == 0
            let rest = isLarge ? String(Self.rest.prefix(model.isUnbroken ? 400 : 600)) : ""
            let text = "\(number)\(rest)"
            // A clock that is set forward while the process does not run lets it expire, which is reported.
            var properties = MQTTProperties()
            if sender.configuration.version == .v5_0, Int.random(in: 0..<4, using: &random) == 0 {
                properties.messageExpiryInterval = 3600
            }
            let (client, life) = sender.current
            if qos == .atMostOnce {
                // More of them at once, which nobody waits for: a slow link carries them for some minutes.
                let most = !model.isUnbroken ? 4 : isLarge ? 60 : 13
                for extra in (number - Int.random(in: 0..<most, using: &random))..<number {
                    let text = "\(extra)\(rest)"
                    model.began(topic, extra, text)
                    let message = MQTTOutgoingMessage(text, to: topic, qos: qos)
                    if Bool.random(using: &random) {
                        if (try? client.tryPublish(message)) == true { model.ended(topic, extra) }
                    } else {
                        // Waits in the queue for a connection, if it may.
                        if (try? await client.publish(message)) != nil {
                            model.ended(topic, extra)
                        } else if model.isUnbroken {
                            model.broke("\(topic) \(extra) failed although no connection ended")
                        }
                    }
                }
            }
            let call = Task {
                model.began(topic, number, text)
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
                    model.failed(error)
                    if model.isUnbroken, !Task.isCancelled {
                        model.broke("\(topic) \(number) failed although no connection ended: \(error)")
                    }
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

extension MQTTMessage {
    /// Whether the client has acknowledged it to the server and holds it until its receiver is done.
    fileprivate var isKept: Bool { batch.records[index].delivery & MQTTUnmatchedMessages.deliveryBit != 0 }
}
