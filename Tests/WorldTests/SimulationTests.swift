import Foundation
import MQTT
import STOMP
import Synchronization
import TestSupport
import Testing
import Transport

@testable import LoopbackBroker
@testable import MessagingSimulation

/// Worlds of whole clients and brokers from one seed. With `CAMPAIGN=200` a million of each protocol; another
/// `CAMPAIGN_SEED` brings other worlds.
@Suite struct SimulationTests {
    // MARK: Determinism

    /// The hashes of the first worlds of both protocols, of which each kind has some.
    ///
    /// With large messages as well, of which some worlds read a different number each time while their memory counted with what
    /// malloc had added to it.
    private static func hashes(_ count: Int) async throws -> [UInt64] {
        var hashes: [UInt64] = []
        for seed in Array(0..<UInt64(count)) + [179, 704].filter({ $0 >= count }) {
            let worlds = [
                MQTTPromises.world(of: seed), STOMPPromises.world(of: seed), MQTTInterface.world(of: seed),
                STOMPInterface.world(of: seed),
            ]
            for (options, body) in worlds {
                hashes.append(try await Simulation.outcome(seed: seed, options: options, body).hash)
            }
        }
        for seed in 0..<UInt64(max(1, count / 10)) {
            hashes.append(try await Simulation.outcome(seed: seed, options: SimulationOptions(), queues).hash)
        }
        return hashes
    }

    /// A message that goes into many queues at once, and a consumer of all of them.
    @Sendable private static func queues(_ world: Simulation) async throws {
        let broker = try await world.startBroker()
        let url = try broker.stompURL
        var subscriptions: [STOMPSubscription] = []
        var clients: [STOMPClient] = []
        for number in 0..<8 {
            var configuration = STOMPConfiguration()
            configuration.clientID = "client \(number)"
            let client = STOMPClient(url, configuration: configuration, clock: world.clock)
            clients.append(client)
            let options = STOMPSubscribeOptions(durableName: "kept")
            subscriptions.append(client.subscription(to: "/topic/t", options: options))
            await client.start()
        }
        let auditor = STOMPClient(url, clock: world.clock)
        clients.append(auditor)
        await auditor.start()
        // Whoever is connected by then.
        for number in 0..<8 {
            try await world.clock.sleep(for: .seconds(2))
            try? await auditor.send("x", to: "/queue/\(number)")
            try? await auditor.send("x", to: "/topic/t")
        }
        subscriptions.append(auditor.subscription(to: "/queue/>", acknowledgement: .clientIndividual))
        try await world.faultsHaveEnded()
        for client in clients { await client.disconnect() }
        await broker.stop()
    }

    @Test func `Two runs of one seed are equal to the byte`() async throws {
        let count = Campaign.rounds(1000, least: 20)
        let (one, other) = (try await Self.hashes(count), try await Self.hashes(count))
        #expect(one == other)
        #expect(Set(one).count == one.count)
    }

    #if os(Linux)
        /// A process has its own seed of hashes, by which sets and dictionaries are ordered, and its own addresses.
        @Test func `A seed decides the same in another process`() async throws {
            let count = Campaign.rounds(1000, least: 10)
            if Campaign.environment("SIMULATION_PRINTS_HASHES") != nil {
                for hash in try await Self.hashes(count) { print("hash \(hash)") }
                return
            }
            let tests = try #require(CommandLine.arguments.first { $0.hasSuffix(".xctest") })
            let process = try await ChildProcess.start(
                Command(
                    tests, ["--testing-library", "swift-testing", "--filter", "SimulationTests.*another process"],
                    environment: ["SIMULATION_PRINTS_HASHES": "1"]))
            let own = try await Self.hashes(count)
            _ = try await process.waitForEnd(timeout: .seconds(600))
            #expect(process.lines().filter { $0.hasPrefix("hash ") } == own.map { "hash \($0)" })
        }
    #endif

