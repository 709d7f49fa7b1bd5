import MessagingWire
import Synchronization
public import Transport

/// A world for a test, in which one seed decides everything: the order of what happens at the same time, how bytes travel,
/// which connections are cut, and every random number.
///
///     try await Simulation.run(seeds: 0..<100) { world in
///         let broker = try await world.startBroker()
///         let client = try MQTTClient(broker.mqttURL, clock: world.clock)
///         …
///     }
///
/// Clients, brokers and the tasks of the body run on one thread, and time passes by itself when all of them wait. A seed
/// that fails fails again each time. See <doc:SimulateABadYear>.
public final class Simulation: Sendable {
    /// What everything follows from.
    public let seed: UInt64
    /// The clock of this world, for its clients, and to sleep on. Its time passes by itself.
    public let clock: ManualClock
    /// What happens to this world.
    public let plan: SimulationPlan
    package let world: SimulatedWorld
    let options: SimulationOptions
    let start: ManualClock.Instant
    let state = Lock(State())

    struct State: Sendable {
        var brokers: [any SimulatedBroker] = []
        var acts: [String: @Sendable (SimulationRandom) async -> Void] = [:]
        var generators: UInt64 = 0
        /// What lasts, by the number of its entry.
        var lasting: [Int: SimulationPlan.Entry.Event] = [:]
        var conditions = SimulatedConditions()
        var alarms: [LoopAlarm] = []
    }

    private init(
        seed: UInt64, options: SimulationOptions, leavingOut leftOut: Set<Int>, keepsAll: Bool
    ) throws(TransportError) {
        try SimulatedWorld.checkSupport()
        self.seed = seed
        self.options = options
        world = SimulatedWorld(seed: seed, maximumTime: max(0, options.maximumTime.inNanoseconds), keepsAll: keepsAll)
        clock = try ManualClock(simulating: world)
        world.executor.run(on: clock.loop)
        start = clock.now
        plan = SimulationPlan(seed: seed, options: options, leavingOut: leftOut)
    }

    // MARK: Running

    /// Runs the worlds of several seeds, one after the other, until one of them fails.
    ///
    /// - Parameters:
    ///   - seeds: such as `0..<100`.
    ///   - options: what can go wrong.
    ///   - body: as for one seed.
    /// - Throws: as for one seed.
    public static func run(
        seeds: some Sequence<UInt64>, options: SimulationOptions = SimulationOptions(),
        _ body: @escaping @Sendable (Simulation) async throws -> Void
    ) async throws {
        for seed in seeds { try await run(seed: seed, options: options, body) }
    }

    /// Runs the world of a seed.
    ///
    /// A body that never ends is cancelled and fails. If it holds the thread of its world, as a semaphore does, that takes 60
    /// seconds of real time, and the thread and its world are left behind until the body lets go of it.
    /// - Parameters:
    ///   - seed: decides everything that happens.
    ///   - options: what can go wrong.
    ///   - leftOut: entries of the plan that do not happen. Default: none.
    ///   - body: what happens in the world; it throws if a promise is not kept. It runs again, with other plans, after it
    ///     has thrown.
    /// - Returns: what the body returned.
    /// - Throws: ``SimulationFailure`` with the smallest plan that fails; `TransportError` when no thread is left for the
    ///   world, or with the code `unsupported` when the runtime is linked statically; `CancellationError` when the caller is
    ///   cancelled.
    public static func run<Result: Sendable>(
        seed: UInt64, options: SimulationOptions = SimulationOptions(), leavingOut leftOut: Set<Int> = [],
        _ body: @escaping @Sendable (Simulation) async throws -> Result
    ) async throws -> Result {
        var outcome = try await outcome(seed: seed, options: options, leavingOut: leftOut, body)
        guard case .failure(let error) = outcome.result else { return try outcome.result.get() }
        var leftOut = leftOut
        if options.shrinks, (error as? SimulationError)?.isForeign != true {
            (outcome, leftOut) = try await shrink(outcome, seed, options, leftOut, body)
        }
        guard case .failure(let error) = outcome.result else { return try outcome.result.get() }
        if (error as? SimulationError)?.isForeign != true {
            // Once more, since worlds that do not fail remember little.
            outcome = try await Self.outcome(seed: seed, options: options, leavingOut: leftOut, reports: true, body)
        }
        throw SimulationFailure(
            seed: seed, leftOut: leftOut, plan: outcome.plan, underlying: error, steps: outcome.steps,
            clients: outcome.clients, options: options)
    }

