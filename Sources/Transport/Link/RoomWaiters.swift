import Synchronization

/// Callers that wait for room in an outbox.
struct RoomWaiters {
    private var waiting: [UInt64: UnsafeContinuation<Void, Never>] = [:]
    private var nextID: UInt64 = 0

    mutating func reserveID() -> UInt64 {
        nextID += 1
        return nextID
    }

    mutating func add(_ continuation: UnsafeContinuation<Void, Never>, id: UInt64) {
        waiting[id] = continuation
    }

    mutating func take(_ id: UInt64) -> UnsafeContinuation<Void, Never>? {
        waiting.removeValue(forKey: id)
    }

    mutating func takeAll() -> Taken {
        guard !waiting.isEmpty else { return Taken() }
        defer { waiting.removeAll() }
        return Taken(continuations: waiting.sorted { $0.key < $1.key }.map(\.value))
    }

    /// Taken out under the lock, to be resumed after it.
    struct Taken {
        var continuations: [UnsafeContinuation<Void, Never>] = []

        func resume() {
            for continuation in continuations { continuation.resume() }
        }
    }
}

extension Link where Machine: ~Copyable {
    /// Waits until the outbox has room, the connection ends, or the task is cancelled; check again afterwards.
    package func room() async {
        let id = state.withLock { $0.roomWaiters.reserveID() }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                // A waiter is added only while there is something to wait for, under the lock that ends it.
                let added = state.withLock { state -> Bool in
                    guard outboxIsFull(state), state.stream != nil, !Task.isCancelled else { return false }
                    state.roomWaiters.add(continuation, id: id)
                    return true
                }
                if !added { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.roomWaiters.take(id) }?.resume()
        }
    }
}
