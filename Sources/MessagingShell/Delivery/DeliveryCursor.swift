import MessagingWire
import Synchronization
import Transport

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

    /// The messages of the batch that the receiver has not taken.
    var rest: [Batch] { batch.map { [$0.rest(from: index)] } ?? [] }
}

/// One receiver of a subscription. The caller's task runs it.
///
/// A class, so that the place is known when its iterator is released: the next iterator continues there.
@_documentation(visibility: internal)
public final class DeliveryCursor<Storage: MessageStorage, Failure: Error> {
    // Exclusive access needs no check: a cursor belongs to one iterator, which is not Sendable.
    @safe @exclusivity(unchecked) @usableFromInline var batch: Storage?
    @safe @exclusivity(unchecked) @usableFromInline var index = 0
    @safe @exclusivity(unchecked) @usableFromInline var count = 0
    private let receiver: any DeliveryReceiver<Storage, Failure>
    /// Called with each message. `count` stays zero then, so that each message takes the way of a new batch, and receivers
    /// without a hook check nothing.
    private let hook: (@Sendable (inout Storage.Message) -> Void)?
    /// What `count` would be.
    @safe @exclusivity(unchecked) private var hookedCount = 0

    package init<Core: ClientCore>(_ handle: SubscriptionHandle<Core>)
    where Core.Route.Batch == Storage, Core.Failure == Failure {
        let place = handle.takePlace()
        batch = place.batch
        index = place.index
        receiver = QueueReceiver(handle: handle, queue: place.queue)
        hook = handle.core.receivingHook
        setCount(place.batch?.count ?? 0)
    }

    deinit { receiver.park(index < max(count, hookedCount) ? batch : nil, at: index) }

    private func setCount(_ count: Int) {
        if hook == nil { self.count = count } else { hookedCount = count }
    }

    /// The next message of the batch; nil at its end.
    @inlinable
    package func next() -> Storage.Message? {
        guard index < count, let batch else { return nil }
        defer { index += 1 }
        return batch[index]
    }

    /// Waits for another batch and returns its first message; nil after a graceful end.
    @usableFromInline
    package nonisolated(nonsending) func nextBatch() async throws(Failure) -> Storage.Message? {
        if let hook, index < hookedCount, let batch {
            var message = batch[index]
            index += 1
            hook(&message)
            return message
        }
        batch = nil
        setCount(0)
        guard let next = try await receiver.nextBatch() else { return nil }
        batch = next
        setCount(next.count)
        index = 1
        var message = next[0]
        hook?(&message)
        return message
    }

    /// The messages of the batch that are left, or those of the next one. Nil after a graceful end.
    nonisolated(nonsending) func takeBatch() async throws(Failure) -> MessageBatch<Storage>? {
        var start = index
        if start >= max(count, hookedCount) {
            guard try await nextBatch() != nil else { return nil }
            start = 0
        }
        guard let batch else { return nil }
        // The hook has seen the first of a new batch.
        if let hook { for index in max(start, index)..<hookedCount { see(batch[index], hook) } }
        index = max(count, hookedCount)
        return MessageBatch(batch, from: start)
    }

    private func see(_ message: Storage.Message, _ hook: (inout Storage.Message) -> Void) {
        var message = message
        hook(&message)
    }
}

/// What a cursor does once per batch. A protocol, because a public cursor cannot name the types of the client's core, which
/// are not public.
private protocol DeliveryReceiver<Storage, Failure>: Sendable {
    associatedtype Storage: MessageStorage
    associatedtype Failure: Error

    nonisolated(nonsending) func nextBatch() async throws(Failure) -> Storage?
    func park(_ batch: Storage?, at index: Int)
}

private struct QueueReceiver<Core: ClientCore>: DeliveryReceiver {
    let handle: SubscriptionHandle<Core>
    let queue: DeliveryQueue<Core.Route.Batch, Core.Failure>

    nonisolated(nonsending) func nextBatch() async throws(Core.Failure) -> Core.Route.Batch? {
        try await queue.nextBatch(cancelled: .cancelledWait, replaced: .replacedWait)
    }

    func park(_ batch: Core.Route.Batch?, at index: Int) {
        handle.park(DeliveryPlace(queue: queue, batch: batch, index: index))
    }
}

