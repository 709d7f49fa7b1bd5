package import MessagingWire
import Synchronization
package import Transport

/// Messages that came in one read for one subscription, in one piece of memory.
@_documentation(visibility: internal)
public protocol MessageStorage: AnyObject, Sendable {
    associatedtype Message: Sendable

    /// Messages that are still here.
    var count: Int { get }
    /// The message at an index from 0 to `count`.
    subscript(index: Int) -> Message { get }

    /// Which iterator hands out the messages, and which message is next. From any thread.
    var place: DeliveryPlace { get }
    /// Moves the place; false, without a change, if it is no longer `old`. From any thread.
    func move(from old: DeliveryPlace, to new: DeliveryPlace) -> Bool
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

extension DeliveryBatch {
    /// Leases the batch to an iterator, from whichever had it, and hands out up to `count` of the messages that are left.
    /// Returns the indices of these. Called under the queue's lock.
    func lease(to lease: UInt32, handingOut count: Int) -> Range<Int> {
        while true {
            let old = place
            let handedOut = old.index..<(old.index + min(count, self.count - old.index))
            if move(from: old, to: DeliveryPlace(lease: lease, index: handedOut.upperBound)) { return handedOut }
        }
    }
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
    /// A bound is reached.
    case full
    /// The subscription has ended.
    case refused
}

/// Batches on their way from a connection to the reader of a subscription, bounded by messages and bytes.
///
/// There is one queue and one reader: the iterator that has the lease. It hands out the messages of the current batch, which
/// no longer counts against the bounds, without a lock. It returns its lease at the end, when its wait is cancelled, and when it is released.
/// Another iterator that asks for a message takes the lease over with the messages that are left, whatever the first one does at
/// that moment.
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

    /// Batches that wait, the oldest at `head`. Slots before it are empty: batches that the reader has taken are released.
    @safe @exclusivity(unchecked) private var slots: [AnyObject?] = []
    @safe @exclusivity(unchecked) private var head = 0
    /// How many batches from the oldest on hold nothing that may be dropped: a full buffer is not searched for each batch.
    @safe @exclusivity(unchecked) private var promised = 0
    @safe @exclusivity(unchecked) private var messages = 0
    @safe @exclusivity(unchecked) private var bytes = 0
    /// The messages of all batches that the reader has begun.
    @safe @exclusivity(unchecked) private var begun = 0
    @safe @exclusivity(unchecked) private var gap = 0
    /// The batch that was begun and may have messages left. It does not count against the bounds.
    @safe @exclusivity(unchecked) private var current: AnyObject?
    @safe @exclusivity(unchecked) private var reader = DeliveryReader.none
    /// The number of the last lease.
    @safe @exclusivity(unchecked) private var lastLease: UInt32 = 0
    @safe @exclusivity(unchecked) private var end: Shared<DeliveryEnd<Failure>>?
    /// How many of `bytes` the connection's count holds.
    @safe @exclusivity(unchecked) private var counted = 0
    private let fullness = Atomic(false)
    /// Here because there is room for it.
    @safe @exclusivity(unchecked) private var pace = InvariantPace()
    private let lost = Atomic(0)
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

    /// How many messages the reader has taken.
    var takenCount: Int {
        lock.withLock { _ in begun - (current.map { cast($0).count - cast($0).place.index } ?? 0) }
    }

    var waitingBytes: Int { lock.withLock { _ in bytes } }

    // MARK: The connection's side

    /// Stores a batch, and resumes a reader that waits.
    package func push(_ batch: Batch) -> DeliveryOutcome {
        var readers = UniqueArray<Waiter<Void>>()
        defer { readers.resume(returning: ()) }
        return push(batch, for: &readers)
    }

    /// Stores a batch, and drops the oldest messages where the policy says so.
    ///
    /// - Parameter readers: gets the reader, if it waits. The caller resumes those of a whole read together: the threads of the
    ///   pool would fall asleep between them.
    package func push(_ batch: Batch, for readers: inout UniqueArray<Waiter<Void>>) -> DeliveryOutcome {
        var reader: Waiter<Void>?
        var uncounted = 0
        let outcome = lock.withLock { _ -> DeliveryOutcome in
            defer { assert(checkInvariants()) }
            if end != nil { return .refused }
            if gap > 0 {
                batch.gap += gap
                gap = 0
            }
            slots.append(batch)
            messages += batch.count
            bytes += batch.byteCount
            reader = self.reader.wake()
            let reachesBound = checkBounds()
            uncounted = takeUncounted()
            return reachesBound ? .full : .stored
        }
        unread.change(by: uncounted)
        if let reader { readers.append(reader) }
        return outcome
    }

    /// Ends the queue: what waits is still delivered, then `end`. The first end counts.
    package func finish(_ end: DeliveryEnd<Failure> = .finished) {
        var change = Change()
        let reader = lock.withLock { _ -> Waiter<Void>? in
            defer { assert(checkInvariants()) }
            guard self.end == nil else { return nil }
            self.end = Shared(end)
            change = Change(wasDrained: isFull, uncounted: takeUncounted())
            fullness.store(false, ordering: .relaxed)
            return self.reader.wake()
        }
        report(change)
        reader?.resume(returning: ())
    }

    // MARK: The reader's side

