import MQTT
import MessagingJudge
import Synchronization

@testable import LoopbackBroker

/// Worlds with two servers that do not share their sessions, in a list that the clients try in turn: now one of them is
/// away, now the other.
///
/// Each server has a session of its own for a client, so that nothing is promised for QoS 2 beyond QoS 1: a message may have
/// reached one server without the answer, and reaches the other then. The promises (``ServersModel``): a call that
/// succeeded has brought its message to a server; what a server has for a subscription that it granted arrives, also after
/// the client was elsewhere; a subscription that was granted once is made at the other server too; and all that holds for
/// connections, tasks and states.
enum MQTTServers {
    private static let names = ["one.example", "two.example"]
    private static let publishers = 2
    private static let messages = 10

    /// What may happen to the world of a seed, and what does.
    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        var options = SimulationOptions()
        options.acts = [
            "a server is away", "a server is away", "a server is away", "subscribe", "subscribe for a time",
            "move the sender", "move the receiver", "disconnect the receiver",
        ]
        options.maximumEntries = 16
        return (options, { world in try await run(world) })
    }

    private static func run(_ world: Simulation) async throws {
        var random = world.makeRandom()
        var brokerOptions = LoopbackBrokerOptions()
        brokerOptions.judging.judgesPromises = true
        // A client that comes from the other server does not know what this one still holds. It continues the exchanges of that
        // server here if both report a session, as servers of a cluster do.
        brokerOptions.judging.mayBreak = [
            .needlessSubscribe, .unfinishedFirst, .duplicateFlagOnFirst, .pubrelWithoutPubrec,
        ]
        let brokers = [
            try await world.startBroker(brokerOptions, host: names[0]),
            try await world.startBroker(brokerOptions, host: names[1]),
        ]
        let urls = zip(names, brokers).map { name, broker in "mqtt://\(name):\(broker.ports.mqtt ?? 0)" }
        var configuration = MQTTConfiguration()
        configuration.version = Bool.random(using: &random) ? .v5_0 : .v3_1_1
        configuration.cleanStart = false
        if configuration.version == .v5_0 { configuration.sessionExpiry = .seconds(86_400) }
        configuration.maximumInFlight = [1, 2, 1024].randomElement(using: &random)
        configuration.serverOrder = [.listed, .shuffled].randomElement(using: &random) ?? .listed
        let ages: [Duration?] = [nil, nil, .seconds(20)]
        configuration.reconnect.maximumConnectionAge = ages.randomElement(using: &random) ?? nil
        let model = ServersModel(world)
        let store = Bool.random(using: &random) ? StoreKind.memory : .none
        let processes = ["sender", "receiver"].map { name in
            ClientProcess(name, urls, configuration, store, world) { event, _ in
                switch event {
                case .storeDamaged(let damage): model.broke("the store is damaged: \(damage)")
                case .stateChanged(.disconnected(let reason?)): model.broke("the \(name) has stopped: \(reason)")
                default: break
                }
            }
        }
        let (sender, receiver) = (processes[0].client, processes[1].client)
        act(world, brokers, sender, receiver, model)
        for process in processes { await process.start() }
        let watching = brokers.map { watch($0, model) }
        let reading = Task { [random = world.makeRandom()] in
            await read(receiver, "t/#", .atLeastOnce, random, world, model)
        }
        await withTaskGroup(of: Void.self) { group in
            for (number, broker) in brokers.enumerated() {
                let random = world.makeRandom()
                group.addTask { await feed(broker, number, random, world, model) }
            }
            for publisher in 0..<publishers {
                let random = world.makeRandom()
                group.addTask { await publish(publisher, random, world, sender, model) }
            }
        }
        try await world.faultsHaveEnded()
        await model.actsHaveEnded(world)
        try await visitAll(brokers, receiver, world, model)
        model.ends()
        for process in processes { process.finish() }
        for client in [sender, receiver] {
            await client.disconnect()
            try await world.requireEnd(of: client)
        }
        await reading.value
        await model.subscriptionsHaveEnded()
        for broker in brokers { await broker.stop() }
        for task in watching { await task.value }
        try model.check()
        for process in processes { try await process.check(world) }
        try world.requireNoDeadConnection()
        try await world.requireNoConnection(afterAtMost: 6)
        try world.requireNoTask(afterAtMost: 8)
    }

    /// Makes the receiver come to each server, twice, where every subscription has to receive.
    private static func visitAll(
        _ brokers: [LoopbackBroker], _ receiver: MQTTClient, _ world: Simulation, _ model: ServersModel
    ) async throws {
        for visit in 0..<4 {
            let number = visit % 2
            brokers[1 - number].changeFaults { $0.refusesConnections = true }
            await brokers[1 - number].dropAllConnections()
            for topic in ["t/end"] + model.declared {
                let text = "visit \(visit)"
                let start = world.clock.now
                // Again and again: nothing is promised before the subscription is made at this server.
                while !model.hasRead(topic, text) {
                    let time = start.duration(to: world.clock.now)
                    try world.require(
                        time < .seconds(300),
                        "\(topic) receives nothing at server \(number + 1), \(receiver.state), after \(time)")
                    await brokers[number].publish(text, to: topic)
                    try await world.clock.sleep(for: .seconds(1))
                }
            }
            brokers[1 - number].changeFaults { $0.refusesConnections = false }
        }
    }

    private static func act(
        _ world: Simulation, _ brokers: [LoopbackBroker], _ sender: MQTTClient, _ receiver: MQTTClient,
        _ model: ServersModel
    ) {
        func onAct(_ name: String, _ body: @escaping @Sendable (inout SimulationRandom) async -> Void) {
            world.onAct(name) { random in
                var random = random
                model.actBegins()
                await body(&random)
                model.actEnds()
            }
        }
        @Sendable func pause(atMost most: Int, _ random: inout SimulationRandom) async {
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...most, using: &random)))
        }
        onAct("a server is away") { random in
            let number = Int.random(in: brokers.indices, using: &random)
            world.note("server \(number + 1) is away")
            model.serverGoes(number, brokers[number])
            await brokers[number].dropAllConnections()
            await pause(atMost: 30_000, &random)
            model.serverComes(number, brokers[number])
        }
        // A subscription beside the first one, which stays.
        onAct("subscribe") { random in
            let topic = "more/\(model.makeNumber())"
            let qos: QoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
            let reading = Task { [random] in await read(receiver, topic, qos, random, world, model) }
            model.add(reading)
            // It is declared, and made sooner or later at each server.
            model.declare(topic)
        }
        onAct("subscribe for a time") { random in
            let topic = "less/\(model.makeNumber())"
            let call = Task {
                do {
                    let messages = try await receiver.subscribe(to: topic, qos: .atLeastOnce)
                    try await world.clock.sleep(for: .seconds(5))
                    try await messages.unsubscribe()
                } catch {
                    world.note("\(topic): \(error)")
                }
            }
            await pause(atMost: 20_000, &random)
            call.cancel()
            await call.value
        }
        for (name, client) in [("sender", sender), ("receiver", receiver)] {
            onAct("move the \(name)") { random in
                guard client.state.isConnected else { return }
                let call = Task { _ = try? await client.reconnect() }
                await pause(atMost: 5_000, &random)
                call.cancel()
                await call.value
            }
        }
        onAct("disconnect the receiver") { random in
            await receiver.disconnect()
            await pause(atMost: 5_000, &random)
            await receiver.start()
        }
    }

    /// Reads what both servers have for a subscription, now and then slowly; subscribes again when the client was disconnected.
    private static func read(
        _ receiver: MQTTClient, _ filter: String, _ qos: QoS, _ random: SimulationRandom, _ world: Simulation,
        _ model: ServersModel
    ) async {
        var random = random
        while !model.isOver {
            do {
                for try await message in receiver.subscription(to: filter, qos: qos) {
                    model.read(message.topic, message.text ?? "")
                    if Int.random(in: 0..<8, using: &random) == 0 {
                        let pause = Duration.milliseconds(Int.random(in: 0...10_000, using: &random))
                        try await world.clock.sleep(for: pause)
                    }
                }
            } catch {
                world.note("the reader of \(filter) stops: \(error)")
            }
            try? await world.clock.sleep(for: .milliseconds(100))
        }
    }

    /// Publishes at one server what it has to keep for the receiver, if it has granted the subscription.
    private static func feed(
        _ broker: LoopbackBroker, _ number: Int, _ random: SimulationRandom, _ world: Simulation, _ model: ServersModel
    ) async {
        var random = random
        for message in 0..<40 {
            let pause = Int.random(in: 0...6_000, using: &random)
            try? await world.clock.sleep(for: .milliseconds(pause) + .microseconds(number))
            let isGranted = broker.filters(of: "receiver").contains("t/#")
            let topic = "t/\(number)"
            model.fed(topic, message, isGranted: isGranted)
            await broker.publish("\(message)", to: topic)
        }
    }

    private static func publish(
        _ publisher: Int, _ random: SimulationRandom, _ world: Simulation, _ sender: MQTTClient, _ model: ServersModel
    ) async {
        var random = random
        for number in 0..<messages {
            let pause = Int.random(in: 0...20_000, using: &random)
            try? await world.clock.sleep(for: .milliseconds(pause) + .microseconds(publisher))
            let qos: QoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
            let text = "\(publisher) \(number)"
            do {
                try await sender.publish(text, to: "sent", qos: qos)
                model.sent(text)
            } catch {
                model.broke("publishing \(text) failed: \(error)")
            }
        }
    }

    private static func watch(_ broker: LoopbackBroker, _ model: ServersModel) -> Task<Void, Never> {
        let arrivals = broker.arrivals(maximumCount: 100_000)
        return Task {
            for await arrival in arrivals where arrival.client == "sender" && arrival.packet == .mqtt(.publish) {
                model.arrived(arrival)
            }
        }
    }
}

