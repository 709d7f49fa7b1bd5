import Synchronization
import Transport

/// Messages that came in one read for one subscription, in one piece of memory.
@_documentation(visibility: internal)
public protocol MessageStorage: AnyObject, Sendable {
    associatedtype Message: Sendable

    /// Messages that are still here.
    var count: Int { get }
    /// The message at a place from 0 to `count`.
    subscript(index: Int) -> Message { get }
}

/// Messages on their way to a receiver. A queue holds batches rather than messages, so that storing and waking cost once
/// per read.
@usableFromInline
package protocol DeliveryBatch: MessageStorage {
    /// The memory that the batch takes, in bytes; may shrink as messages are dropped.
    var byteCount: Int { get }
    /// How many messages were lost just before the first one. Changes only under the
    /// queue's lock, before a receiver has the batch.
    var gap: Int { get set }
    /// Drops up to `count` of the oldest messages, except those that were promised to arrive; returns how many were
    /// dropped. Called only while the batch waits in a queue, under the queue's lock.
    func dropOldest(_ count: Int) -> Int
}

/// Batches on their way from a connection to one receiver: bounded by messages and bytes, one receiver at a time.
///
/// The connection's side never waits. When a bound is reached, `isFull` makes it withhold acknowledgements, and the policy
/// decides about messages without a guarantee; `drained` is called when the receiver has caught up to half of the bounds.
@usableFromInline
package final class DeliveryQueue<Batch: DeliveryBatch, Failure: Error>: Sendable {
    package enum Next: Sendable {
        case batch(Batch)
        case finished
        case failed(Failure)

        /// The end of a subscription whose client has stopped: graceful if the user disconnected it.
        package init(stoppedBy failure: Failure) where Failure: ClientError {
            self = failure.code == .disconnected ? .finished : .failed(failure)
        }

        /// What the receiver throws.
        package var failure: Failure? {
            if case .failed(let failure) = self { failure } else { nil }
        }
    }

    package enum PushOutcome: Sendable {
        case stored
        /// A bound is reached: withhold acknowledgements, or stop reading if `pauseReading` is the policy.
        case full
        /// The receiver is gone.
        case refused
    }

    private struct State: ~Copyable {
        // Slots before `head` are empty: batches that the receiver has taken are released.
        var slots: [Batch?] = []
        var head = 0
        var messages = 0
        var bytes = 0
        var gap = 0
        var receiver: Waiter<Next?>?
        var end: Next?
        var isThrottling = false
        /// How many of `bytes` the connection's count holds.
        var counted = 0

        var isEmpty: Bool { head == slots.count }

        mutating func append(_ batch: Batch) {
            slots.append(batch)
            messages += batch.count
            bytes += batch.byteCount
        }

        /// By how much the connection's count has to change. What waits in a subscription that is over does not count:
        /// no more will come, and the receiver may take its time.
        mutating func takeUncounted() -> Int {
            let target = end == nil ? bytes : 0
            defer { counted = target }
            return target - counted
        }

        mutating func removeFirst() -> Batch? {
            guard let batch = slots[head] else { return nil }
            removeSlot(head)
            messages -= batch.count
            bytes -= batch.byteCount
            return batch
        }

        mutating func removeSlot(_ index: Int) {
            guard index == head else {
                slots.remove(at: index)
                return
            }
            slots[head] = nil
            head += 1
            if head == slots.count {
                slots.removeAll(keepingCapacity: slots.capacity <= 1024)
                head = 0
            } else if head >= 64, head * 2 >= slots.count {
                slots.removeFirst(head)
                head = 0
            }
        }
    }

    package let policy: BufferPolicy
    private let state = Lock(State())
    private let fullness = Atomic(false)
    private let lost = Atomic(0)
    private let unread: UnreadBytes?
    private let drained: @Sendable () -> Void

    /// - Parameters:
    ///   - unread: counts what waits here too.
    ///   - drained: called without any lock held, on the receiver's thread each time that a full queue has been emptied
    ///     to half, and when a full queue ends.
    package init(policy: BufferPolicy, unread: UnreadBytes? = nil, drained: @escaping @Sendable () -> Void) {
        self.policy = policy
        self.unread = unread
        self.drained = drained
    }

    deinit {
        unread?.change(by: -state.withLock { $0.counted })
    }

    /// Whether a bound is reached; cheap enough to ask for every message.
    @usableFromInline package var isFull: Bool { fullness.load(ordering: .relaxed) }

    /// Whether what waits in all subscriptions of the connection has reached its bound: reading has to pause.
    package var connectionIsFull: Bool { unread?.isFull ?? false }

    /// How many messages were dropped so far.
    package var droppedCount: Int { lost.load(ordering: .relaxed) }

    /// Hands a batch over.
    package func push(_ batch: Batch) -> PushOutcome {
        var receiver: Waiter<Next?>?
        var uncounted = 0
        let outcome = state.withLock { state -> PushOutcome in
            if state.end != nil { return .refused }
            if state.gap > 0 {
                batch.gap += state.gap
                state.gap = 0
            }
            if state.receiver != nil {
                receiver = state.receiver.take()
                return .stored
            }
            state.append(batch)
            defer { uncounted = state.takeUncounted() }
            guard state.messages >= policy.messages || state.bytes >= policy.bytes else { return .stored }
            if policy.overflow == .dropOldest { dropOldest(&state) }
            state.isThrottling = true
            fullness.store(true, ordering: .relaxed)
            return .full
        }
        unread?.change(by: uncounted)
        receiver.take()?.resume(returning: .batch(batch))
        return outcome
    }

    /// Drops from the front until the bounds are kept, or only promised messages and the newest batch are left. The
    /// newest is never dropped for its bytes: a bound that is smaller than one read must not keep everything out.
    private func dropOldest(_ state: inout State) {
        var gap = 0
        var index = state.head
        while index < state.slots.count, let batch = state.slots[index] {
            let isNewest = index == state.slots.count - 1
            let hasTooManyBytes = state.bytes > policy.bytes && !isNewest
            guard hasTooManyBytes || state.messages > policy.messages else { break }
            if gap > 0 {
                batch.gap += gap
                gap = 0
            }
            // Bytes come free only with a whole batch.
            let wanted = hasTooManyBytes ? batch.count : state.messages - policy.messages
            let bytesBefore = batch.byteCount
            let dropped = batch.dropOldest(wanted)
            state.messages -= dropped
            lost.add(dropped, ordering: .relaxed)
            if batch.count == 0 {
                gap = batch.gap + dropped
                state.bytes -= bytesBefore
                // Removing the first slot may move all others.
                let wasFirst = index == state.head
                state.removeSlot(index)
                if wasFirst { index = state.head }
            } else {
                state.bytes -= bytesBefore - batch.byteCount
                batch.gap += dropped
                index += 1
            }
        }
        guard gap > 0 else { return }
        if index < state.slots.count, let next = state.slots[index] { next.gap += gap } else { state.gap += gap }
    }

    /// The next batch; waits for one. Returns nil when the task is cancelled.
    package nonisolated(nonsending) func next() async -> Next? {
        if let ready = takeReady() { return ready }
        return await waiting { waiter in
            var waiter: Waiter<Next?>? = waiter
            var replaced: Waiter<Next?>?
            var change = Change()
            let ready = state.withLock { state -> Next?? in
                if let ready = takeReady(&state, &change) { return .some(ready) }
                if Task.isCancelled { return .some(nil) }
                // Two receivers of one iterator are a mistake of the caller; the first one sees an end.
                replaced = state.receiver.take()
                state.receiver = waiter.take()
                return nil
            }
            replaced.take()?.resume(returning: nil)
            report(change)
            if let ready { waiter.take()?.resume(returning: ready) }
        } onCancel: {
            let receiver = state.withLock { $0.receiver.take() }
            receiver?.resume(returning: nil)
        }
    }

    /// The next batch or the end, if it is there already.
    package func takeReady() -> Next? {
        var change = Change()
        let ready = state.withLock { takeReady(&$0, &change) }
        report(change)
        return ready
    }

    /// What to report to the connection once the lock is released.
    private struct Change {
        var wasDrained = false
        var uncounted = 0
    }

    private func report(_ change: Change) {
        unread?.change(by: change.uncounted)
        if change.wasDrained { drained() }
    }

    private func takeReady(_ state: inout State, _ change: inout Change) -> Next? {
        guard !state.isEmpty, let batch = state.removeFirst() else { return state.end }
        change.uncounted = state.takeUncounted()
        if state.isThrottling, state.messages <= policy.messages / 2, state.bytes <= policy.bytes / 2 {
            state.isThrottling = false
            fullness.store(false, ordering: .relaxed)
            change.wasDrained = true
        }
        return .batch(batch)
    }

    /// Ends the queue: what waits is still delivered, then `end`. The first end counts.
    package func finish(_ end: Next = .finished) {
        var change = Change()
        let receiver = state.withLock { state -> Waiter<Next?>? in
            guard state.end == nil else { return nil }
            state.end = end
            change = Change(wasDrained: state.isThrottling, uncounted: state.takeUncounted())
            state.isThrottling = false
            fullness.store(false, ordering: .relaxed)
            return state.receiver.take()
        }
        report(change)
        receiver?.resume(returning: end)
    }

    /// The receiver is gone: what waits is dropped, what comes is refused.
    package func abandon() {
        var uncounted = 0
        var receiver: Waiter<Next?>?
        let dropped = state.withLock { state in
            if state.end == nil { state.end = .finished }
            let dropped = state.slots
            state.slots = []
            state.head = 0
            state.messages = 0
            state.bytes = 0
            uncounted = state.takeUncounted()
            state.isThrottling = false
            fullness.store(false, ordering: .relaxed)
            receiver = state.receiver.take()
            return dropped
        }
        receiver.take()?.resume(returning: .finished)
        // What the batches own is released without the lock.
        withExtendedLifetime(dropped) {}
        report(Change(wasDrained: true, uncounted: uncounted))
    }
}

extension DeliveryQueue {
    /// The next batch that still holds a message, nil after an end in order.
    ///
    /// - Parameter cancelled: thrown when the task is cancelled.
    package nonisolated(nonsending) func nextBatch(cancelled: @autoclosure () -> Failure) async throws(Failure)
        -> Batch?
    {
        while true {
            switch await next() {
            case .batch(let batch):
                // All of a batch may have been dropped while it waited.
                if batch.count > 0 { return batch }
            case .finished:
                return nil
            case .failed(let error):
                throw error
            case nil:
                throw cancelled()
            }
        }
    }
}
