import STOMP
import Synchronization

@testable import LoopbackBroker

/// A world of STOMP, with the promises of its clients and a model that checks them: what a producer was told to be
/// processed is not lost; what was acknowledged does not come again; and a transaction takes effect whole or not at all, be
/// it one that acknowledges an order and sends its bill, so that each order has one bill, or one that sends a pair of
/// messages. What one connection delivers is read once, in its order and whole; where no connection ends, everything is.
/// Clients that have met every fault still work. And as for MQTT: a cancelled call ends at once, states and attempts are
/// legal, dead connections end, clients take their leave, and what waits keeps within its bounds.
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
            let (options, body) = world(of: seed)
            try await Simulation.run(seed: seed, options: options, body)
        }
    }

    /// What may happen to the world of a seed, and what does.
    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        let kind = Kind(seed: seed)
        return (options(kind), { world in try await run(world, kind) })
    }

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
        let model = STOMPModel(isUnbroken: kind == .unbroken, consumerPauses: isSlow, world)
        let leaving = countLeaving(broker, model)
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
        let reading = many.map { many in Task { try await read(many, world, model) } }
        let auditing = Task {
            for try await bill in bills {
                model.arrived(bill, of: "bills")
                model.billed(bill.text ?? "")
                world.note("bill \(bill.text ?? "")")
                try? bill.acknowledge()
            }
        }
        let comparing = Task {
            for try await message in paired {
                model.arrived(message, of: "pairs")
                model.receivedOfPair(message.text ?? "")
                world.note("pair \(message.text?.prefix(6) ?? "")")
                try? message.acknowledge()
            }
        }
        let pairing = Task { [random = world.makeRandom()] in await sendPairs(random, world, producer, model) }
        for order in 0..<orders {
            try await world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            do {
                try await send(order: order, producer, model)
            } catch {
                world.note("order \(order): \(error)")
                model.failed("order \(order)", error)
            }
        }
        await pairing.value
        try await world.faultsHaveEnded()
        try await sendLast(producer, world, model)
        for _ in 0..<600 where !model.isComplete { try await world.clock.sleep(for: .seconds(1)) }
        // A bill too many would come now.
        try await world.clock.sleep(for: .seconds(120))
        try model.check(world)
        let open = broker.openTransactions
        try world.require(open == 0, "\(open) transactions are neither committed nor aborted")
        let wanted: Set = ["/queue/orders", "/queue/bills", "/queue/pairs", "/topic/many"]
        let unwanted = broker.subscribedDestinations.subtracting(wanted).sorted()
        try world.require(unwanted.isEmpty, "the broker has subscriptions to \(unwanted), which nobody reads")
        checking.cancel()
        await checking.value
        let left = model.leftCount
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
        await leaving.value
        let farewells = model.leftCount - left
        try world.require(
            farewells >= clients.count,
            "\(clients.count) clients have disconnected, but \(farewells) DISCONNECT frames arrived")
        // What was reported before the end has to arrive.
        try await world.clock.sleep(for: .seconds(1))
        for (index, client) in clients.enumerated() {
            watching[index].cancel()
            await watching[index].value
            try watches[index].check(client.counters, world)
            let new = STOMPClient(url, configuration: [bounded, configuration, usual][index], clock: world.clock)
            try world.requireNothingLeft(in: client, unlike: new)
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
        // Of each client the attempt that it makes and the one that a hint has begun beside it, and the credentials that each
        // waits for. The next hint cancels the younger one, which ends at that moment.
        try world.requireNoTask(afterAtMost: 12, atOnce: 18)
        try world.requireNoAlarm()
    }

    /// Counts the DISCONNECT frames that arrive.
    private static func countLeaving(_ broker: LoopbackBroker, _ model: STOMPModel) -> Task<Void, Never> {
        let arrivals = broker.arrivals(maximumCount: 100_000)
        return Task {
            for await arrival in arrivals where arrival.packet == .stomp(.disconnect) { model.left() }
        }
    }

    private static func send(order: Int, _ producer: STOMPClient, _ model: STOMPModel) async throws {
        model.began(order)
        try await producer.sendAndConfirm(STOMPModel.text(ofOrder: order), to: "/queue/orders")
        model.confirmed(order)
    }

    /// Sends an order and a pair when every fault has ended, as an app does that tries until it succeeds: the connection may
    /// be dead, which the client has not noticed yet. Each attempt has a number of its own, since one that fails may have
    /// arrived.
    private static func sendLast(_ producer: STOMPClient, _ world: Simulation, _ model: STOMPModel) async throws {
        let start = world.clock.now
        var (order, pair) = (orders, pairs)
        func tried(_ what: String, _ error: any Error) async throws {
            model.failed(what, error)
            let time = start.duration(to: world.clock.now)
            try world.require(time < .seconds(600), "\(what) still fails after \(time): \(error)")
            try await world.clock.sleep(for: .seconds(1))
        }
        while true {
            do {
                try await send(order: order, producer, model)
                break
            } catch {
                try await tried("order \(order)", error)
            }
            order += 1
        }
        while true {
            do {
                try await producer.withTransaction { transaction in
                    for part in 0..<2 {
                        let text = STOMPModel.text(ofPair: pair, part)
                        try await producer.send(text, to: "/queue/pairs", in: transaction)
                    }
                }
                return model.committed(pair)
            } catch {
                try await tried("pair \(pair)", error)
            }
            pair += 1
        }
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
            // The end of a transaction, DISCONNECT, SUBSCRIBE and UNSUBSCRIBE do not wait until others have their receipts.
            let unbounded = 1 + (producer.state == .disconnecting ? 1 : 0) + 2 * model.subscriptionCount
            if backlog.messagesInFlight > receipts + unbounded {
                found.append(
                    "\(backlog.messagesInFlight) receipts are awaited, \(receipts) may be, and \(unbounded) more")
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
                            try await clients[0].sendAndConfirm(STOMPModel.many, to: "/topic/many")
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
            model.subscribedForTime()
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
                    let parts = (0..<2).map { STOMPModel.text(ofPair: pair, $0) }
                    if confirms {
                        try await producer.sendAndConfirm(parts[0], to: "/queue/pairs", in: transaction)
                    } else {
                        try await producer.send(parts[0], to: "/queue/pairs", in: transaction)
                    }
                    try await world.clock.sleep(for: pause)
                    try await producer.send(parts[1], to: "/queue/pairs", in: transaction)
                    if isAborted { throw Aborted() }
                }
                model.committed(pair)
            } catch is Aborted {
                model.aborted(pair)
            } catch {
                world.note("pair \(pair): \(error)")
                model.failed("pair \(pair)", error)
            }
        }
    }

    /// Reads slowly as long as something may go wrong.
    private static func read(_ many: STOMPSubscription, _ world: Simulation, _ model: STOMPModel) async throws {
        let start = world.clock.now
        var random = world.makeRandom()
        for try await message in many {
            model.arrived(message, of: "many")
            if message.text != STOMPModel.many { model.broke("one of many has the body '\(message.text ?? "")'") }
            guard start.duration(to: world.clock.now) < .seconds(120) else { continue }
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
            model.arrived(order, of: "orders")
            guard let number = model.delivered(order.text ?? "") else { continue }
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
                    try await consumer.send("\(number) \(attempt)", to: "/queue/bills", in: transaction)
                }
                model.acknowledged(number)
            } catch {
                world.note("transaction \(number) \(attempt): \(error)")
                model.failed("transaction \(number) \(attempt)", error, ofConsumer: true)
            }
        }
    }
}