/// What two servers and their clients have said to each other.
final class ServersModel: Sendable {
    private struct State {
        var broken = ""
        var sent: Set<String> = []
        var arrived: Set<String> = []
        /// What the servers have to deliver, and what was read, by topic and text.
        var owed: [String: [Int]] = [:]
        var read: [String: [String]] = [:]
        var declared: [String] = []
        var tasks: [Task<Void, Never>] = []
        var number = 0
        var acts = 0
        /// How many acts keep each server away.
        var absences = [0, 0]
        var isOver = false
    }

    private let world: Simulation
    private let state = Mutex(State())

    init(_ world: Simulation) { self.world = world }

    /// What a client did that it must not do; the first counts.
    func broke(_ text: String) {
        world.noteViolation(text)
        state.withLock { if $0.broken.isEmpty { $0.broken = text } }
    }

    func makeNumber() -> Int {
        state.withLock { state in
            state.number += 1
            return state.number
        }
    }

    // MARK: Acts

    func actBegins() { state.withLock { $0.acts += 1 } }
    func actEnds() { state.withLock { $0.acts -= 1 } }
    func actsHaveEnded(_ world: Simulation) async {
        while state.withLock({ $0.acts > 0 }) { try? await world.clock.sleep(for: .seconds(1)) }
    }

