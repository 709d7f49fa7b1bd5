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