/// Which bills and pairs there may and must be, and in which order messages may and must arrive.
final class STOMPModel: Sendable {
    private struct State {
        var begun: Set<Int> = []
        var confirmed: Set<Int> = []
        /// Orders, bills and parts of pairs in the order in which they were read, repetitions included; a bill is an order
        /// and the number of its transaction.
        var delivered: [Int] = []
        var bills: [[Int]] = []
        var parts: [[Int]] = []
        /// Orders whose acknowledgement the broker has confirmed, and those that came again all the same.
        var acknowledged: Set<Int> = []
        var repeated: Set<Int> = []
        var committed: Set<Int> = []
        var aborted: Set<Int> = []
        /// The number of the last message of each subscription, as the broker counts what it delivers.
        var last: [String: UInt64] = [:]
        var receivedAfterRelease = 0
        var longestCancellation = Duration.zero
        /// Calls of those that send many.
        var waiting = 0
        /// Subscriptions for a time.
        var subscriptions = 0
        /// DISCONNECT frames.
        var left = 0
        var broken = ""
    }

    private let world: Simulation
    /// No connection ends before the world does.
    private let isUnbroken: Bool
    /// The consumer has a subscription that is read slowly, and does not read meanwhile.
    private let consumerPauses: Bool
    private let state = Mutex(State())

