import MessagingWire
import Synchronization
import Transport

/// One iterator of a subscription. The caller's task runs it.
///
/// A class, so that it returns its lease when it is released.
@_documentation(visibility: internal)
public final class DeliveryCursor<Storage: MessageStorage, Failure: Error> {
    // Exclusive access needs no check: a cursor belongs to one iterator, which is not Sendable.
    @safe @exclusivity(unchecked) @usableFromInline var batch: Storage?
    /// The next message of the batch. Without a lease until the first batch, at the end and after an error.
    @safe @exclusivity(unchecked) @usableFromInline var place = DeliveryPlace()
    /// Where the messages end that are handed out without asking the queue. With a hook, which sees every message, that is
    /// `place`.
    @safe @exclusivity(unchecked) @usableFromInline var end = DeliveryPlace()
    private let source: any DeliverySource<Storage, Failure>
    /// Called with each message.
    private let hook: (@Sendable (inout Storage.Message) -> Void)?

    package convenience init<Core: ClientCore>(_ handle: SubscriptionHandle<Core>)
    where Core.Route.Batch == Storage, Core.Failure == Failure {
        self.init(source: handle, hook: handle.core.receivingHook)
    }

    init(source: any DeliverySource<Storage, Failure>, hook: (@Sendable (inout Storage.Message) -> Void)?) {
        self.source = source
        self.hook = hook
    }

    deinit { if place.lease != 0 { source.release(place.lease) } }

    /// The next message of the batch; nil at its end, and when another iterator has taken the batch over.
    @inlinable
    package func next() -> Storage.Message? {
        guard place != end, let batch, batch.move(from: place, to: place.next) else { return nil }
        defer { place = place.next }
        return batch[place.index]
    }

    /// Waits for another batch and returns its first message; nil after a graceful end.
    @usableFromInline
    package nonisolated(nonsending) func nextBatch() async throws(Failure) -> Storage.Message? {
        guard let (batch, indices) = try await take(1) else { return nil }
        var message = batch[indices.lowerBound]
        hook?(&message)
        return message
    }

    /// The messages of the batch that are left, or those of the next one. Nil after a graceful end.
    nonisolated(nonsending) func takeBatch() async throws(Failure) -> MessageBatch<Storage>? {
        guard let (batch, indices) = try await take(.max) else { return nil }
        if let hook { for index in indices { see(batch[index], hook) } }
        return MessageBatch(batch, from: indices.lowerBound)
    }

    /// Takes up to `count` messages of the batch that has some.
    private nonisolated(nonsending) func take(_ count: Int) async throws(Failure) -> (Storage, Range<Int>)? {
        let lease = place.lease
        (batch, place, end) = (nil, DeliveryPlace(), DeliveryPlace())
        guard let taken = try await source.next(count, lease: lease) else { return nil }
        batch = taken.batch
        place = DeliveryPlace(lease: taken.lease, index: taken.indices.upperBound)
        end = hook == nil ? DeliveryPlace(lease: taken.lease, index: taken.batch.count) : place
        return (taken.batch, taken.indices)
    }

    private func see(_ message: Storage.Message, _ hook: (inout Storage.Message) -> Void) {
        var message = message
        hook(&message)
    }
}

/// What a cursor asks once per batch. A protocol, because a public cursor cannot name the types of the client's core, which
/// are not public.
protocol DeliverySource<Storage, Failure>: Sendable {
    associatedtype Storage: MessageStorage
    associatedtype Failure: Error

    nonisolated(nonsending) func next(_ count: Int, lease: UInt32) async throws(Failure) -> DeliveryLease<Storage>?
    func release(_ lease: UInt32)
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

    /// The reader of the batches.
    public struct Iterator: AsyncIteratorProtocol {
        let cursor: DeliveryCursor<Storage, Failure>

        public mutating func next() async throws(Failure) -> Element? { try await cursor.takeBatch() }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            try await cursor.takeBatch()
        }
    }
}

/// Ties a subscription to the life of its sequence and iterators.
package final class SubscriptionHandle<Core: ClientCore>: DeliverySource {
    package typealias Storage = Core.Route.Batch
    package typealias Failure = Core.Failure

    package let core: Core
    package let route: Core.Route
    private let queue: Core.Route.Queue

    package init(core: Core, route: Core.Route, queue: Core.Route.Queue) {
        self.core = core
        self.route = route
        self.queue = queue
    }

    deinit {
        let (core, route) = (core, route)
        core.loop.execute { core.subscriptions.remove(route) }
    }

    /// The number of messages that were dropped because the reader was slow.
    package var droppedCount: Int { queue.droppedCount }

    nonisolated(nonsending) func next(
        _ count: Int, lease: UInt32
    ) async throws(Failure) -> DeliveryLease<Core.Route.Batch>? {
        try await queue.next(count, lease: lease, cancelled: .cancelledWait, replaced: .replacedWait)
    }

    func release(_ lease: UInt32) { queue.release(lease) }
}
