/// Where a receiver is: at a message of a batch, in a queue.
package struct DeliveryPlace<Batch: DeliveryBatch, Failure: Error>: Sendable {
    package let queue: DeliveryQueue<Batch, Failure>
    /// The batch that the receiver has begun, unless it has read all of it.
    package var batch: Batch?
    package var index = 0

    package init(queue: DeliveryQueue<Batch, Failure>, batch: Batch? = nil, index: Int = 0) {
        self.queue = queue
        self.batch = batch
        self.index = index
    }
}

/// A subscription, as its receivers see it.
package protocol DeliverySource<Batch, Failure>: AnyObject, Sendable {
    associatedtype Batch: DeliveryBatch
    associatedtype Failure: ClientError

    /// The place where the last receiver stopped; the beginning of a new queue if another receiver is active there.
    func takePlace() -> DeliveryPlace<Batch, Failure>
    /// A receiver stopped here.
    func park(_ place: DeliveryPlace<Batch, Failure>)
}

/// One receiver of a subscription. The caller's task runs it.
///
/// A class, so that the place is known when its iterator is released: the next iterator continues there.
@usableFromInline
package final class DeliveryCursor<Batch: DeliveryBatch, Failure: ClientError> {
    // Exclusive access needs no check: a cursor belongs to one iterator, which is not Sendable.
    @safe @exclusivity(unchecked) @usableFromInline var batch: Batch?
    @safe @exclusivity(unchecked) @usableFromInline var index = 0
    @safe @exclusivity(unchecked) @usableFromInline var count = 0
    private let queue: DeliveryQueue<Batch, Failure>
    private let source: any DeliverySource<Batch, Failure>

    package init(_ source: any DeliverySource<Batch, Failure>) {
        let place = source.takePlace()
        queue = place.queue
        batch = place.batch
        index = place.index
        count = place.batch?.count ?? 0
        self.source = source
    }

    deinit {
        source.park(DeliveryPlace(queue: queue, batch: index < count ? batch : nil, index: index))
    }

    /// The next message of the batch; nil at its end.
    @inlinable
    package func next() -> Batch.Message? {
        guard index < count, let batch else { return nil }
        defer { index += 1 }
        return batch[index]
    }

    /// Waits for another batch and returns its first message; nil after a graceful end.
    @usableFromInline
    package nonisolated(nonsending) func nextBatch() async throws(Failure) -> Batch.Message? {
        batch = nil
        count = 0
        guard let next = try await queue.nextBatch(cancelled: .cancelledWait) else { return nil }
        batch = next
        count = next.count
        index = 1
        return next[0]
    }

    /// The messages of the batch that are left, or those of the next one: a batch, and where they begin in it. Nil after
    /// a graceful end.
    @usableFromInline
    package nonisolated(nonsending) func takeBatch() async throws(Failure) -> (batch: Batch, start: Int)? {
        if index < count, let batch {
            defer { index = count }
            return (batch, index)
        }
        guard try await nextBatch() != nil, let batch else { return nil }
        index = count
        return (batch, 0)
    }
}

/// The messages of a subscription, as many at a time as arrived together.
///
/// It ends, throws and continues as the subscription does; a batch counts as received when it is returned.
public struct MessageBatches<Batch: Sendable, Failure: Error>: AsyncSequence, Sendable {
    public typealias Element = Batch

    private let makeIterator: @Sendable () -> Iterator

    /// - Parameter makeBatch: what a receiver gets of a batch, from an index on.
    package init<Stored: DeliveryBatch>(
        _ source: any DeliverySource<Stored, Failure>, _ makeBatch: @escaping @Sendable (Stored, Int) -> Batch
    ) where Failure: ClientError {
        makeIterator = {
            let cursor = DeliveryCursor(source)
            return Iterator { () async throws(Failure) in
                try await cursor.takeBatch().map { makeBatch($0.batch, $0.start) }
            }
        }
    }

    public func makeAsyncIterator() -> Iterator { makeIterator() }

    /// One receiver of the batches.
    public struct Iterator: AsyncIteratorProtocol {
        // Of one task: an iterator is not Sendable.
        let takeBatch: () async throws(Failure) -> Batch?

        public mutating func next() async throws(Failure) -> Batch? { try await takeBatch() }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Batch? {
            try await takeBatch()
        }
    }
}
