import STOMP
import Synchronization
import Transport

@testable import LoopbackBroker

/// Worlds whose acts and options are drawn from a table of the public interface of `STOMPClient`.
///
/// Each act has destinations of its own. What was confirmed arrives, in its order and with its headers; what was not may;
/// and a transaction takes effect whole or not at all.
enum STOMPInterface {
    struct Act: Sendable {
        let name: String
        /// The calls that it makes, as ``PublicInterface`` has them.
        let calls: [String]
        let body: @Sendable (STOMPStage, inout SimulationRandom) async throws -> Void
    }

    struct Option: Sendable {
        let name: String
        let set: @Sendable (inout STOMPConfiguration, inout SimulationRandom) -> Void
    }

    private static let actCount = 8

    static func world(of seed: UInt64) -> (SimulationOptions, @Sendable (Simulation) async throws -> Void) {
        var options = SimulationOptions()
        options.acts = ["move", "suspend", "tell of a network, or sleep"]
        options.placesActsAtPackets = true
        return (options, { world in try await run(world) })
    }

    static func run(seeds: Range<UInt64>) async throws {
        for seed in seeds {
            let (options, body) = world(of: seed)
            try await Simulation.run(seed: seed, options: options, body)
        }
    }

    /// The acts of a world, and the options of its clients.
    static func cast(_ random: inout SimulationRandom) -> (acts: [Act], options: [Option]) {
        let drawn = (0..<actCount).compactMap { _ in acts.randomElement(using: &random) }
        return (drawn, options.filter { _ in Int.random(in: 0..<5, using: &random) == 0 })
    }

    private static func run(_ world: Simulation) async throws {
        var random = world.makeRandom()
        let (acts, options) = cast(&random)
        var serving = LoopbackBrokerOptions()
        serving.judging.judgesPromises = true
        // What it can send and what it wants, so that each client has to keep the other one's time.
        let beats = [(10_000, 10_000), (20_000, 5_000), (5_000, 20_000)].randomElement(using: &random)
        if let (outgoing, incoming) = beats { serving.heartBeat = (outgoing: outgoing, incoming: incoming) }
        let broker = try await world.startBroker(serving, host: "broker.example")
        let url = broker.url("stomp", broker.ports.stomp, using: &random)
        let hooks = HookCounts()
        var configuration = STOMPConfiguration()
        for option in options {
            world.note("option \(option.name)")
            option.set(&configuration, &random)
        }
        if Bool.random(using: &random) { configuration.messageHook = hooks.stompHook }
        let names = ["first", "second"]
        let clients = names.map { _ in STOMPClient(url, configuration: configuration, clock: world.clock) }
        let watches = names.map { ClientWatch($0) }
        let stage = STOMPStage(world, broker, url, configuration, clients, watches)
        let watching = zip(watches, clients).map { watch, client in watch.watch(client, world) { _ in } }
        for client in clients { await client.start() }
        world.onAct("tell of a network, or sleep") { random in
            var random = random
            if Bool.random(using: &random) { return await world.sleep(&random) }
            for client in clients { client.networkChanged() }
        }
        world.onAct("suspend") { random in
            var random = random
            let client = clients[Int.random(in: clients.indices, using: &random)]
            await client.suspend()
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            client.resume()
        }
        world.onAct("move") { random in
            var random = random
            let client = clients[Int.random(in: clients.indices, using: &random)]
            guard client.state.isConnected else { return }
            let call = Task { _ = try? await client.reconnect() }
            try? await world.clock.sleep(for: .milliseconds(Int.random(in: 0...5000, using: &random)))
            call.cancel()
            await call.value
        }
        await withTaskGroup(of: Void.self) { group in
            for (number, act) in acts.enumerated() {
                let start = Duration.milliseconds(Int.random(in: 0...60_000, using: &random)) + .microseconds(number)
                let random = world.makeRandom()
                group.addTask {
                    var random = random
                    try? await world.clock.sleep(for: start)
                    world.note("act \(number): \(act.name)")
                    let watching = world.watch("act \(number), \(act.name)")
                    defer { watching.cancel() }
                    do {
                        try await act.body(stage, &random)
                        world.note("act \(number) ends")
                    } catch {
                        stage.broke("\(act.name): \(error)")
                    }
                }
            }
        }
        try await world.faultsHaveEnded()
        try await world.clock.sleep(for: .seconds(180))
        let open = broker.openTransactions
        try world.require(open == 0, "\(open) transactions are neither committed nor aborted")
        let unwanted = broker.subscribedDestinations.sorted()
        try world.require(unwanted.isEmpty, "the broker has subscriptions to \(unwanted), which nobody reads")
        for (name, client) in zip(names, clients) {
            let left = client.backlog
            try world.require(
                left.messagesInFlight == 0 && left.outboxBytes == 0 && left.unreadBytes == 0
                    && left.unacknowledgedMessages == 0, "the \(name) client has a backlog of \(left) at the end")
            await client.disconnect()
            try await world.requireEnd(of: client)
        }
        await broker.stop()
        try await world.clock.sleep(for: .seconds(1))
        try stage.check()
        try hooks.check(world)
        for (index, client) in clients.enumerated() {
            watching[index].cancel()
            await watching[index].value
            try watches[index].check(client.counters, world)
            // Some move by themselves.
            if world.plan.entries.isEmpty, configuration.reconnect.maximumConnectionAge == nil {
                try watches[index].requireOneConnection(world)
            }
            let new = STOMPClient(url, configuration: configuration, clock: world.clock)
            try world.requireNothingLeft(in: client, unlike: new)
        }
        try await world.requireNoConnection(afterAtMost: 14)
        try world.requireNoTask(afterAtMost: 28)
        try world.requireNoAlarm()
    }
}