    @Test func `Tasks without an executor and actors run on the thread of the world`() async throws {
        actor Counter {
            var count = 0
            func add() -> Int {
                count += 1
                return count
            }
        }
        @Sendable func body(_ world: Simulation) async throws -> [Int] {
            let order = Noted()
            let counter = Counter()
            let tasks = (0..<8).map { number in
                Task {
                    #expect(world.world.isOnThread(of: world.clock.loop))
                    for _ in 0..<3 {
                        _ = await counter.add()
                        await Task.detached { await Task.yield() }.value
                        order.add(number)
                    }
                }
            }
            for task in tasks { await task.value }
            return order.numbers
        }
        let first = try await Simulation.run(seed: 1, body)
        #expect(first.count == 24)
        #expect(try await Simulation.run(seed: 1, body) == first)
        #expect(try await Simulation.run(seed: 2, body) != first)
    }

    @Test func `Time passes by itself, and random numbers follow from the seed`() async throws {
        @Sendable func body(_ world: Simulation) async throws -> (Duration, UInt64) {
            let start = world.clock.now
            try await world.clock.sleep(for: .seconds(3600))
            await world.clock.advance(by: .seconds(60))
            var random = world.makeRandom()
            return (start.duration(to: world.clock.now), random.next())
        }
        let (time, number) = try await Simulation.run(seed: 7, body)
        #expect(time == .seconds(3660))
        #expect(try await Simulation.run(seed: 7, body).1 == number)
        #expect(try await Simulation.run(seed: 8, body).1 != number)
    }

    // MARK: Promises

    @Test func `MQTT keeps its promises`() async throws {
        try await Self.timed("MQTT", 5000) { try await MQTTPromises.run(seeds: $0) }
    }

    @Test func `STOMP keeps its promises`() async throws {
        try await Self.timed("STOMP", 5000) { try await STOMPPromises.run(seeds: $0) }
    }

    /// Runs worlds, and prints how many of them the processor runs in a second: the time of this process, so that others on
    /// the machine do not count, and without other tests beside it.
    static func timed(_ name: String, _ full: Int, _ body: (Range<UInt64>) async throws -> Void) async throws {
        let (first, count) = (Campaign.seed, UInt64(Campaign.rounds(full)))
        let start = clock()
        try await body(first..<first + count)
        let seconds = Double(clock() - start) / Double(CLOCKS_PER_SEC)
        print(
            "\(count) worlds of \(name) in \(seconds) s of the processor: \(Double(Int(10 * Double(count) / seconds)) / 10) a second"
        )
    }

    /// The client's end comes between the looks of a reader at its queue; with threads (`-D SIMULATION`) at any moment.
    @Test func `What a client has received before it disconnects is delivered`() async throws {
        var options = SimulationOptions()
        options.faults = []
        let first = Campaign.seed
        try await Simulation.run(seeds: first..<first + UInt64(Campaign.rounds(5000)), options: options) { world in
            let broker = try await world.startBroker()
            let client = try MQTTClient(broker.mqttURL, clock: world.clock)
            try await client.connect()
            let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
            let reading = Task {
                var count = 0
                for try await _ in messages { count += 1 }
                return count
            }
            let sent = 1 + Int(world.seed % 4)
            for number in 0..<sent { await broker.publish("\(number)", to: "a", qos: .atLeastOnce) }
            while client.counters.messagesReceived < sent { await Task.yield() }
            await client.disconnect()
            let received = try await reading.value
            try world.require(received == sent, "\(received) of \(sent) messages were delivered")
            await broker.stop()
        }
    }

    /// The new task begins while the old one is in its loop; with threads (`-D SIMULATION`) at any step of it.
    @Test func `A task that is restarted while the old one unwinds loses nothing`() async throws {
        var options = SimulationOptions()
        options.faults = []
        let first = Campaign.seed
        try await Simulation.run(seeds: first..<first + UInt64(Campaign.rounds(2000)), options: options) { world in
            let broker = try await world.startBroker()
            let client = try MQTTClient(broker.mqttURL, clock: world.clock)
            try await client.connect()
            let messages = try await client.subscribe(to: "a", qos: .atLeastOnce)
            let received = Noted()
            var reading: [Task<Void, any Error>] = []
            let sent = 6
            for number in 0..<sent {
                if world.seed >> number & 1 == 1 { reading.last?.cancel() }
                reading.append(
                    Task {
                        do throws(MQTTError) {
                            for try await message in messages { received.add(Int(message.text ?? "") ?? -1) }
                        } catch {
                            try world.require(error.code == .cancelled, "\(error)")
                        }
                    })
                await broker.publish("\(number)", to: "a", qos: .atLeastOnce)
            }
            while client.counters.messagesReceived < sent { await Task.yield() }
            await client.disconnect()
            for task in reading { try await task.value }
            let numbers = received.numbers.sorted()
            try world.require(numbers == Array(0..<sent), "\(numbers) of \(sent) messages were delivered")
            await broker.stop()
        }
    }

