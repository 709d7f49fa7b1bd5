import Synchronization

/// Lets a limited number of tasks do the same kind of work at the same time, in the order in which they asked.
final class Permits: Sendable {
    /// Tests with sockets: see ``Turns``.
    static let turns = Permits(4)

    /// Starts of RabbitMQ, ActiveMQ and Chromium. Each of them occupies every core for some seconds; all of them at once
    /// need minutes, and so does everything that runs beside them.
    static let starts = Permits(2)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ count: Int) {
        state = Mutex(State(free: count))
    }

    /// Runs `body` once a permit is free, and returns the permit afterwards.
    func hold<Success>(_ body: () async throws -> Success) async rethrows -> Success {
        await acquire()
        defer { release() }
        return try await body()
    }

    private func acquire() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.free > 0 {
                    state.free -= 1
                    return true
                }
                state.waiting.append(continuation)
                return false
            }
            if isFree { continuation.resume() }
        }
    }

    private func release() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if state.waiting.isEmpty {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst()
        }
        next?.resume()
    }
}
