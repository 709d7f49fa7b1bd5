import Synchronization

/// Callers that wait for room in the outbox.
extension Link where Machine: ~Copyable {
    /// Waits until the outbox has room, the connection ends, or the task is cancelled; check again afterwards.
    package nonisolated(nonsending) func room() async {
        let token = state.withLock { $0.roomWaiters.value.reserve() }
        await waiting { waiter in
            var waiter: Waiter<Void>? = waiter
            // A waiter is added only while there is something to wait for, under the lock that ends it.
            state.withLock { state in
                if outboxIsFull(state), state.stream != nil, !Task.isCancelled, let waiter = waiter.take() {
                    state.roomWaiters.value.add(waiter, at: token)
                } else {
                    state.roomWaiters.value.release(token)
                }
            }
            waiter.take()?.resume(returning: ())
        } onCancel: {
            state.withLock { $0.roomWaiters.value.take(token) }?.resume(returning: ())
        }
    }
}

extension LinkState {
    /// The callers that wait for room, to be resumed after the lock is released.
    mutating func takeRoomWaiters() -> UniqueArray<Waiter<Void>> {
        roomWaiters.isMade ? roomWaiters.value.takeAll() : UniqueArray()
    }
}
