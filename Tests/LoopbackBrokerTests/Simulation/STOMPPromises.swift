import STOMP
import Synchronization

@testable import LoopbackBroker

/// A world of STOMP, with the promises of its clients and a model that checks them: what a producer was told to be
/// processed is not lost; what was acknowledged does not come again; and a transaction takes effect whole or not at all, be
/// it one that acknowledges an order and sends its bill, so that each order has one bill, or one that sends a pair of
/// messages. And as for MQTT: a cancelled call ends at once, states and attempts are legal, dead connections end, and what
/// waits keeps within its bounds.
enum STOMPPromises {
    /// What may happen to a world.
    enum Kind {
        /// Everything that acknowledgements and transactions protect from.
        case broken
        /// Links, names and answers are slow, but no connection may end.
        case unbroken

        init(seed: UInt64) { self = seed % 5 == 3 ? .unbroken : .broken }
    }

    /// Runs the worlds of several seeds, each of its kind.
    static func run(seeds: Range<UInt64>) async throws {
        for seed in seeds {
            let kind = Kind(seed: seed)
            try await Simulation.run(seed: seed, options: options(kind)) { world in try await run(world, kind) }
        }
    }

    static var options: SimulationOptions { options(.broken) }

    private static func options(_ kind: Kind) -> SimulationOptions {
        var options = SimulationOptions()
        if kind == .unbroken {
            options.faults = [.latency, .slowAnswers, .names]
            options.acts = ["tell of a network", "subscribe for a time", "send many"]
            return options
        }
        options.acts = [
            "suspend the producer", "suspend the consumer", "tell of a network", "subscribe for a time", "move",
            "send many",
        ]
        return options
    }

    private static let orders = 12
    private static let pairs = 8
    private static let receipts = 6
    private static let outbox = 1_000
    private struct Aborted: Error {}

    @Sendable static func body(_ world: Simulation) async throws { try await run(world, .broken) }

