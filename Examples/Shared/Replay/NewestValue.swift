import Synchronization
import Transport

/// Holds one value until it is taken; a newer one takes its place.
final class NewestValue<Value: Sendable>: Sendable {
    private struct State {
        var value: Value?
        var hasEnded = false
        var failure: DeviceFailure?
        var waiter: PendingCall<Void>?

        var isReady: Bool { value != nil || hasEnded }

        mutating func takeWaiter() -> PendingCall<Void>? { waiter.take() }
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
        let call = PendingCall<Void>()
        let isReady = state.withLock { state in
            if !state.isReady { state.waiter = call }
            return state.isReady
        }
        if !isReady { await call.answer { call.end(()) } }
        let (hasValue, failure) = state.withLock { ($0.value != nil, $0.failure) }
        if !hasValue, let failure { throw failure }
        return hasValue
    }

    private func change(_ body: (inout State) -> Void) {
        let waiter = state.withLock { state in
            body(&state)
            return state.takeWaiter()
        }
        waiter?.end(())
    }
}
