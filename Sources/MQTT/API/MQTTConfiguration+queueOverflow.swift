extension MQTTConfiguration {
    /// What happens to a message of QoS 1 or 2 that finds the queue full.
    public struct QueueOverflow: Sendable, Equatable {
        enum Kind { case reject, dropOldest, wait }
        let kind: Kind

        /// It is refused with ``MQTTError/Code/queueFull``.
        public static let reject = QueueOverflow(kind: .reject)
        /// The oldest message that was never sent gives way: its publisher gets ``MQTTError/Code/queueFull``, or, if it was
        /// enqueued, ``MQTTEvent/undelivered(_:)`` tells of it.
        public static let dropOldest = QueueOverflow(kind: .dropOldest)
        /// The publisher waits for room, until its task is cancelled.
        public static let wait = QueueOverflow(kind: .wait)
    }
}