    /// Leaves entries out while the world still fails, half of them at first, then fewer.
    private static func shrink<Result: Sendable>(
        _ first: SimulationOutcome<Result>, _ seed: UInt64, _ options: SimulationOptions, _ leftOut: Set<Int>,
        _ body: @escaping @Sendable (Simulation) async throws -> Result
    ) async throws -> (SimulationOutcome<Result>, Set<Int>) {
        var (best, leftOut) = (first, leftOut)
        var size = max(1, best.plan.entries.count / 2)
        while true {
            var shrank = false
            var start = 0
            while start < best.plan.entries.count {
                let tried = leftOut.union(best.plan.entries[start...].prefix(size).map(\.number))
                let outcome = try await outcome(seed: seed, options: options, leavingOut: tried, body)
                if case .failure = outcome.result {
                    (best, leftOut, shrank) = (outcome, tried, true)
                } else {
                    start += size
                }
            }
            if size == 1 && !shrank { return (best, leftOut) }
            size = max(1, size / 2)
        }
    }

    /// Runs a world once.
    ///
    /// - Parameter reports: whether the outcome has the steps that led to it, and not only the latest.
    package static func outcome<Result: Sendable>(
        seed: UInt64, options: SimulationOptions, leavingOut leftOut: Set<Int> = [], reports: Bool = false,
        _ body: @escaping @Sendable (Simulation) async throws -> Result
    ) async throws -> SimulationOutcome<Result> {
        let simulation = try Simulation(
            seed: seed, options: options, leavingOut: leftOut, keepsAll: reports)
        let run = SimulationRun<Result>(simulation.world, simulation.clock.loop)
        simulation.clock.loop.execute {
            run.begin()
            simulation.begin()
            run.start {
                do {
                    return .success(try await body(simulation))
                } catch {
                    return .failure(error)
                }
            } atEnd: {
                simulation.end()
            }
        }
        let result = await run.result(longestHold: options.longestHold)
        try Task.checkCancellation()
        return SimulationOutcome(
            result: result, plan: simulation.plan, steps: simulation.world.latestSteps,
            clients: simulation.world.clientLines,
            hash: simulation.world.traceHash)
    }

    // MARK: In the body

    /// The plan applies to the broker from now on.
    package func add(_ broker: any SimulatedBroker) { state.withLock { $0.brokers.append(broker) } }

    /// A generator of random numbers, another one with each call.
    public func makeRandom() -> SimulationRandom {
        let number = state.withLock { state in
            state.generators += 1
            return state.generators
        }
        return SimulationRandom(generator: SplitMix(seed: seed, part: 1_000_000 + number))
    }

    /// Ends the process that has a session store in a directory, as far as the store is concerned: it writes nothing any
    /// more, and a store that is made of the same directory can be opened.
    ///
    /// Files of a simulation are on a disk of its own, which `FileSessionStore` uses by itself. A test that lets a client's
    /// process die calls this, cuts the client's connection with ``LoopbackBroker/dropConnection(of:)``, ignores what
    /// the client still returns, disconnects it, and makes another one with a store of the same directory. Until it is
    /// disconnected, the client may connect again; a client that is released does not.
    /// - Parameters:
    ///   - directory: that of the store.
    ///   - losingPower: whether the machine ends too: what the store has not forced to the disk is lost, but for a part.
    public func endProcess(usingStoreIn directory: String, losingPower: Bool = false) {
        note("the process ends that uses \(directory)\(losingPower ? ", with a loss of power" : "")")
        world.disk.endProcess(using: FileSystem.absolute(directory), losingPower: losingPower)
    }

    /// Sets what the app does where the plan contains one of ``SimulationOptions/acts``. The generator is the entry's own.
    public func onAct(_ name: String, _ body: @escaping @Sendable (SimulationRandom) async -> Void) {
        state.withLock { $0.acts[name] = body }
    }

    /// Returns when nothing more goes wrong: ten seconds after the options' ``SimulationOptions/duration``, so that the end
    /// of the last fault has arrived everywhere.
    public func faultsHaveEnded() async throws {
        try await clock.sleep(until: start.advanced(by: options.duration + .seconds(10)))
    }

    /// Writes a line into the steps that a failure prints; the last hundred are there, whatever followed them.
    public func note(_ text: String) {
        world.record(.testNote(text))
    }

    /// Ends the world soon, which has failed; on its thread, under any lock.
    package func fail(_ reason: String) {
        world.record(.violation(reason))
        world.fail(reason, on: clock.loop)
    }

    /// Notes what must not have happened when it happens; the body throws it at its end. A failure prints the steps around the
    /// first one.
    package func noteViolation(_ text: String) { world.record(.violation(text)) }

    /// Throws unless a condition holds.
    ///
    /// - Parameters:
    ///   - condition: what has to be true.
    ///   - message: the promise that was not kept.
    public func require(_ condition: Bool, _ message: @autoclosure () -> String) throws {
        if !condition { throw SimulationError(message()) }
    }
}
