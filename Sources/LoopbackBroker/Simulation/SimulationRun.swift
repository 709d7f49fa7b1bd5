import Synchronization
import Transport

/// What became of one run of a world.
package struct SimulationOutcome<Value: Sendable>: Sendable {
    package let result: Result<Value, any Error>
    package let plan: SimulationPlan
    package let steps: [String]
    /// Differs when anything happened differently.
    package let hash: UInt64
}

/// One run of a body: how it ends, also when the body does not.
final class SimulationRun<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var task: Task<Void, Never>?
        var failure: SimulationError?
        var isCancelled = false
    }

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
        guard isFirst else { return end(.failure(SimulationError(reason, isForeign: isForeign))) }
        cancel()
        // If that changes nothing, the loop comes here again.
        loop.execute {}
    }

    /// The body has ended.
    private func end(_ result: Result<Value, any Error>) {
        let failure = state.withLock { $0.failure }
        loop.executeNow { [self] in
            guard !call.isOver else { return }
            world.end(on: loop)
            loop.cancelSleeps()
            call.end(failure.map { .failure($0) } ?? result)
        }
    }

    /// The result of the body, or the reason why it did not end.
    func result() async -> Result<Value, any Error> {
        await call.answer {
        } onCancel: { [self] in
            cancel()
        }
    }
}
