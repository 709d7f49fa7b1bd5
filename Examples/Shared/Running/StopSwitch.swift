import Synchronization

/// Tells everybody once that the program is to end, so that each can leave its broker properly.
///
/// Not a cancellation of the devices' own tasks: those still have to unsubscribe and disconnect.
package final class StopSwitch: Sendable {
    package enum Reason: Sendable, Equatable {
        /// Ctrl-C, SIGTERM or a closed terminal.
        case signal(CInt)
        /// Standard output cannot be written any more; the system's error number.
        case output(CInt)
        /// A device of the fleet has failed for good.
        case failure
    }

    private struct Action: Sendable {
        let run: @Sendable () -> Void
    }

    private struct State {
        var reason: Reason?
        var actions: [Int: Action] = [:]
        var nextID = 0
    }

    private let state = Mutex(State())

    package init() {}

    /// Nil while the program runs.
    package var reason: Reason? { state.withLock { $0.reason } }
    package var isStopped: Bool { reason != nil }

    /// The first reason counts.
    package func stop(_ reason: Reason) {
        let actions = state.withLock { state -> [Action] in
            guard state.reason == nil else { return [] }
            state.reason = reason
            defer { state.actions = [:] }
            return Array(state.actions.values)
        }
        for action in actions { action.run() }
    }

    /// Runs `body` and cancels it when the program is to stop; it then returns or throws as a cancelled task does.
    package func untilStopped<Result: Sendable>(
        _ body: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let task = Task {
            // A program that is stopped already has its body run cancelled from the start.
            if isStopped { unsafe withUnsafeCurrentTask { unsafe $0?.cancel() } }
            return try await body()
        }
        let id = onStop { task.cancel() }
        defer { forget(id) }
        return try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Returns when the program is to stop, or when the task is cancelled.
    package func wait() async {
        _ = try? await untilStopped { try await Task.sleep(for: .seconds(1_000_000_000)) }
    }

    private func onStop(_ run: @escaping @Sendable () -> Void) -> Int? {
        let id = state.withLock { state -> Int? in
            guard state.reason == nil else { return nil }
            state.nextID += 1
            state.actions[state.nextID] = Action(run: run)
            return state.nextID
        }
        if id == nil { run() }
        return id
    }

    private func forget(_ id: Int?) {
        guard let id else { return }
        state.withLock { _ = $0.actions.removeValue(forKey: id) }
    }
}