    // MARK: Failures

    /// What running a body that fails throws.
    static func failure(
        _ seed: UInt64 = 1, _ options: SimulationOptions = SimulationOptions(),
        _ body: @escaping @Sendable (Simulation) async throws -> Void
    ) async throws -> SimulationFailure {
        do {
            try await Simulation.run(seed: seed, options: options, body)
        } catch let failure as SimulationFailure {
            return failure
        }
        throw SimulationError("The world of seed \(seed) does not fail.")
    }

    @Test func `How to repeat a failure names the options where they are not the default ones`() async throws {
        let usual = try await Self.failure { _ in throw SimulationError("It fails always.") }
        #expect(!usual.repetition.contains("options"))
        let changes: [(inout SimulationOptions) -> Void] = [
            { $0.faults = .all }, { $0.acts = ["a"] }, { $0.maximumEntries = 3 }, { $0.calm = .zero },
            { $0.duration = .seconds(9) }, { $0.maximumTime = .seconds(3600) }, { $0.shrinks = false },
        ]
        for change in changes {
            var options = SimulationOptions()
            change(&options)
            let failure = try await Self.failure(1, options) { _ in throw SimulationError("It fails always.") }
            #expect(failure.repetition.hasPrefix("try await Simulation.run(seed: 1, options: options"), "\(options)")
        }
    }

    @Test func `A failing world prints how to repeat it, with the entries of its plan that matter`() async throws {
        var options = SimulationOptions()
        options.faults = [.cuts, .latency]
        options.acts = ["fall"]
        @Sendable func body(_ world: Simulation) async throws {
            let falls = Noted()
            world.onAct("fall") { _ in falls.add(1) }
            try await world.faultsHaveEnded()
            try world.require(falls.numbers.isEmpty, "It must not fall.")
        }
        // The first seed whose plan has several entries and fails.
        for seed in 0..<UInt64(100) {
            let plan = SimulationPlan(seed: seed, options: options, leavingOut: [])
            let outcome = try await Simulation.outcome(seed: seed, options: options, body)
            guard case .failure = outcome.result, plan.entries.count > 3 else { continue }
            let failure = try await Self.failure(seed, options, body)
            #expect(failure.plan.entries.count == 1)
            #expect(failure.leftOut.count == plan.entries.count - 1)
            #expect(failure.plan.description.hasSuffix("the app: fall"))
            #expect(failure.description.contains("leavingOut: ["))
            #expect(failure.repetition.contains("(seed: \(seed), options: options, leavingOut: ["))
            #expect(failure.description.contains("It must not fall."))
            #expect(failure.steps.contains { $0.hasSuffix("the app: fall") })
            let again = try await Simulation.outcome(
                seed: seed, options: options, leavingOut: failure.leftOut, reports: true, body)
            #expect(again.steps == failure.steps)
            return
        }
        Issue.record("No plan of a hundred contains what fails.")
    }