    init(isUnbroken: Bool, consumerPauses: Bool, _ world: Simulation) {
        (self.isUnbroken, self.consumerPauses, self.world) = (isUnbroken, consumerPauses, world)
    }

    // MARK: Texts

    /// What is larger than a few reads bring at once; no two parts of it are alike.
    private static let tail = (0..<120).map { " \($0 * 7)" }.joined()
    static let many = String((String(repeating: "many ", count: 20) + tail + tail).prefix(800))

    /// A third of them is large.
    static func text(ofOrder order: Int) -> String { order % 3 == 2 ? "\(order)\(tail)" : "\(order)" }
    static func text(ofPair pair: Int, _ part: Int) -> String {
        pair % 3 == 1 ? "\(pair) \(part)\(tail)" : "\(pair) \(part)"
    }

    private static func numbers(_ text: String, _ count: Int) -> [Int]? {
        let numbers = text.split(separator: " ").prefix(count).compactMap { Int($0) }
        return numbers.count == count ? numbers : nil
    }

    // MARK: What happens

    func began(_ order: Int) { state.withLock { _ = $0.begun.insert(order) } }
    func confirmed(_ order: Int) { state.withLock { _ = $0.confirmed.insert(order) } }

    func began() { state.withLock { $0.waiting += 1 } }
    func ended() { state.withLock { $0.waiting -= 1 } }
    var waitingCount: Int { state.withLock { $0.waiting } }

    func subscribedForTime() { state.withLock { $0.subscriptions += 1 } }
    var subscriptionCount: Int { state.withLock { $0.subscriptions } }

    func left() { state.withLock { $0.left += 1 } }
    var leftCount: Int { state.withLock { $0.left } }

    /// What a client did that it must not do; the first counts.
    func broke(_ text: String) {
        world.noteViolation(text)
        state.withLock { if $0.broken.isEmpty { $0.broken = text } }
    }

    /// A call failed. Where no connection ends it may only because as many receipts as may be are awaited, for those that
    /// send many, where nothing was sent; or because the consumer does not read the receipt, where all was processed.
    func failed(_ what: String, _ error: any Error, ofConsumer isConsumer: Bool = false) {
        let code = (error as? STOMPError)?.code
        guard isUnbroken, code != .queueFull, !(isConsumer && consumerPauses && code == .timedOut) else { return }
        broke("\(what) failed although no connection ended: \(error)")
    }

    func acknowledged(_ order: Int) { state.withLock { _ = $0.acknowledged.insert(order) } }
    func committed(_ pair: Int) { state.withLock { _ = $0.committed.insert(pair) } }
    func aborted(_ pair: Int) { state.withLock { _ = $0.aborted.insert(pair) } }
    func receivedAfterRelease() { state.withLock { $0.receivedAfterRelease += 1 } }