    /// The next messages of an iterator, which then has the lease; waits for one. Nil after a graceful end.
    ///
    /// - Parameters:
    ///   - count: the most messages that are handed out; the iterator may hand out others of the batch, one by one.
    ///   - lease: that of the iterator; 0 if it has none, which takes over from any other, unless the task is cancelled.
    ///   - cancelled: thrown when the task is cancelled.
    ///   - replaced: thrown when another iterator has taken over.
    package nonisolated(nonsending) func next(
        _ count: Int, lease: UInt32, cancelled: @autoclosure () -> Failure, replaced: @autoclosure () -> Failure
    ) async throws(Failure) -> DeliveryLease<Batch>? {
        var lease = lease
        while true {
            switch step(count, &lease) {
            case .handOut(let batch, let indices):
                return DeliveryLease(batch: cast(batch), indices: indices, lease: lease)
            case .wait: await wait(as: lease)
            case .end: return try reachedEnd()
            case .giveUp: throw Task.isCancelled ? cancelled() : replaced()
            }
        }
    }

    /// Throws what ended the queue; nil after a graceful end. Not inlined, because its caller would look up the metadata of
    /// the end for every batch.
    @inline(never)
    private func reachedEnd() throws(Failure) -> DeliveryLease<Batch>? {
        if let failure = lock.withLock({ _ in end })?.value.failure { throw failure }
        return nil
    }

    func step(_ count: Int, _ lease: inout UInt32) -> DeliveryStep {
        var change = Change()
        var replaced: Waiter<Void>?
        let step = lock.withLock { _ -> DeliveryStep in
            defer { assert(checkInvariants()) }
            if lease == 0 {
                // A task that was cancelled before its first message must not stop the one that was started instead.
                if Task.isCancelled, reader.isLeased { return .giveUp }
                lastLease = max(1, lastLease &+ 1)
                lease = lastLease
                replaced = reader.takeOver(as: lease)
            } else if !reader.has(lease) {
                return .giveUp
            }
            // All of a batch may have been handed out, or dropped while it waited.
            while let batch = current.take() ?? takeStored(&change) {
                guard !isHandedOut(batch) else { continue }
                let indices = cast(batch).lease(to: lease, handingOut: count)
                // The iterator that had the lease may have handed out the last of them meanwhile.
                guard !indices.isEmpty else { continue }
                if !isHandedOut(batch) { current = batch }
                return .handOut(batch, indices)
            }
            guard end != nil else { return .wait }
            reader = .none
            return .end
        }
        replaced.take()?.resume(returning: ())
        report(change)
        return step
    }

    /// Returns when there is a batch or the end, when the task is cancelled, or when another iterator takes over.
    private nonisolated(nonsending) func wait(as lease: UInt32) async {
        await waiting { waiter in
            var waiter: Waiter<Void>? = waiter
            let resumed = lock.withLock { _ -> Waiter<Void>? in
                defer { assert(checkInvariants()) }
                guard head == slots.count, end == nil else { return waiter.take() }
                if Task.isCancelled { _ = reader.end(lease) }
                return reader.wait(waiter.take()!, as: lease)
            }
            resumed?.resume(returning: ())
        } onCancel: {
            let waiter = lock.withLock { _ in reader.end(lease) }
            waiter?.resume(returning: ())
        }
    }

    /// An iterator is released, and returns its lease if it has it still.
    package func release(_ lease: UInt32) {
        lock.withLock { _ in
            defer { assert(checkInvariants()) }
            guard reader.has(lease) else { return }
            let waiter = reader.end(lease)
            assert(waiter == nil, "An iterator was released while its task waits.")
            if let current, isHandedOut(current) { self.current = nil }
        }
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
        // Safe: `slots` and `current` hold batches of this queue only.
        unsafe unsafeDowncast(object, to: Batch.self)
    }

    /// Whether no message of a batch is left.
    private func isHandedOut(_ batch: AnyObject) -> Bool { cast(batch).place.index >= cast(batch).count }

    private var isAtBound: Bool { messages >= policy.messages || bytes >= policy.bytes }

    /// Notes whether a bound is reached, once the oldest messages are dropped, if the policy is to drop them.
    @discardableResult
    private func checkBounds() -> Bool {
        guard isAtBound else { return false }
        if policy.overflow == .dropOldest { dropOldest() }
        fullness.store(true, ordering: .relaxed)
        return true
    }

    /// Takes the oldest stored batch out.
    private func takeStored(_ change: inout Change) -> AnyObject? {
        guard head < slots.count, let object = slots[head] else { return nil }
        removeSlot(head)
        messages -= cast(object).count
        begun += cast(object).count
        bytes -= cast(object).byteCount
        change.uncounted += takeUncounted()
        if isFull, messages <= policy.messages / 2, bytes <= policy.bytes / 2 {
            fullness.store(false, ordering: .relaxed)
            change.wasDrained = true
        }
        return object
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
        promised = max(0, promised - 1)
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
        switch reader {
        case .none:
            assert(current.map { !isHandedOut($0) } ?? true, "A batch that was handed out is kept without a reader.")
        case .reads(let lease):
            assert(
                current.map { cast($0).place.lease == lease } ?? true, "The reader has no lease of the current batch.")
        case .waits:
            assert(current == nil && head == slots.count, "A reader waits although there is a batch.")
            assert(!isEnded, "A reader waits although the end has come.")
        }
        assert(head + promised <= slots.count, "More batches are promised than wait.")
        assert(isEnded || isFull || !isAtBound || messages == 0, "A bound is reached, and nothing notes it.")
        assert(!isEnded || !isFull, "A queue that has ended holds the connection up.")
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
        var index = head + promised
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
                if dropped < wanted, index == head + promised { promised += 1 }
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
