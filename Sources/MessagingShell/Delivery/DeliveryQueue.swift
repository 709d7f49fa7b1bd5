package import MessagingWire
import Synchronization
package import Transport

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
    /// How many batches its subscription had received before. Set by the queue, under its lock.
    var number: Int { get set }
    /// The messages from a place on, for another receiver: the one that has taken those before it is gone.
    func rest(from index: Int) -> Self
    /// Drops up to `count` of the oldest messages, except those that were promised to arrive; returns how many were
    /// dropped. Called only while the batch waits in a queue, under the queue's lock.
    func dropOldest(_ count: Int) -> Int
    /// A receiver has taken this many of the messages, or all of them and may not be done with each. From any thread.
    func noteTaken(_ count: Int)
}

extension DeliveryBatch {
    /// Does nothing: for protocols whose servers decide about messages that were not acknowledged.
    @inlinable
    package func noteTaken(_ count: Int) {}
}

/// The end of a subscription.
package enum DeliveryEnd<Failure: Error>: Sendable {
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

/// What became of a batch that was handed to a queue.
package enum DeliveryOutcome: Sendable {
    case stored
    /// A bound is reached: withhold acknowledgements, or stop reading if `pauseReading` is the policy.
    case full
    /// The receiver is gone.
    case refused
}

/// Batches on their way from a connection to one receiver: bounded by messages and bytes, one receiver at a time.
///
/// The connection's side never waits. When a bound is reached, `isFull` makes it withhold acknowledgements, and the policy
/// decides about messages without a guarantee; ``UnreadBytes/drained`` is called when the receiver has caught up to half of
/// the bounds.
@usableFromInline
package final class DeliveryQueue<Batch: DeliveryBatch, Failure: Error>: @unchecked Sendable {
    // Sendable because every variable is either atomic or used with the lock held only.

    package let policy: BufferPolicy
    private let lock = Lock(())
    // These variables are used with `lock` held only. They are not in the lock, and most name neither `Batch` nor `Failure`,
    // because generic code looks up the metadata of such types at each use, which took longer than everything else here.

    /// Batches that wait, the oldest at `head`. Slots before it are empty: batches that the receiver has taken are released.
    @safe @exclusivity(unchecked) private var slots: [AnyObject?] = []
    @safe @exclusivity(unchecked) private var head = 0
    @safe @exclusivity(unchecked) private var messages = 0
    @safe @exclusivity(unchecked) private var bytes = 0
    @safe @exclusivity(unchecked) private var gap = 0
    /// Resumed with whether there is something to take.
    @safe @exclusivity(unchecked) private var receiver: Waiter<Bool>?
    /// The batch that a receiver was resumed for. It never waited, and does not count against the bounds.
    @safe @exclusivity(unchecked) private var handed: AnyObject?
    @safe @exclusivity(unchecked) private var end: Shared<DeliveryEnd<Failure>>?
    /// The number of the first batch that this queue gets from the connection, and that of the next one.
    @safe @exclusivity(unchecked) private var firstNumber = 0
    @safe @exclusivity(unchecked) private var nextNumber = 0
    /// How many of `bytes` the connection's count holds.
    @safe @exclusivity(unchecked) private var counted = 0
    private let fullness = Atomic(false)
    /// Here because there is room for it.
    @safe @exclusivity(unchecked) private var pace = InvariantPace()
    private let lost = Atomic(0)
    /// How many other receivers have left messages to this one that have not arrived here. The end comes after them.
    private let inheritances = Atomic(0)
    private let unread: UnreadBytes

    /// - Parameter unread: counts what waits here too.
    package init(policy: BufferPolicy, unread: UnreadBytes) {
        self.policy = policy
        self.unread = unread
    }

    deinit {
        unread.change(by: -lock.withLock { _ in counted })
    }

    /// Whether a bound is reached; cheap enough to ask for every message.
    @usableFromInline package var isFull: Bool { fullness.load(ordering: .relaxed) }

    /// Whether what waits in all subscriptions of the connection has reached its bound: reading has to pause.
    package var connectionIsFull: Bool { unread.isFull }

    /// How many messages were dropped so far.
    package var droppedCount: Int { lost.load(ordering: .relaxed) }

    // MARK: The connection's side

    /// Begins with the batch that comes next in another queue of the same subscription.
    package func begin(with other: DeliveryQueue) { begin(at: other.lock.withLock { _ in other.nextNumber }) }

    /// Begins after the last batch of a subscription that has ended.
    package func beginAfterEnd() { begin(at: .max) }

    private func begin(at number: Int) { lock.withLock { _ in (firstNumber, nextNumber) = (number, number) } }

    /// Hands a batch over, and resumes a receiver that waits for one.
    package func push(_ batch: Batch) -> DeliveryOutcome {
        var receivers = UniqueArray<Waiter<Bool>>()
        defer { receivers.resume(returning: true) }
        return push(batch, for: &receivers)
    }

    /// Hands a batch over.
    ///
    /// - Parameter receivers: gets the receiver, if one waits for a batch. The caller resumes those of a whole read
    ///   together: the threads of the pool would fall asleep between them.
    package func push(_ batch: Batch, for receivers: inout UniqueArray<Waiter<Bool>>) -> DeliveryOutcome {
        var receiver: Waiter<Bool>?
        var uncounted = 0
        let outcome = lock.withLock { _ -> DeliveryOutcome in
            defer { assert(checkInvariants()) }
            if end != nil { return .refused }
            batch.number = nextNumber
            nextNumber += 1
            if gap > 0 {
                batch.gap += gap
                gap = 0
            }
            if self.receiver != nil {
                receiver = self.receiver.take()
                handed = batch
                return .stored
            }
            append(batch)
            let reachesBound = checkBounds()
            uncounted = takeUncounted()
            return reachesBound ? .full : .stored
        }
        unread.change(by: uncounted)
        if let receiver { receivers.append(receiver) }
        return outcome
    }

    /// Ends the queue: what waits is still delivered, then `end`. The first end counts.
    package func finish(_ end: DeliveryEnd<Failure> = .finished) {
        var change = Change()
        let receiver = lock.withLock { _ -> Waiter<Bool>? in
            defer { assert(checkInvariants()) }
            guard self.end == nil else { return nil }
            self.end = Shared(end)
            change = Change(wasDrained: isFull, uncounted: takeUncounted())
            fullness.store(false, ordering: .relaxed)
            return self.receiver.take()
        }
        report(change)
        receiver?.resume(returning: true)
    }

    // MARK: The receiver's side

    /// The next batch that still holds a message; waits for one. Nil after a graceful end.
    ///
    /// - Parameters:
    ///   - cancelled: thrown when the task is cancelled.
    ///   - replaced: thrown when another task waits instead of it.
    package nonisolated(nonsending) func nextBatch(
        cancelled: @autoclosure () -> Failure, replaced: @autoclosure () -> Failure
    ) async throws(Failure) -> Batch? {
        while true {
            if let batch = takeBatch() {
                // All of a batch may have been dropped while it waited.
                if batch.count > 0 { return batch }
            } else if lock.withLock({ _ in isOver }) {
                return try reachedEnd()
            } else if await !waitForMore() {
                throw Task.isCancelled ? cancelled() : replaced()
            }
        }
    }

    /// Throws what ended the queue; nil after a graceful end. Not inlined, because its caller would look up the metadata of
    /// the end for every batch.
    @inline(never)
    private func reachedEnd() throws(Failure) -> Batch? {
        if let failure = lock.withLock({ _ in end })?.value.failure { throw failure }
        return nil
    }

    /// Returns when there is a batch or the end to take; false if the task is cancelled, or another one waits instead of it.
    private nonisolated(nonsending) func waitForMore() async -> Bool {
        await waiting { waiter in
            var waiter: Waiter<Bool>? = waiter
            var replaced: Waiter<Bool>?
            let answer = lock.withLock { _ -> Bool? in
                defer { assert(checkInvariants()) }
                if !isEmpty || isOver { return true }
                if Task.isCancelled { return false }
                // Two receivers of one iterator are a mistake of the caller, which the first one reports.
                replaced = receiver.take()
                receiver = waiter.take()
                return nil
            }
            replaced.take()?.resume(returning: false)
            if let answer { waiter.take()?.resume(returning: answer) }
        } onCancel: {
            let receiver = lock.withLock { _ in self.receiver.take() }
            receiver?.resume(returning: false)
        }
    }

    /// The next batch, if there is one.
    package func takeBatch() -> Batch? {
        var change = Change()
        let taken = lock.withLock { _ -> Batch? in
            defer { assert(checkInvariants()) }
            if let handed {
                self.handed = nil
                return cast(handed)
            }
            guard head < slots.count, let object = slots[head] else { return nil }
            let batch = cast(object)
            removeSlot(head)
            messages -= batch.count
            bytes -= batch.byteCount
            change.uncounted = takeUncounted()
            if isFull, messages <= policy.messages / 2, bytes <= policy.bytes / 2 {
                fullness.store(false, ordering: .relaxed)
                change.wasDrained = true
            }
            return batch
        }
        report(change)
        if let taken { taken.noteTaken(taken.count) }
        return taken
    }

    /// The receiver is gone: what comes is refused. Returns what waited.
    @discardableResult
    package func abandon() -> [Batch] {
        var uncounted = 0
        var receiver: Waiter<Bool>?
        let left = lock.withLock { _ in
            defer { assert(checkInvariants()) }
            if end == nil { end = Shared(DeliveryEnd.finished) }
            let left = ([handed] + slots[head...]).compactMap { $0.map(cast) }
            slots = []
            handed = nil
            head = 0
            messages = 0
            bytes = 0
            uncounted = takeUncounted()
            fullness.store(false, ordering: .relaxed)
            receiver = self.receiver.take()
            return left
        }
        receiver.take()?.resume(returning: true)
        report(Change(wasDrained: true, uncounted: uncounted))
        return left
    }

    /// Another receiver of the subscription is gone: ``inherit(_:)`` follows with what it has left. From any thread.
    package func expectInheritance() { inheritances.add(1, ordering: .relaxed) }

    /// Puts what another receiver of the subscription has left before everything that waits here, except batches that this
    /// queue has got itself.
    package func inherit(_ left: [Batch]) {
        var uncounted = 0
        let receiver = lock.withLock { _ -> Waiter<Bool>? in
            defer { assert(checkInvariants()) }
            inheritances.subtract(1, ordering: .relaxed)
            let older = left.filter { $0.number < firstNumber }
            // A receiver may wait for the end alone.
            if older.isEmpty { return end == nil ? nil : self.receiver.take() }
            let receiver = self.receiver.take()
            var first = older + (handed.map { [cast($0)] } ?? [])
            handed = receiver == nil && handed == nil ? nil : first.removeFirst()
            slots.replaceSubrange(..<head, with: first.map { $0 as AnyObject? })
            head = 0
            for batch in first { count(batch) }
            if end == nil { checkBounds() }
            uncounted = takeUncounted()
            return receiver
        }
        unread.change(by: uncounted)
        receiver?.resume(returning: true)
    }

    /// What to report to the connection once the lock is released.
    private struct Change {
        var wasDrained = false
        var uncounted = 0
    }

    private func report(_ change: Change) {
        unread.change(by: change.uncounted)
        if change.wasDrained { unread.drained() }
    }

    // MARK: With the lock held

    private func cast(_ object: AnyObject) -> Batch {
        // Safe: `slots` and `handed` hold batches of this queue only.
        unsafe unsafeDowncast(object, to: Batch.self)
    }

    private var isEmpty: Bool { handed == nil && head == slots.count }

    /// Whether the end is all that is left.
    private var isOver: Bool { isEmpty && end != nil && inheritances.load(ordering: .relaxed) == 0 }

    private var isAtBound: Bool { messages >= policy.messages || bytes >= policy.bytes }

    /// Notes whether a bound is reached, once the oldest messages are dropped, if the policy is to drop them.
    @discardableResult
    private func checkBounds() -> Bool {
        guard isAtBound else { return false }
        if policy.overflow == .dropOldest { dropOldest() }
        fullness.store(true, ordering: .relaxed)
        return true
    }

    private func append(_ batch: Batch) {
        slots.append(batch)
        count(batch)
    }

    private func count(_ batch: Batch) {
        messages += batch.count
        bytes += batch.byteCount
    }

    /// The change to report to the connection's count. Batches of an ended subscription do not count: no more will arrive,
    /// and the receiver may take its time.
    private func takeUncounted() -> Int {
        let target = end == nil ? bytes : 0
        defer { counted = target }
        return target - counted
    }

    private func removeSlot(_ index: Int) {
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

    /// Stops the process where the queue contradicts itself; in debug builds only. True, for `assert`.
    private func checkInvariants() -> Bool {
        pace.count()
        let isEnded = end != nil
        assert(counted == (isEnded ? 0 : bytes), "The connection counts other bytes than wait here.")
        assert(receiver == nil || isEmpty, "A receiver waits although there is a batch.")
        assert(isEnded || isFull || !isAtBound || messages == 0, "A bound is reached, and nothing notes it.")
        assert(!isEnded || !isFull, "A queue that has ended holds the connection up.")
        assert(firstNumber <= nextNumber, "The next batch of a queue comes before its first.")
        guard pace.isDue(for: slots.count) else { return true }
        var (index, found, size) = (0, 0, 0)
        while index < slots.count {
            if index < head {
                assert(slots[index] == nil, "A batch that was taken is kept.")
            } else if let object = slots[index] {
                (found, size) = (found + cast(object).count, size + cast(object).byteCount)
            } else {
                assert(false, "A batch is missing among those that wait.")
            }
            index += 1
        }
        assert(messages == found, "Another number of messages waits than is counted.")
        assert(bytes == size, "Another number of bytes waits than is counted.")
        return true
    }

    /// Drops from the front until the bounds are kept, or only promised messages and the newest batch are left. The
    /// newest is never dropped for its bytes: a bound that is smaller than one read must not keep everything out.
    private func dropOldest() {
        var lost = 0
        var index = head
        while index < slots.count, let object = slots[index] {
            let batch = cast(object)
            let isNewest = index == slots.count - 1
            let hasTooManyBytes = bytes > policy.bytes && !isNewest
            guard hasTooManyBytes || messages > policy.messages else { break }
            if lost > 0 {
                batch.gap += lost
                lost = 0
            }
            // Bytes come free only with a whole batch.
            let wanted = hasTooManyBytes ? batch.count : messages - policy.messages
            let bytesBefore = batch.byteCount
            let dropped = batch.dropOldest(wanted)
            messages -= dropped
            self.lost.add(dropped, ordering: .relaxed)
            if batch.count == 0 {
                lost = batch.gap + dropped
                bytes -= bytesBefore
                // Removing the first slot may move all others.
                let wasFirst = index == head
                removeSlot(index)
                if wasFirst { index = head }
            } else {
                bytes -= bytesBefore - batch.byteCount
                batch.gap += dropped
                index += 1
            }
        }
        guard lost > 0 else { return }
        if index < slots.count, let next = slots[index] { cast(next).gap += lost } else { self.gap += lost }
    }
}

/// Bytes of messages that wait in all subscriptions of one connection, against their bound.
///
/// The loop adds, and pauses reading when the bound is reached. The receiver that reduces the count to half of it calls
/// `drained`, so that the loop reads again; so does one that empties its own full queue to half, or ends it.
package final class UnreadBytes: Sendable {
    package let maximum: Int
    private let count = Atomic(0)
    private let reached = Atomic(false)
    let drained: @Sendable () -> Void

    /// - Parameter drained: called without any lock held, on the thread of that receiver.
    package init(maximum: Int, drained: @escaping @Sendable () -> Void) {
        self.maximum = max(1, maximum)
        self.drained = drained
    }

    /// The bytes that wait now.
    package var bytes: Int { count.load(ordering: .relaxed) }

    /// Whether the bound was reached and half of it is not free again.
    package var isFull: Bool { reached.load(ordering: .sequentiallyConsistent) }

    func change(by difference: Int) {
        guard difference != 0 else { return }
        let now = count.add(difference, ordering: .sequentiallyConsistent).newValue
        if difference > 0, now >= maximum {
            reached.store(true, ordering: .sequentiallyConsistent)
            // Others may have taken everything out before they could see that.
            releaseIfDrained(count.load(ordering: .sequentiallyConsistent))
        } else if difference < 0 {
            releaseIfDrained(now)
        }
    }

    private func releaseIfDrained(_ now: Int) {
        guard now <= maximum / 2, isFull else { return }
        let isOurs = reached.compareExchange(expected: true, desired: false, ordering: .sequentiallyConsistent)
            .exchanged
        if isOurs { drained() }
    }
}
