import MessagingWire
import Synchronization
import Transport

/// What became of one run of a world.
package struct SimulationOutcome<Value: Sendable>: Sendable {
    package let result: Result<Value, any Error>
    package let plan: SimulationPlan
    package let steps: [String]
    /// What the clients waited for when the body failed, one line each.
    package let clients: [String]
    /// Differs when anything happened differently.
    package let hash: UInt64
}

/// One run of a body: how it ends, also when the body does not.
final class SimulationRun<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var task: Task<Void, Never>?
        var failure: SimulationError?
        var isCancelled = false
        /// Whether the world has ended.
        var hasEnded = false
        var watch: Watch?
    }

    /// Looks whether the loop's thread still does anything, by real time.
    private struct Watch: Sendable {
        /// On a loop that reads the system's clock.
        let alarm: LoopAlarm
        /// The rounds of the loop when it last looked, and how often it has seen them.
        var rounds = 0
        var count = 0
    }

    /// How often a watch looks before it ends the run. A process that a debugger or the system has stopped misses one of
    /// these times only, however long that took.
    private static var looks: Int { 10 }

    private let world: SimulatedWorld
    private let loop: EventLoop
    private let call = PendingCall<Result<Value, any Error>>()
    private let state = Lock(State())

    init(_ world: SimulatedWorld, _ loop: EventLoop) {
        self.world = world
        self.loop = loop
    }

    /// From now on the seed decides; on the loop's thread.
    func begin() {
        world.begin(on: loop) { [weak self] reason, isForeign in self?.stalled(reason, isForeign) }
    }

    /// Runs the body; on the loop's thread.
    ///
    /// - Parameter atEnd: called after the body, before the result counts.
    func start(
        _ body: @escaping @Sendable () async -> Result<Value, any Error>, atEnd: @escaping @Sendable () -> Void
    ) {
        let task = Task(executorPreference: world.executor) {
            let result = await body()
            if case .failure = result { self.world.noteClients() }
            atEnd()
            self.end(result)
        }
        let isCancelled = state.withLock { state in
            state.task = task
            return state.isCancelled
        }
        if isCancelled { task.cancel() }
    }

    private func cancel() {
        let task = state.withLock { state in
            state.isCancelled = true
            return state.task
        }
        task?.cancel()
    }

    /// The body cannot end any more by itself: it is cancelled, and left alone if that does not help either.
    private func stalled(_ reason: String, _ isForeign: Bool) {
        let isFirst = state.withLock { state in
            let isFirst = state.failure == nil
            if isFirst { state.failure = SimulationError(reason, isForeign: isForeign) }
            return isFirst
        }
        world.noteClients()
        guard isFirst else { return end(.failure(SimulationError(reason, isForeign: isForeign))) }
        cancel()
        // If that changes nothing, the loop comes here again.
        loop.execute {}
    }

    /// The body has ended.
    private func end(_ result: Result<Value, any Error>) {
        let failure = state.withLock { $0.failure }
        loop.executeNow { [self] in
            endWorld()
            call.end(failure.map { .failure($0) } ?? result)
        }
    }

    /// On the loop's thread.
    private func endWorld() {
        let hadEnded = state.withLock { state in
            defer { state.hasEnded = true }
            return state.hasEnded
        }
        if hadEnded { return }
        world.end(on: loop)
        loop.cancelSleeps()
    }

    /// The result of the body, or the reason why it did not end.
    ///
    /// - Parameter longestHold: the real time for which the body may hold a thread of the world. Its thread and its world
    ///   remain then, until it lets go of the thread.
    func result(longestHold: Duration) async -> Result<Value, any Error> {
        watch(for: longestHold)
        let result = await call.answer {
        } onCancel: { [self] in
            cancel()
        }
        let watch = state.withLock { $0.watch.take() }
        if let watch { EventLoop.shared.execute { watch.alarm.set(.max) } }
        return result
    }

    // MARK: A body that holds the thread

    private func watch(for longestHold: Duration) {
        let pause = longestHold.inNanoseconds / Int64(Self.looks)
        let alarm = LoopAlarm(loop: .shared) { [weak self] now in self?.look(at: now, pause) }
        state.withLock { $0.watch = Watch(alarm: alarm) }
        EventLoop.shared.execute { alarm.set(EventLoop.shared.now.advanced(byNanoseconds: pause)) }
    }

    /// On the thread of the watch.
    private func look(at now: Int64, _ pause: Int64) {
        let rounds = world.roundCount
        let (alarm, count) = state.withLock { state -> (LoopAlarm?, Int) in
            guard var watch = state.watch.take() else { return (nil, 0) }
            watch.count = watch.rounds == rounds ? watch.count + 1 : 0
            watch.rounds = rounds
            state.watch = watch
            return (watch.alarm, watch.count)
        }
        guard count < Self.looks else { return abandon() }
        alarm?.set(now.advanced(byNanoseconds: pause))
    }

    /// Ends the run without the loop's thread, which the body holds.
    private func abandon() {
        world.abandon()
        call.end(
            .failure(
                SimulationError(
                    "The body holds the thread of its world: a semaphore, a lock, Thread.sleep, a blocking read, or a long "
                        + "computation. Await instead what happens in the simulation, and sleep on its clock.",
                    isForeign: true)))
        // If it ever lets go.
        loop.execute { [self] in
            cancel()
            endWorld()
        }
    }
}
