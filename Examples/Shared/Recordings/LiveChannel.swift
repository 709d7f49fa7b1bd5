import Dispatch
import Synchronization
import Transport

/// Carries values from a thread that may block to one task that may not. The thread waits while `capacity` values lie
/// unread, so a fast writer at the other end of a pipe is slowed down instead of filling memory.
package final class LiveChannel<Element: Sendable>: Sendable {
    fileprivate struct State {
        var queue: [Element] = []
        var head = 0
        var waiter: PendingCall<Void>?
        var hasEnded = false
        var failure: DeviceFailure?

        mutating func pop() -> Element? {
            guard head < queue.count else { return nil }
            defer {
                head += 1
                if head == queue.count {
                    queue.removeAll(keepingCapacity: true)
                    head = 0
                }
            }
            return queue[head]
        }
    }

    private let state = Mutex(State())
    private let room: DispatchSemaphore

    package init(capacity: Int = 256) {
        // Counted up from 0: a semaphore that is destroyed below its first value traps, and a channel may be dropped
        // with values unread.
        room = DispatchSemaphore(value: 0)
        for _ in 0..<capacity { room.signal() }
    }

    /// Blocks the thread while the channel is full.
    package func send(_ element: Element) {
        room.wait()
        let waiter = state.withLock { state in
            state.queue.append(element)
            return state.waiter.take()
        }
        waiter?.end(())
    }

    package func finish(_ failure: DeviceFailure? = nil) {
        let waiter = state.withLock { state in
            state.hasEnded = true
            state.failure = failure
            return state.waiter.take()
        }
        waiter?.end(())
    }

    /// The next value; nil at the end and when the task is cancelled.
    ///
    /// For one task at a time.
    package func next() async throws(DeviceFailure) -> Element? {
        while !Task.isCancelled {
            let (element, hasEnded, failure) = state.withLock { ($0.pop(), $0.hasEnded, $0.failure) }
            if let element {
                room.signal()
                return element
            }
            if let failure { throw failure }
            if hasEnded { return nil }
            await wait()
        }
        return nil
    }

    private func wait() async {
        let call = PendingCall<Void>()
        let isReady = state.withLock { state in
            guard state.head == state.queue.count, !state.hasEnded else { return true }
            state.waiter = call
            return false
        }
        if !isReady { await call.answer { call.end(()) } }
    }
}