    private static func run(_ world: Simulation, _ kind: Kind) async throws {
        var random = world.makeRandom()
        let users = WorldUsers(world)
        let broker = try await world.startBroker(users.options, host: "broker.example")
        let url = broker.url("stomp", broker.ports.stomp, using: &random)
        // In every other world systems hold little of what is written.
        if Bool.random(using: &random) { world.world.changeNetwork { $0.capacity = 2_000 } }
        var usual = STOMPConfiguration()
        // Decided by the seed itself, so that other worlds keep their random numbers.
        let isSlow = world.seed % 3 == 1
        usual.credentialsProvider = { request in
            // Longer than an attempt may take.
            if isSlow, request.attempt % 4 == 3 { try await world.clock.sleep(for: .seconds(300)) }
            return users.credentials(for: request)
        }
        var bounded = usual
        (bounded.maximumReceipts, bounded.maximumOutboxBytes) = (receipts, outbox)
        let producer = STOMPClient(url, configuration: bounded, clock: world.clock)
        var configuration = usual
        if kind == .broken { configuration.reconnect.maximumConnectionAge = .seconds(40) }
        let consumer = STOMPClient(url, configuration: configuration, clock: world.clock)
        // Two subscriptions, whose receipts the bound does not count.
        if isSlow { usual.maximumReceipts = 1 }
        let auditor = STOMPClient(url, configuration: usual, clock: world.clock)
        let clients = [producer, consumer, auditor]
        let watches = ["producer", "consumer", "auditor"].map { ClientWatch($0) }
        let watching = zip(watches, clients).map { watch, client in watch.watch(client, world) { _ in } }
        let model = STOMPModel()
        let paired = auditor.subscription(to: "/queue/pairs", acknowledgement: .clientIndividual)
        let work = consumer.subscription(to: "/queue/orders", acknowledgement: .clientIndividual)
        let bills = auditor.subscription(to: "/queue/bills", acknowledgement: .clientIndividual)
        // A full buffer stops the reading of all frames.
        let many =
            isSlow
            ? consumer.subscription(to: "/topic/many", buffer: BufferPolicy(messages: 2, overflow: .pauseReading)) : nil
        for client in clients { await client.start() }
        act(world, clients, model)
        let checking = Task { [random = world.makeRandom()] in await checkBounds(producer, random, world, model) }
        for (name, client) in [("suspend the producer", producer), ("suspend the consumer", consumer)] {
            world.onAct(name) { random in
                var random = random
                await client.suspend()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                client.resume()
            }
        }
        let consuming = Task { [random = world.makeRandom()] in
            try await consume(work, random, world, consumer, model)
        }
        let reading = many.map { many in Task { try await read(many, world) } }
        let auditing = Task {
            for try await bill in bills {
                model.billed(bill.text ?? "")
                world.note("bill \(bill.text ?? "")")
                try? bill.acknowledge()
            }
        }
        let comparing = Task {
            for try await message in paired {
                model.receivedOfPair(message.text ?? "")
                world.note("pair \(message.text ?? "")")
                try? message.acknowledge()
            }
        }
        let pairing = Task { [random = world.makeRandom()] in await sendPairs(random, world, producer, model) }
        for order in 0..<orders {
            try await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            model.began(order)
            do {
                try await producer.sendAndConfirm("\(order)", to: "/queue/orders")
                model.confirmed(order)
            } catch {
                world.note("order \(order): \(error)")
            }
        }
        await pairing.value
        try await world.faultsHaveEnded()
        for _ in 0..<600 where !model.isComplete { try await world.clock.sleep(for: .seconds(1)) }
        // A bill too many would come now.
        try await world.clock.sleep(for: .seconds(120))
        try model.check(world)
        let open = broker.openTransactions
        try world.require(open == 0, "\(open) transactions are neither committed nor aborted")
        checking.cancel()
        await checking.value
        for (name, client) in zip(["producer", "consumer", "auditor"], clients) {
            let left = client.backlog
            try world.require(
                left.messagesInFlight == 0 && left.outboxBytes == 0 && left.unreadBytes == 0
                    && left.unacknowledgedMessages == 0, "the \(name) has a backlog of \(left) at the end")
            await client.disconnect()
            try await world.requireEnd(of: client)
        }
        try await consuming.value
        try await reading?.value
        try await auditing.value
        try await comparing.value
        await broker.stop()
        // What was reported before the end has to arrive.
        try await world.clock.sleep(for: .seconds(1))
        for (index, client) in clients.enumerated() {
            watching[index].cancel()
            await watching[index].value
            try watches[index].check(client.counters, world)
        }
        let (counted, taken) = (consumer.counters.messagesReceived, model.deliveredCount)
        try world.require(counted >= taken, "the consumer counted \(counted) of \(taken) messages")
        if kind == .unbroken {
            for client in clients {
                let count = client.counters.connections
                try world.require(count == 1, "a client made \(count) connections, but none was lost")
            }
        }
        // Two and a half times the heart-beat, and the time that closing takes; or the time for connecting, without them.
        let longest = world.world.longestDeath
        try world.require(longest <= .seconds(32), "a client kept a dead connection for \(longest)")
        // One of each client that is used, and one whose last bytes are read.
        try await world.requireNoConnection(afterAtMost: 6)
        // For each connection an attempt, and the credentials that it waits for.
        try world.requireNoTask(afterAtMost: 12)
        try world.requireNoAlarm()
    }

    /// Compares what waits with what the configuration allows, at random moments. What is not as it must be counts if it is
    /// the same a moment later: callers that have an answer may not have been resumed.
    private static func checkBounds(
        _ producer: STOMPClient, _ random: SimulationRandom, _ world: Simulation, _ model: STOMPModel
    ) async {
        var random = random
        func found() -> [String] {
            var found: [String] = []
            let (backlog, waiting) = (producer.backlog, model.waitingCount)
            // While the outbox is full, other calls wait for room in it.
            let most = backlog.outboxBytes < outbox ? min(receipts, backlog.messagesInFlight) : .max
            if waiting > most { found.append("\(waiting) calls await receipts, \(most) may") }
            // Besides a call for an order and one of a transaction, whose frames have receipts too.
            if backlog.messagesInFlight > receipts + 1 {
                found.append(
                    "\(backlog.messagesInFlight) receipts are awaited, \(receipts) may be, and one of a transaction")
            }
            // Frames that end a transaction or a subscription do not wait for room.
            if backlog.outboxBytes > outbox + 2_000 {
                found.append("the outbox has \(backlog.outboxBytes) bytes, \(outbox) may wait")
            }
            return found
        }
        while (try? await world.clock.sleep(for: .milliseconds(Int.random(in: 1...5_000, using: &random)))) != nil {
            let first = found()
            guard !first.isEmpty, (try? await world.clock.sleep(for: .microseconds(1_500))) != nil else { continue }
            let second = found()
            for text in first where second.contains(text) { model.broke(text) }
        }
    }

