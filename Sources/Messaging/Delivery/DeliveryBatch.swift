/// Messages that came in one read for one subscription, in one piece of memory.
///
/// A queue holds batches rather than messages, so that storing and waking cost once per read.
@usableFromInline
package protocol DeliveryBatch: AnyObject, Sendable {
    associatedtype Message: Sendable

    /// Messages that are still in the batch.
    var count: Int { get }
    subscript(index: Int) -> Message { get }
    /// The memory that the batch takes, in bytes; may shrink as messages are dropped.
    var byteCount: Int { get }
    /// How many messages are noted as lost just before the first one.
    var gap: Int { get }
    /// Drops up to `count` of the oldest messages, except those that were promised to arrive; returns how many were
    /// dropped. Called only while the batch waits in a queue, under the queue's lock.
    func dropOldest(_ count: Int) -> Int
    /// Notes that `count` messages were lost just before the first one of this batch. Called like `dropOldest`.
    func noteGap(_ count: Int)
}
