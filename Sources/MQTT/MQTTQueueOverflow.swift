/// What happens to a message of QoS 1 or 2 that finds the queue full.
public struct MQTTQueueOverflow: Sendable, Equatable {
    enum Kind { case reject, dropOldest, wait }
    let kind: Kind

    /// It is refused with ``MQTTError/Code/queueFull``.
    public static let reject = MQTTQueueOverflow(kind: .reject)
    /// The oldest message that was never sent gives way: its publisher gets ``MQTTError/Code/queueFull``, or, if it was
    /// enqueued, ``MQTTEvent/undelivered(_:)`` tells of it.
    public static let dropOldest = MQTTQueueOverflow(kind: .dropOldest)
    /// The publisher waits for room, until its task is cancelled.
    public static let wait = MQTTQueueOverflow(kind: .wait)
}