    private static func act(_ world: Simulation, _ clients: [STOMPClient], _ model: STOMPModel) {
        world.onAct("tell of a network") { _ in for client in clients { client.networkChanged() } }
        world.onAct("move") { random in
            var random = random
            let client = clients[Int.random(in: clients.indices, using: &random)]
            guard client.state.isConnected else { return }
            let call = Task { _ = try? await client.reconnect() }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            call.cancel()
            let start = world.clock.now
            await call.value
            model.cancelled(after: start.duration(to: world.clock.now))
        }
        // More than the outbox takes and than may be confirmed at a time: some wait for room, others fail at once.
        world.onAct("send many") { _ in
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<12 {
                    group.addTask {
                        model.began()
                        do {
                            let text = String(repeating: "m", count: 800)
                            try await clients[0].sendAndConfirm(text, to: "/topic/many")
                        } catch {
                            world.note("one of many: \(error)")
                        }
                        model.ended()
                    }
                }
            }
        }
        // Subscriptions and confirmed messages beside those that count, cancelled at any moment.
        world.onAct("subscribe for a time") { random in
            var random = random
            let client = clients[0]
            // Others may do the same at this time.
            let late = "late \(random.next())"
            let call = Task {
                do {
                    let other = try await client.subscribe(to: "/topic/other")
                    try await client.sendAndConfirm("other", to: "/topic/other")
                    try await world.clock.sleep(for: .seconds(5))
                    try await other.unsubscribe()
                    try await client.sendAndConfirm(late, to: "/topic/other")
                    for try await message in other where message.text == late { model.receivedAfterRelease() }
                } catch {
                    world.note("another subscription: \(error)")
                }
            }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...10_000, using: &random)))
            call.cancel()
            let start = world.clock.now
            await call.value
            model.cancelled(after: start.duration(to: world.clock.now))
        }
    }

    /// Sends pairs of messages, each in a transaction; some are aborted.
    private static func sendPairs(
        _ random: SimulationRandom, _ world: Simulation, _ producer: STOMPClient, _ model: STOMPModel
    ) async {
        var random = random
        for pair in 0..<pairs {
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...25_000, using: &random)))
            let pause = Duration.milliseconds(Int.random(in: 0...500, using: &random))
            let isAborted = Int.random(in: 0..<3, using: &random) == 0
            let confirms = Bool.random(using: &random)
            do {
                try await producer.withTransaction { transaction in
                    if confirms {
                        try await producer.sendAndConfirm("\(pair) 0", to: "/queue/pairs", in: transaction)
                    } else {
                        try await producer.send("\(pair) 0", to: "/queue/pairs", in: transaction)
                    }
                    try await world.clock.sleep(for: pause)
                    try await producer.send("\(pair) 1", to: "/queue/pairs", in: transaction)
                    if isAborted { throw Aborted() }
                }
                model.committed(pair)
            } catch is Aborted {
                model.aborted(pair)
            } catch {
                world.note("pair \(pair): \(error)")
            }
        }
    }

    /// Reads slowly as long as something may go wrong.
    private static func read(_ many: STOMPSubscription, _ world: Simulation) async throws {
        let start = world.clock.now
        var random = world.makeRandom()
        for try await _ in many where start.duration(to: world.clock.now) < .seconds(120) {
            if Int.random(in: 0..<4, using: &random) > 0 { continue }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
        }
    }

    private static func consume(
        _ work: STOMPSubscription, _ random: SimulationRandom, _ world: Simulation, _ consumer: STOMPClient,
        _ model: STOMPModel
    ) async throws {
        var random = random
        var attempt = 0
        for try await order in work {
            attempt += 1
            model.delivered(order.text ?? "")
            let pause = Duration.milliseconds(Int.random(in: 0...500, using: &random))
            if Int.random(in: 0..<4, using: &random) == 0 {
                // What is acknowledged in an aborted transaction can be acknowledged again.
                try? await consumer.withTransaction { transaction in
                    try order.acknowledge(in: transaction)
                    try await world.clock.sleep(for: pause)
                    throw Aborted()
                }
            }
            do {
                try await consumer.withTransaction { transaction in
                    try order.acknowledge(in: transaction)
                    try await world.clock.sleep(for: pause)
                    try await consumer.send("\(order.text ?? "") \(attempt)", to: "/queue/bills", in: transaction)
                }
                model.acknowledged(order.text ?? "")
            } catch {
                world.note("transaction \(order.text ?? "") \(attempt): \(error)")
            }
        }
    }
}