    func serverGoes(_ number: Int, _ broker: LoopbackBroker) { change(number, broker, by: 1) }
    func serverComes(_ number: Int, _ broker: LoopbackBroker) { change(number, broker, by: -1) }
    private func change(_ number: Int, _ broker: LoopbackBroker, by count: Int) {
        let isAway = state.withLock { state in
            state.absences[number] += count
            return state.absences[number] > 0
        }
        broker.changeFaults { $0.refusesConnections = isAway }
    }

    // MARK: Subscriptions

    func declare(_ topic: String) { state.withLock { $0.declared.append(topic) } }
    func add(_ task: Task<Void, Never>) { state.withLock { $0.tasks.append(task) } }
    /// Topics of subscriptions that stay.
    var declared: [String] { state.withLock { $0.declared } }

    var isOver: Bool { state.withLock { $0.isOver } }
    func ends() { state.withLock { $0.isOver = true } }
    func subscriptionsHaveEnded() async {
        for task in state.withLock({ $0.tasks }) { await task.value }
    }

    // MARK: Messages

    func sent(_ text: String) { state.withLock { _ = $0.sent.insert(text) } }

    func arrived(_ arrival: LoopbackArrival) {
        if arrival.isDuplicate, !arrival.continuesSession {
            broke("\(arrival.text) has DUP, but the server has no session")
        }
        state.withLock { _ = $0.arrived.insert(arrival.text) }
    }

    func fed(_ topic: String, _ number: Int, isGranted: Bool) {
        if isGranted { state.withLock { $0.owed[topic, default: []].append(number) } }
    }

    func read(_ topic: String, _ text: String) {
        world.note("received \(topic) \(text)")
        state.withLock { $0.read[topic, default: []].append(text) }
    }

    func hasRead(_ topic: String, _ text: String) -> Bool {
        state.withLock { $0.read[topic]?.contains(text) == true }
    }

    // MARK: At the end

    func check() throws {
        let state = state.withLock { $0 }
        try world.require(state.broken.isEmpty, state.broken)
        let lost = state.sent.subtracting(state.arrived)
        try world.require(lost.isEmpty, "\(lost.sorted()) are acknowledged, but arrived at no server")
        for (topic, owed) in state.owed.sorted(by: { $0.key < $1.key }) {
            let read = (state.read[topic] ?? []).compactMap { Int($0) }
            let lost = Set(owed).subtracting(read)
            try world.require(lost.isEmpty, "\(topic) lost \(lost.sorted()): \(read)")
            let first = read.indices.filter { !read[..<$0].contains(read[$0]) }.map { read[$0] }
            try world.require(first == first.sorted(), "\(topic) received \(read), out of order")
        }
    }
}
