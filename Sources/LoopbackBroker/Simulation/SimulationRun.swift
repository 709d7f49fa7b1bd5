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
    }

    private let world: SimulatedWorld
    private let loop: EventLoop
    private let call = PendingCall<Result<Value, any Error>>()
    private let state = Lock(State())

    init(_ world: SimulatedWorld, _ loop: EventLoop) {
        self.world = world
        self.loop = loop
    }

    func setTask(_ task: Task<Void, Never>) { state.withLock { $0.task = task } }

    /// The body begins; on the loop's thread.
    func begin() {
        world.begin(on: loop) { [weak self] reason, isForeign in self?.stalled(reason, isForeign) }
    }

    /// The body cannot end any more by itself: it is cancelled, and left alone if that does not help either.
    private func stalled(_ reason: String, _ isForeign: Bool) {
        let (task, isFirst) = state.withLock { state in
            let isFirst = state.failure == nil
            if isFirst { state.failure = SimulationError(reason, isForeign: isForeign) }
            return (state.task, isFirst)
        }
        guard isFirst else { return end(.failure(SimulationError(reason, isForeign: isForeign))) }
        task?.cancel()
        // If that changes nothing, the loop comes here again.
        loop.execute {}
    }

    /// The body has ended.
    func end(_ result: Result<Value, any Error>) {
        let failure = state.withLock { $0.failure }
        loop.executeNow { [self] in
            guard !call.isOver else { return }
            world.end(on: loop)
            call.end(failure.map { .failure($0) } ?? result)
        }
    }

    /// The result of the body, or the reason why it did not end.
    func result(onCancel: @Sendable () -> Void) async -> Result<Value, any Error> {
        await call.answer {
        } onCancel: {
            onCancel()
        }
    }
}