/// Messages that arrived together, in their order: what one read of the socket brought to one subscription.
public struct MessageBatch<Storage: MessageStorage>: RandomAccessCollection, Sendable {
    @usableFromInline let storage: Storage
    public let startIndex: Int
    public let endIndex: Int

    package init(_ storage: Storage, from startIndex: Int) {
        self.storage = storage
        self.startIndex = startIndex
        endIndex = storage.count
    }

    @inlinable public subscript(position: Int) -> Storage.Message { storage[position] }
}

/// The messages of a subscription, as many at a time as arrived together.
///
/// It ends, throws and continues as the subscription does; a batch counts as received when it is returned.
public struct MessageBatches<Storage: MessageStorage, Failure: Error>: AsyncSequence, Sendable {
    public typealias Element = MessageBatch<Storage>

    private let makeIterator: @Sendable () -> Iterator

    package init<Core: ClientCore>(_ handle: SubscriptionHandle<Core>)
    where Core.Route.Batch == Storage, Core.Failure == Failure {
        makeIterator = { Iterator(cursor: DeliveryCursor(handle)) }
    }

    public func makeAsyncIterator() -> Iterator { makeIterator() }

    /// One receiver of the batches.
    public struct Iterator: AsyncIteratorProtocol {
        let cursor: DeliveryCursor<Storage, Failure>

        public mutating func next() async throws(Failure) -> Element? { try await cursor.takeBatch() }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            try await cursor.takeBatch()
        }
    }
}

/// Ties a subscription to the life of its sequence and iterators, and remembers where the last iterator stopped.
package final class SubscriptionHandle<Core: ClientCore>: Sendable {
    package typealias Batch = Core.Route.Batch
    package typealias Failure = Core.Failure

    package let core: Core
    package let route: Core.Route
    private let places: Lock<Places>

    private struct Places {
        /// Where the last receiver stopped; nil while there are receivers.
        var parked: DeliveryPlace<Batch, Failure>?
        /// The queues of the receivers, the oldest first.
        var queues: [DeliveryQueue<Batch, Failure>] = []
        /// How many messages were dropped from queues that are gone.
        var droppedCount = 0
    }

    package init(core: Core, route: Core.Route, first: DeliveryQueue<Batch, Failure>) {
        self.core = core
        self.route = route
        places = Lock(Places(parked: DeliveryPlace(queue: first)))
    }

    deinit {
        let (core, route) = (core, route)
        core.loop.execute { core.subscriptions.remove(route) }
    }

    /// The number of messages that were dropped because a receiver was slow, for each receiver.
    package var droppedCount: Int {
        places.withLock { places in
            let queues = places.queues + (places.parked.map { [$0.queue] } ?? [])
            return queues.reduce(places.droppedCount) { $0 + $1.droppedCount }
        }
    }

    // The loop gets its jobs under the lock, so that it adds a queue before that inherits what another receiver leaves.

    /// The place where the last receiver stopped; the beginning of a new queue if another receiver is active there.
    package func takePlace() -> DeliveryPlace<Batch, Failure> {
        let (core, route) = (core, route)
        let taken = places.withLock { places in
            let place = places.parked.take() ?? DeliveryPlace(queue: core.makeQueue(route.policy))
            if !places.queues.isEmpty { core.loop.execute { route.add(place.queue) } }
            places.queues.append(place.queue)
            return place
        }
        if let batch = taken.batch { batch.noteTaken(batch.count) }
        return taken
    }

    /// A receiver stopped here. The next one continues there, unless there are others: then the oldest of them gets what this
    /// one has left and no other has.
    package func park(_ place: DeliveryPlace<Batch, Failure>) {
        place.batch?.noteTaken(place.index)
        let (core, route) = (core, route)
        places.withLock { places in
            places.queues.removeAll { $0 === place.queue }
            guard let heir = places.queues.first else {
                places.parked = place
                return
            }
            places.droppedCount += place.queue.droppedCount
            heir.expectInheritance()
            core.loop.execute {
                // No task would empty the queue, which would hold up the connection once it is full.
                route.remove(place.queue)
                heir.inherit(place.rest + place.queue.abandon())
            }
        }
    }
}
