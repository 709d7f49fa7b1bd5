import Synchronization
public import Testing

/// Lets only a few of the tests that carry it run at the same time.
///
/// Swift Testing starts all tests at once. Hundreds of them, with sockets, processes and brokers on two cores, would
/// wait for each other longer than any of their time-outs allows; a few at a time find the machine as they expect it.
public struct Turns: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
        await Permits.shared.acquire()
        do {
            try await function()
        } catch {
            Permits.shared.release()
            throw error
        }
        Permits.shared.release()
    }
}

extension Trait where Self == Turns {
    /// Waits for its turn: see ``Turns``.
    public static var turns: Turns { Turns() }
}

private final class Permits: Sendable {
    static let shared = Permits(4)

    private struct State {
        var free: Int
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state: Mutex<State>

    init(_ count: Int) {
        state = Mutex(State(free: count))
    }

    func acquire() async {
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

    func release() {
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
