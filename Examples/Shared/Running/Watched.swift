import Synchronization
import Transport

/// A value that any thread may change, and that tasks can wait for.
package final class Watched<Value: Sendable>: Sendable {
    private struct State: Sendable {
        var value: Value
        var waiting: [PendingCall<Void>] = []
    }

    private let state: Mutex<State>

    package init(_ value: Value) {
        state = Mutex(State(value: value))
    }

    package var value: Value {
        get { state.withLock { $0.value } }
        set { change { $0 = newValue } }
    }

    @discardableResult
    package func change<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
        let (result, waiting) = state.withLock { state in
            defer { state.waiting = [] }
            return (body(&state.value), state.waiting)
        }
        for call in waiting { call.end(()) }
        return result
    }

    /// Calls `body` now and after each change until it returns a value, which is returned; nil when the task is
    /// cancelled. With that call, `body` may change what is watched.
    package func first<Result: Sendable>(_ body: (inout Value) -> Result?) async -> Result? {
        while !Task.isCancelled {
            let call = PendingCall<Void>()
            let (result, waiting) = state.withLock { state -> (Result?, [PendingCall<Void>]) in
                // Those of cancelled tasks are not needed any more.
                state.waiting.removeAll(where: \.isOver)
                if let result = body(&state.value) {
                    defer { state.waiting = [] }
                    return (result, state.waiting)
                }
                state.waiting.append(call)
                return (nil, [])
            }
            for other in waiting { other.end(()) }
            if let result { return result }
            await call.answer { call.end(()) }
        }
        return nil
    }

    /// Returns when the condition holds, or the task is cancelled.
    package func wait(_ condition: (Value) -> Bool) async {
        _ = await first { condition($0) ? true : nil }
    }
}