    @Test func `Quiet hours do not push what happened before out of the steps of a failure`() async throws {
        let failure = try await Self.failure { world in
            let broker = try await world.startBroker()
            let mqtt = try MQTTClient(broker.mqttURL, clock: world.clock)
            let stomp = try STOMPClient(broker.stompURL, clock: world.clock)
            try await mqtt.connect()
            try await stomp.connect()
            world.note("the order is sent")
            try await stomp.sendAndConfirm("order", to: "/queue/orders")
            try await world.clock.sleep(for: .seconds(3_600))
            world.note("nobody has read it")
            await mqtt.disconnect()
            await stomp.disconnect()
            try world.require(false, "It must be read.")
        }
        #expect(failure.steps.count <= 100)
        #expect(failure.steps.contains { $0.hasSuffix("the order is sent") })
        #expect(failure.steps.contains { $0.contains("SEND") })
        #expect(failure.steps.contains { $0.contains("heart-beats and pings") })
        #expect(failure.steps.contains { $0.hasSuffix("nobody has read it") })
    }

    @Test func `Notes stay in the steps of a failure, however much follows`() async throws {
        let failure = try await Self.failure { world in
            let broker = try await world.startBroker()
            let client = try STOMPClient(broker.stompURL, clock: world.clock)
            try await client.connect()
            world.note("it begins")
            for number in 0..<300 { try await client.sendAndConfirm("\(number)", to: "/queue/orders") }
            await client.disconnect()
            try world.require(false, "It must not end.")
        }
        #expect(failure.steps.contains { $0.hasSuffix("it begins") })
        #expect(failure.steps.count <= 200)
    }

