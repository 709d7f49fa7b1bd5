import MessagingWire
import Transport

/// Publishers whose messages were dropped, or whose client stops. ``MQTTWaitingPublishers`` takes them out under the
/// link's lock, and the thread that has released it resumes them.
struct MQTTEndedPublishers: ~Copyable, Sendable {
    var waiters = UniqueArray<Resumption<MQTTWaitingPublishers.Answer>>()
    var batches = UniqueArray<Resumption<Bool>>()
    /// Publishers that waited for room in the queue.
    var queueWaiters = UniqueArray<Waiter<MQTTError?>>()
    /// Why there will be no room; nil to try again.
    var queueFailure: MQTTError?
    /// For messages that no caller waits for.
    var enqueued: [MQTTError] = []

    /// Resumes the callers; without the lock.
    mutating func resume() {
        queueWaiters.resume(returning: queueFailure)
        waiters.drain { $0.resume() }
        batches.drain { $0.resume() }
    }
}
