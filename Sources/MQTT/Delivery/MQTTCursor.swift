import MQTTCore
import Messaging

/// Where one receiver of a subscription stands: in a batch, in a queue.
///
/// A class, so that the place is known when its iterator is released: the next iterator goes on there.
@usableFromInline
final class MQTTCursor {
    // Exclusive access needs no check: a cursor belongs to one iterator, which is not Sendable.
    @exclusivity(unchecked) @usableFromInline var batch: MQTTBatch?
    @exclusivity(unchecked) @usableFromInline var index = 0
    @exclusivity(unchecked) @usableFromInline var count = 0
    let queue: MQTTRoute.Queue
    private let handle: MQTTSubscriptionHandle

    init(_ handle: MQTTSubscriptionHandle) {
        let place = handle.takePlace()
        queue = place.queue
        batch = place.batch
        index = place.index
        count = place.batch?.count ?? 0
        self.handle = handle
    }

    deinit {
        handle.park(.init(queue: queue, batch: index < count ? batch : nil, index: index))
    }

    @inlinable
    func next() -> MQTTMessage? {
        guard index < count, let batch else { return nil }
        defer { index += 1 }
        return MQTTMessage(batch: batch, index: index)
    }

    /// What is left of the batch.
    @usableFromInline
    func takeRest() -> MQTTSubscription.Batch? {
        guard index < count, let batch else { return nil }
        defer { index = count }
        return MQTTSubscription.Batch(batch, from: index)
    }

    /// The batch whose first message `nextBatch` has returned.
    @usableFromInline
    func takeWhole() -> MQTTSubscription.Batch? {
        index = count
        return batch.map { MQTTSubscription.Batch($0, from: 0) }
    }

    @usableFromInline
    nonisolated(nonsending) func nextBatch() async throws(MQTTError) -> MQTTMessage? {
        batch = nil
        count = 0
        guard let next = try await queue.nextBatch(cancelled: .cancelledWait) else { return nil }
        batch = next
        count = next.count
        index = 1
        return MQTTMessage(batch: next, index: 0)
    }
}