/// What acts share.
final class STOMPStage: Sendable {
    let world: Simulation
    let broker: LoopbackBroker
    let url: String
    let configuration: STOMPConfiguration
    let clients: [STOMPClient]
    /// Of the clients, since the beginning.
    let watches: [ClientWatch]
    private let start: ManualClock.Instant
    private let broken = Mutex<[String]>([])
    private let count = Atomic(0)

    init(
        _ world: Simulation, _ broker: LoopbackBroker, _ url: String, _ configuration: STOMPConfiguration,
        _ clients: [STOMPClient], _ watches: [ClientWatch]
    ) {
        (self.watches, start) = (watches, world.clock.now)
        (self.world, self.broker, self.url) = (world, broker, url)
        (self.configuration, self.clients) = (configuration, clients)
    }

    /// What a client did that it must not do.
    func broke(_ text: String) {
        world.noteViolation(text)
        broken.withLock { $0.append(text) }
    }

    func require(_ condition: Bool, _ text: @autoclosure () -> String) { if !condition { broke(text()) } }

    func check() throws {
        let broken = broken.withLock { $0 }
        try world.require(broken.isEmpty, broken.joined(separator: "; "))
    }

    /// How long the world has lasted.
    var time: Duration { start.duration(to: world.clock.now) }

    /// A name that no other act uses.
    func makeName() -> String { "act\(count.add(1, ordering: .relaxed).newValue)" }

    private static let passing: [STOMPError.Code?] = [
        .timedOut, .connectionLost, .notConnected, .closedByPeer, .disconnected, .stale, .unreachable, .unknownHost,
        .connectionRefused, .webSocketClosed, .webSocketFailed, .webSocketRefused,
    ]

    /// Whether a call may fail like this in a world that loses connections.
    ///
    /// The queue of a reply is gone with the connection of its request, which ends the one that replies. That SEND has no receipt,
    /// so that the ERROR may be taken for the answer to another frame.
    func mayFail(_ error: any Error) -> Bool {
        guard let error = error as? STOMPError else { return false }
        if error.code == .refused, let answer = error.serverError, answer.receiptID == nil {
            return answer.message.hasPrefix("the temporary queue '") && answer.message.hasSuffix("' is gone")
        }
        return Self.passing.contains(error.code)
    }

    /// Whether a call was confirmed; a failure has to have a reason that passes.
    func confirmed(_ what: String, _ body: () async throws -> Void) async -> Bool {
        let watching = world.watch(what, for: .seconds(900))
        defer { watching.cancel() }
        do {
            try await body()
            return true
        } catch {
            world.note("\(what): \(error)")
            require(mayFail(error), "\(what) failed: \(error)")
            return false
        }
    }

    /// Repeats what fails for a reason that passes, as an app does.
    func retrying<Result>(_ what: String, _ body: () async throws -> Result) async throws -> Result {
        let start = world.timeAwake
        let watching = world.watch(what, for: .seconds(900))
        defer { watching.cancel() }
        while true {
            do {
                return try await body()
            } catch {
                let time = world.timeAwake - start
                world.note("\(what): \(error)")
                try world.require(mayFail(error) && time < .seconds(400), "\(what) fails after \(time): \(error)")
                try await world.clock.sleep(for: .milliseconds(500))
            }
        }
    }

    /// Reads with a subscription of its own until a message has the text `end`, and acknowledges.
    ///
    /// - Parameter each: returns whether a message is acknowledged at once.
    func read(
        _ destination: String, _ client: STOMPClient, _ mode: STOMPAckMode, _ options: STOMPSubscribeOptions,
        _ each: @escaping @Sendable (STOMPMessage) -> Bool = { _ in true }
    ) -> Task<[STOMPMessage], any Error> {
        Task {
            var read: [STOMPMessage] = []
            while true {
                let messages = client.subscription(to: destination, acknowledgement: mode, options: options)
                do {
                    for try await message in messages {
                        let isLast = message.text == "end"
                        if !isLast { read.append(message) }
                        if isLast || each(message), mode != .auto {
                            do {
                                try message.acknowledge()
                            } catch {
                                require(mayFail(error), "acknowledging failed: \(error)")
                            }
                        }
                        guard isLast else { continue }
                        _ = await confirmed("unsubscribing from \(destination)") { try await messages.unsubscribe() }
                        return read
                    }
                    throw SimulationError("\(destination) ended by itself")
                } catch let error as STOMPError where mayFail(error) {
                    world.note("\(destination): \(error)")
                }
            }
        }
    }

    /// Sends the last message until it was read.
    func end(
        _ destination: String, _ client: STOMPClient, _ reading: Task<[STOMPMessage], any Error>,
        _ options: STOMPSendOptions = STOMPSendOptions()
    ) async throws -> [STOMPMessage] {
        // What the broker has sent over a dead connection comes back when it notices, and the last message may overtake it.
        if !world.plan.entries.isEmpty {
            try await world.faultsHaveEnded()
            try await world.clock.sleep(for: .seconds(100))
        }
        let isOver = Atomic(false)
        let waiting = Task {
            defer { isOver.store(true, ordering: .relaxed) }
            return try await reading.value
        }
        for _ in 0..<100 where !isOver.load(ordering: .relaxed) {
            _ = await confirmed("the end of \(destination)") {
                try await client.sendAndConfirm("end", to: destination, options: options)
            }
            try await world.clock.sleep(for: .seconds(5))
        }
        try world.require(isOver.load(ordering: .relaxed), "\(destination) did not receive its last message")
        return try await waiting.value
    }
}

extension HookCounts {
    var stompHook: STOMPMessageHook {
        STOMPMessageHook { _ in
            self.begin()
            return { _ in self.end() }
        } receiving: { _ in
        }
    }
}