/// Which bills there may and must be.
final class STOMPModel: Sendable {
    private struct State {
        var begun: Set<Int> = []
        var confirmed: Set<Int> = []
        /// The numbers of the transactions that billed an order.
        var bills: [Int: Set<Int>] = [:]
        /// Orders whose acknowledgement the broker has confirmed, and those that came again all the same.
        var acknowledged: Set<String> = []
        var repeated: Set<String> = []
        /// The parts of each pair that have arrived.
        var pairs: [Int: Set<Int>] = [:]
        var committed: Set<Int> = []
        var aborted: Set<Int> = []
        var receivedAfterRelease = 0
        var longestCancellation = Duration.zero
        var delivered = 0
        /// Calls of those that send many.
        var waiting = 0
        var broken = ""
    }

    private let state = Mutex(State())

    func began(_ order: Int) { state.withLock { _ = $0.begun.insert(order) } }
    func confirmed(_ order: Int) { state.withLock { _ = $0.confirmed.insert(order) } }

    func began() { state.withLock { $0.waiting += 1 } }
    func ended() { state.withLock { $0.waiting -= 1 } }
    var waitingCount: Int { state.withLock { $0.waiting } }

    /// What a client did that it must not do; the first counts.
    func broke(_ text: String) { state.withLock { if $0.broken.isEmpty { $0.broken = text } } }

    func acknowledged(_ order: String) { state.withLock { _ = $0.acknowledged.insert(order) } }
    func committed(_ pair: Int) { state.withLock { _ = $0.committed.insert(pair) } }
    func aborted(_ pair: Int) { state.withLock { _ = $0.aborted.insert(pair) } }
    func receivedAfterRelease() { state.withLock { $0.receivedAfterRelease += 1 } }

    func delivered(_ order: String) {
        state.withLock { state in
            state.delivered += 1
            if state.acknowledged.contains(order) { state.repeated.insert(order) }
        }
    }

    /// Orders that were read, repetitions included.
    var deliveredCount: Int { state.withLock { $0.delivered } }

    func receivedOfPair(_ text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { return }
        state.withLock { _ = $0.pairs[numbers[0], default: []].insert(numbers[1]) }
    }

    func cancelled(after time: Duration) {
        state.withLock { $0.longestCancellation = max($0.longestCancellation, time) }
    }

    func billed(_ text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { return }
        state.withLock { _ = $0.bills[numbers[0], default: []].insert(numbers[1]) }
    }

    var isComplete: Bool {
        state.withLock { $0.confirmed.isSubset(of: $0.bills.keys) && $0.committed.isSubset(of: $0.pairs.keys) }
    }

    func check(_ world: Simulation) throws {
        let state = state.withLock { $0 }
        try world.require(state.broken.isEmpty, state.broken)
        let lost = state.confirmed.subtracting(state.bills.keys).sorted()
        try world.require(lost.isEmpty, "orders \(lost) have no bill")
        try world.require(
            state.repeated.isEmpty, "orders \(state.repeated.sorted()) came again after they were acknowledged")
        for (pair, parts) in state.pairs.sorted(by: { $0.key < $1.key }) {
            try world.require(parts.count == 2, "of the pair \(pair) the parts \(parts) arrived alone")
            try world.require(!state.aborted.contains(pair), "the pair \(pair) arrived, but was aborted")
        }
        let missing = state.committed.subtracting(state.pairs.keys).sorted()
        try world.require(missing.isEmpty, "pairs \(missing) were committed, but did not arrive")
        try world.require(state.receivedAfterRelease == 0, "a subscription received what was sent after its end")
        try world.require(
            state.longestCancellation == .zero, "a cancelled call ended after \(state.longestCancellation)")
        for (order, bills) in state.bills.sorted(by: { $0.key < $1.key }) {
            try world.require(state.begun.contains(order), "order \(order), which nobody has sent, has a bill")
            try world.require(bills.count == 1, "order \(order) has the bills \(bills.sorted())")
        }
    }
}
