import LoopbackBroker
import STOMP
import Synchronization

/// A world of STOMP, with the promises of its clients and a model that checks them: what a producer was told to be
/// processed is not lost, and a transaction, which acknowledges an order and sends its bill, takes effect whole or not at
/// all: each order has one bill.
enum STOMPPromises {
    static var options: SimulationOptions {
        var options = SimulationOptions()
        options.acts = ["suspend the producer", "suspend the consumer"]
        return options
    }

    private static let orders = 12

    @Sendable static func body(_ world: Simulation) async throws {
        var random = world.makeRandom()
        let broker = try await world.startBroker()
        let producer = STOMPClient(try broker.stompURL, clock: world.clock)
        let consumer = STOMPClient(try broker.stompURL, clock: world.clock)
        let auditor = STOMPClient(try broker.stompURL, clock: world.clock)
        let model = STOMPModel()
        let work = consumer.subscription(to: "/queue/orders", acknowledgement: .clientIndividual)
        let bills = auditor.subscription(to: "/queue/bills", acknowledgement: .clientIndividual)
        for client in [producer, consumer, auditor] { await client.start() }
        for (name, client) in [("suspend the producer", producer), ("suspend the consumer", consumer)] {
            world.onAct(name) { random in
                var random = random
                await client.suspend()
                try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
                client.resume()
            }
        }
        let consuming = Task { [random = world.makeRandom()] in
            try await consume(work, random, world, consumer)
        }
        let auditing = Task {
            for try await bill in bills {
                model.billed(bill.text ?? "")
                world.note("bill \(bill.text ?? "")")
                try? bill.acknowledge()
            }
        }
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
        try await world.faultsHaveEnded()
        for _ in 0..<600 where !model.isComplete { try await world.clock.sleep(for: .seconds(1)) }
        // A bill too many would come now.
        try await world.clock.sleep(for: .seconds(120))
        try model.check(world)
        for client in [producer, consumer, auditor] { await client.disconnect() }
        try await consuming.value
        try await auditing.value
        await broker.stop()
    }

    private static func consume(
        _ work: STOMPSubscription, _ random: SimulationRandom, _ world: Simulation, _ consumer: STOMPClient
    ) async throws {
        var random = random
        var attempt = 0
        for try await order in work {
            attempt += 1
            let pause = Duration.milliseconds(Int.random(in: 0...500, using: &random))
            do {
                try await consumer.withTransaction { transaction in
                    try order.acknowledge(in: transaction)
                    try await world.clock.sleep(for: pause)
                    try await consumer.send("\(order.text ?? "") \(attempt)", to: "/queue/bills", in: transaction)
                }
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
    }

    private let state = Mutex(State())

    func began(_ order: Int) { state.withLock { _ = $0.begun.insert(order) } }
    func confirmed(_ order: Int) { state.withLock { _ = $0.confirmed.insert(order) } }

    func billed(_ text: String) {
        let numbers = text.split(separator: " ").compactMap { Int($0) }
        guard numbers.count == 2 else { return }
        state.withLock { _ = $0.bills[numbers[0], default: []].insert(numbers[1]) }
    }

    var isComplete: Bool { state.withLock { $0.confirmed.isSubset(of: $0.bills.keys) } }

    func check(_ world: Simulation) throws {
        let state = state.withLock { $0 }
        let lost = state.confirmed.subtracting(state.bills.keys).sorted()
        try world.require(lost.isEmpty, "orders \(lost) have no bill")
        for (order, bills) in state.bills.sorted(by: { $0.key < $1.key }) {
            try world.require(state.begun.contains(order), "order \(order), which nobody has sent, has a bill")
            try world.require(bills.count == 1, "order \(order) has the bills \(bills.sorted())")
        }
    }
}