    /// A message is read. What a connection delivers has rising numbers, and so has what later connections deliver: what is
    /// not in their order was overtaken or read twice.
    func arrived(_ message: STOMPMessage, of subscription: String) {
        // The last number in `ack` is that of the delivery, which another one of the same message does not share. Messages
        // of a topic, which do not come again, have one in `message-id` alone.
        let id = message.header("ack") ?? message.messageID ?? ""
        guard let number = id.split(separator: "-").last.flatMap({ UInt64($0) }) else {
            return broke("a message of the \(subscription) has no number in '\(id)'")
        }
        let last = state.withLock { $0.last.updateValue(number, forKey: subscription) } ?? 0
        if number <= last { broke("delivery \(number) of the \(subscription) was read after \(last)") }
    }

    /// An order is read.
    ///
    /// - Returns: its number; nil if nobody has sent it like this.
    func delivered(_ text: String) -> Int? {
        guard let order = Self.numbers(text, 1)?[0], text == Self.text(ofOrder: order) else {
            broke("an order has the body '\(text)'")
            return nil
        }
        state.withLock { state in
            state.delivered.append(order)
            if state.acknowledged.contains(order) { state.repeated.insert(order) }
        }
        return order
    }

    /// Orders that were read, repetitions included.
    var deliveredCount: Int { state.withLock { $0.delivered.count } }

    func receivedOfPair(_ text: String) {
        guard let numbers = Self.numbers(text, 2), text == Self.text(ofPair: numbers[0], numbers[1]) else {
            return broke("a part of a pair has the body '\(text)'")
        }
        state.withLock { $0.parts.append(numbers) }
    }

    func cancelled(after time: Duration) {
        state.withLock { $0.longestCancellation = max($0.longestCancellation, time) }
    }

    func billed(_ text: String) {
        guard let numbers = Self.numbers(text, 2), text == "\(numbers[0]) \(numbers[1])" else {
            return broke("a bill has the body '\(text)'")
        }
        state.withLock { $0.bills.append(numbers) }
    }

    var isComplete: Bool {
        state.withLock { state in
            state.confirmed.isSubset(of: state.bills.map { $0[0] })
                && state.committed.isSubset(of: state.parts.map { $0[0] })
        }
    }

    // MARK: At the end

    func check(_ world: Simulation) throws {
        let state = state.withLock { $0 }
        try world.require(state.broken.isEmpty, state.broken)
        var bills: [Int: Set<Int>] = [:]
        for bill in state.bills { bills[bill[0], default: []].insert(bill[1]) }
        var pairs: [Int: Set<Int>] = [:]
        for part in state.parts { pairs[part[0], default: []].insert(part[1]) }
        let lost = state.confirmed.subtracting(bills.keys).sorted()
        try world.require(lost.isEmpty, "orders \(lost) have no bill")
        try world.require(
            state.repeated.isEmpty, "orders \(state.repeated.sorted()) came again after they were acknowledged")
        for (pair, parts) in pairs.sorted(by: { $0.key < $1.key }) {
            try world.require(parts.count == 2, "of the pair \(pair) the parts \(parts) arrived alone")
            try world.require(!state.aborted.contains(pair), "the pair \(pair) arrived, but was aborted")
        }
        let missing = state.committed.subtracting(pairs.keys).sorted()
        try world.require(missing.isEmpty, "pairs \(missing) were committed, but did not arrive")
        try world.require(state.receivedAfterRelease == 0, "a subscription received what was sent after its end")
        try world.require(
            state.longestCancellation == .zero, "a cancelled call ended after \(state.longestCancellation)")
        for (order, bills) in bills.sorted(by: { $0.key < $1.key }) {
            try world.require(state.begun.contains(order), "order \(order), which nobody has sent, has a bill")
            try world.require(bills.count == 1, "order \(order) has the bills \(bills.sorted())")
        }
        if isUnbroken {
            let orders = state.confirmed.sorted()
            try world.require(state.delivered == orders, "the orders \(orders) were read as \(state.delivered)")
            let billed = state.bills.map { $0[0] }
            try world.require(billed == orders, "the orders \(orders) were billed as \(billed)")
            let parts = state.committed.sorted().flatMap { [[$0, 0], [$0, 1]] }
            try world.require(state.parts == parts, "the pairs \(parts) were read as \(state.parts)")
        }
    }
}
