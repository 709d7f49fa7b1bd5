extension MQTTSubscription {
    /// Messages that came together, in their order: what one read of the socket brought to one subscription.
    public struct Batch: RandomAccessCollection, Sendable {
        @usableFromInline let batch: MQTTBatch
        public let startIndex: Int
        public let endIndex: Int

        @inlinable
        init(_ batch: MQTTBatch, from startIndex: Int) {
            self.batch = batch
            self.startIndex = startIndex
            endIndex = batch.count
        }

        @inlinable
        public subscript(position: Int) -> MQTTMessage { MQTTMessage(batch: batch, index: position) }
    }
}

extension MQTTSubscription {
    /// The messages of a subscription by batches, for receivers of very many: see ``MQTTSubscription/batches``.
    public struct Batches: AsyncSequence, Sendable {
        public typealias Element = Batch
        public typealias Failure = MQTTError

        let handle: MQTTSubscriptionHandle

        public func makeAsyncIterator() -> Iterator {
            Iterator(cursor: MQTTCursor(handle))
        }

        /// One receiver of the batches.
        public struct Iterator: AsyncIteratorProtocol {
            @usableFromInline let cursor: MQTTCursor

            @inlinable
            public mutating func next() async throws(MQTTError) -> MQTTSubscription.Batch? {
                if let rest = cursor.takeRest() { return rest }
                guard try await cursor.nextBatch() != nil else { return nil }
                return cursor.takeWhole()
            }

            @inlinable
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(MQTTError)
                -> MQTTSubscription.Batch?
            {
                if let rest = cursor.takeRest() { return rest }
                guard try await cursor.nextBatch() != nil else { return nil }
                return cursor.takeWhole()
            }
        }
    }
}

extension MQTTSubscription {
    /// The same messages, as many at a time as came together. Ends, throws and goes on as the subscription itself does;
    /// a batch counts as received when it is handed out.
    public var batches: MQTTSubscription.Batches { MQTTSubscription.Batches(handle: handle) }
}