    @Test func `A failure shows decoded packets around the entries of its plan and around the first violation`()
        async throws
    {
        var options = SimulationOptions()
        options.faults = []
        options.acts = ["fall"]
        @Sendable func body(_ world: Simulation) async throws {
            let broker = try await world.startBroker()
            let client = try MQTTClient(broker.mqttURL, clientID: "meter", clock: world.clock)
            let stomp = try STOMPClient(broker.wsURL, clock: world.clock)
            try await client.connect()
            try await stomp.connect()
            let falls = Noted()
            world.onAct("fall") { _ in
                falls.add(1)
                _ = try? await client.publish("fallen", to: "alarm", qos: .atLeastOnce)
                try? await stomp.sendAndConfirm("fallen", to: "/queue/alarms")
                world.noteViolation("it fell")
            }
            try await world.faultsHaveEnded()
            for number in 0..<100 { try await client.publish("\(number)", to: "t", qos: .atLeastOnce) }
            // It has no answer when the world fails.
            broker.changeFaults { $0.withholdsAcknowledgements = true }
            let waiting = Task { try await client.publish("last", to: "t", qos: .atLeastOnce) }
            try await world.clock.sleep(for: .seconds(1))
            try world.require(falls.numbers.isEmpty, "It must not fall.")
            waiting.cancel()
            await client.disconnect()
            await stomp.disconnect()
        }
        for seed in 0..<UInt64(20) where !SimulationPlan(seed: seed, options: options, leavingOut: []).entries.isEmpty {
            let failure = try await Self.failure(seed, options, body)
            let steps = failure.steps.joined(separator: "\n")
            // Hundreds of steps before the end.
            for text in [
                "the app: fall", "it fell", "#1 client wrote PUBLISH id 1 QoS 1 to 'alarm'", "server wrote PUBACK id 1",
                "#2 client wrote SEND destination:/queue/alarms", "#2 server wrote RECEIPT",
                "QoS 1 to 't' \"last\"",
            ] { #expect(steps.contains(text), "\(text) is not in \(steps)") }
            #expect(failure.steps.contains { $0.hasPrefix("… ") })
            #expect(failure.steps.count < 150)
            #expect(failure.description.contains(" connected: 1 without an answer\n"))
            #expect(failure.description.contains("    options.acts = [\"fall\"]\n"))
            #expect(failure.description.contains("Simulation.run(seed: \(seed), options: options"))
            return
        }
        Issue.record("No plan of twenty has an entry.")
    }

    /// With the first seed whose act waits for the acknowledgement of a message.
    @Test func `An act happens between two packets, of a kind that the seed chooses`() async throws {
        var options = SimulationOptions()
        options.faults = []
        options.acts = ["look"]
        options.placesActsAtPackets = true
        options.maximumEntries = 1
        var outstanding: Set<Int> = []
        for seed in 0..<UInt64(60) {
            let plan = SimulationPlan(seed: seed, options: options, leavingOut: [])
            guard plan.description.contains("at the next packet") else { continue }
            outstanding.formUnion(
                try await Simulation.run(seed: seed, options: options) { world in
                    let broker = try await world.startBroker()
                    let client = try MQTTClient(broker.mqttURL, clock: world.clock)
                    try await client.connect()
                    let seen = Noted()
                    world.onAct("look") { _ in seen.add(client.backlog.messagesInFlight) }
                    for number in 0..<120 {
                        try await world.clock.sleep(for: .milliseconds(1_100))
                        try await client.publish("\(number)", to: "t", qos: .exactlyOnce)
                    }
                    await client.disconnect()
                    await broker.stop()
                    return seen.numbers
                })
        }
        // At a moment that only passes between two packets, and at others.
        #expect(outstanding == [0, 1])
    }

    @Test func `Leaving an entry out changes no other`() {
        let whole = SimulationPlan(seed: 3, options: MQTTPromises.options, leavingOut: [])
        let rest = SimulationPlan(seed: 3, options: MQTTPromises.options, leavingOut: [0, 2])
        #expect(whole.entries.count > 3)
        let expected = whole.entries.filter { ![0, 2].contains($0.number) }
        #expect(rest.description == expected.map(\.description).joined(separator: "\n"))
    }

    @Test func `A body that waits for ever is reported`() async throws {
        let failure = try await Self.failure { _ in
            await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
        }
        #expect(failure.description.contains("Nothing is left to happen"))
    }

    @Test func `A body that takes too much time is reported`() async throws {
        var options = SimulationOptions()
        options.maximumTime = .seconds(60)
        let failure = try await Self.failure(1, options) { world in
            while true { try await world.clock.sleep(for: .seconds(1)) }
        }
        #expect(failure.description.contains("maximumTime"))
    }

    @Test func `A body that turns in circles is reported`() async throws {
        let failure = try await Self.failure { _ in while !Task.isCancelled { await Task.yield() } }
        #expect(failure.description.contains("without any time"))
    }

    @Test func `A body that sleeps on the clock of the system is reported`() async throws {
        let failure = try await Self.failure { _ in try await Task.sleep(for: .seconds(60)) }
        #expect(failure.description.contains("the clock of the simulation, sleep on it"))
    }

    @Test func `A body that waits for the main actor is reported`() async throws {
        let isReported = DispatchSemaphore(value: 0)
        // Not before: a task that has ended already is not waited for. The world is repeated, with a task each time.
        @Sendable func work() {
            isReported.wait()
            isReported.signal()
        }
        defer { isReported.signal() }
        let failure = try await Self.failure { _ in await Task { @MainActor in work() }.value }
        #expect(failure.description.contains("the main actor"))
    }

    @Test func `A body that waits for a thread is reported`() async throws {
        let isReported = DispatchSemaphore(value: 0)
        let failure = try await Self.failure { _ in
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                // Not before: otherwise the task may be resumed before it is suspended.
                Thread.detachNewThread {
                    isReported.wait()
                    unsafe continuation.resume()
                }
            }
        }
        isReported.signal()
        #expect(failure.description.contains("a thread"))
    }

    @Test func `A body that holds the thread of its world is reported`() async throws {
        var options = SimulationOptions()
        options.longestHold = .seconds(1)
        let (isReported, clock) = (DispatchSemaphore(value: 0), Weak<ManualClock>())
        // A world that is not reported ends nevertheless.
        @Sendable func hold() { _ = isReported.wait(timeout: .now() + 20) }
        let failure = try await Self.failure(1, options) { world in
            clock.set(world.clock)
            hold()
            try await world.clock.sleep(for: .seconds(1))
        }
        #expect((failure.underlying as? SimulationError)?.isForeign == true)
        #expect(failure.description.contains("holds the thread of its world"))
        isReported.signal()
        // The thread ends with its world once the body lets go of it.
        #expect(await eventually { clock.isGone })
    }

