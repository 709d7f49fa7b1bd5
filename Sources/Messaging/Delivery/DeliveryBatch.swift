/// Messages that came in one read for one subscription, in one piece of memory.
///
/// A queue holds batches rather than messages, so that storing and waking cost once per read.
package protocol DeliveryBatch: AnyObject, Sendable {
    /// Messages that are still in the batch.
    var count: Int { get }
    /// What the batch keeps in memory, in bytes; may shrink as messages are dropped.
    var byteCount: Int { get }
    /// How many messages are noted as lost just before the first one.
    var gap: Int { get }
    /// Gives up to `count` of the oldest messages up, sparing those that were promised to arrive; returns how many
    /// went. Called only while the batch waits in a queue, under the queue's lock.
    func dropOldest(_ count: Int) -> Int
    /// Notes that `count` messages were lost just before the first one of this batch. Called like `dropOldest`.
    func noteGap(_ count: Int)
}
