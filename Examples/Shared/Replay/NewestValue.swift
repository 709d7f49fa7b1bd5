import Synchronization

/// Holds one value until it is taken; a newer one takes its place.
final class NewestValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var hasEnded = false
        var failure: DeviceFailure?
        var waiter: CheckedContinuation<Void, Never>?

        var isReady: Bool { value != nil || hasEnded }

        mutating func takeWaiter() -> CheckedContinuation<Void, Never>? {
            defer { waiter = nil }
            return waiter
        }
    }

    private let state = Mutex(State())

    func put(_ value: Value) {
        change { $0.value = value }
    }

    /// No value will follow. The last one can still be taken.
    func finish(_ failure: DeviceFailure? = nil) {
        change {
            $0.hasEnded = true
            $0.failure = failure
        }
    }

    func take() -> Value? {
        state.withLock { $0.value.take() }
    }

    /// Waits for a value; for one task at a time. False at the end and when the task is cancelled.
    ///
    /// - Throws: The failure of `finish`, after the last value.
    func arrives() async throws(DeviceFailure) -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLock { state in
                    guard !state.isReady, !Task.isCancelled else { return true }
                    state.waiter = continuation
                    return false
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.takeWaiter() }?.resume()
        }
        let (hasValue, failure) = state.withLock { ($0.value != nil, $0.failure) }
        if !hasValue, let failure { throw failure }
        return hasValue
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.takeWaiter()
        }
        waiter?.resume()
    }
}