    @Test func `A call from another thread is reported`() async throws {
        var options = SimulationOptions()
        options.faults = []
        let failure = try await Self.failure(1, options) { world in
            let broker = try await world.startBroker()
            let client = try MQTTClient(broker.mqttURL, clock: world.clock)
            try await client.connect()
            let isDone = Atomic(false)
            Thread.detachNewThread {
                _ = try? client.tryPublish(MQTTOutgoingMessage("x", to: "t"))
                isDone.store(true, ordering: .releasing)
            }
            while !isDone.load(ordering: .acquiring) { try await world.clock.sleep(for: .milliseconds(1)) }
        }
        #expect((failure.underlying as? SimulationError)?.isForeign == true)
        #expect(failure.description.contains("called a client"))
    }

    @Test func `A body whose client uses sockets of the system is reported`() async throws {
        // A server that refused the connection could do so before that is seen.
        let server = try SilentServer()
        let failure = try await Self.failure { _ in
            // Without the clock of the world.
            try await MQTTClient("mqtt://127.0.0.1:\(server.port)").connect()
        }
        #expect(failure.description.contains("Make clients with the clock of the simulation"))
    }

    @Test func `A task that outlives its body ends with the world`() async throws {
        let clock = Weak<ManualClock>()
        let number = try await Simulation.run(seed: 1) { world in
            clock.set(world.clock)
            Task.detached { while true { try await world.clock.sleep(for: .seconds(1)) } }
            try await world.clock.sleep(for: .seconds(10))
            return 1
        }
        #expect(number == 1)
        // And the thread of the world with it.
        #expect(await eventually { clock.isGone })
    }

    @Test func `Many messages at one moment are no mistake`() async throws {
        var options = SimulationOptions()
        options.faults = []
        try await Simulation.run(seed: 1, options: options) { world in
            let broker = try await world.startBroker()
            let client = MQTTClient(try broker.mqttURL, clock: world.clock)
            try await client.connect()
            for _ in 0..<10_000 { try await client.publish("x", to: "t", qos: .atLeastOnce) }
            await client.disconnect()
            await broker.stop()
        }
    }

    @Test func `Brokers of one world do not take each other's ports`() async throws {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .exactly(1883)
        var world = SimulationOptions()
        world.faults = []
        try await Simulation.run(seed: 1, options: world) { [options] world in
            let first = try await world.startBroker(options)
            let error = await #expect(throws: TransportError.self) { _ = try await world.startBroker(options) }
            #expect(error?.code == .cannotListen)
            var preferring = options
            preferring.mqttPort = .preferred(1883)
            let second = try await world.startBroker(preferring)
            #expect(second.ports.mqtt != 1883)
            let third = try await world.startBroker(options, host: "three.example")
            #expect(try third.mqttURL == "mqtt://three.example:1883")
            await second.stop()
            await third.stop()
            let client = MQTTClient(try first.mqttURL, clock: world.clock)
            await client.start()
            try await world.faultsHaveEnded()
            #expect(first.connectionCount == 1)
            await client.disconnect()
            await first.stop()
        }
    }

    @Test func `Servers outside of the simulation cannot be reached`() async throws {
        try await Simulation.run(seed: 1) { world in
            let client = MQTTClient("mqtt://127.0.0.1:1883", clock: world.clock)
            let error = await #expect(throws: MQTTError.self) { try await client.connect() }
            #expect(error?.code == .connectionRefused)
        }
    }

    @Test func `A cancelled run ends`() async throws {
        let running = Task {
            try await Simulation.run(seed: 1) { world in
                while true { try await world.clock.sleep(for: .milliseconds(1)) }
            }
        }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
    }
}

/// An object that is not kept.
private final class Weak<Object: AnyObject & Sendable>: Sendable {
    private struct State: Sendable {
        weak var object: Object?
    }

    private let state = Mutex(State())

    func set(_ object: Object) { state.withLock { $0.object = object } }
    var isGone: Bool { state.withLock { $0.object == nil } }
}

/// Numbers in the order in which they came.
private final class Noted: Sendable {
    private let state = Mutex<[Int]>([])
    var numbers: [Int] { state.withLock { $0 } }
    func add(_ number: Int) { state.withLock { $0.append(number) } }
}
