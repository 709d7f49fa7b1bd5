import MQTTCore

/// What subscriptions with manual acknowledgement received and have not acknowledged: when one of them ends, another
/// subscription may get it. Part of ``MQTTMachine``, under the link's lock.
///
/// Receive Maximum, or what the server has in flight before 5.0, bounds the messages. A batch is kept until all of its
/// messages are acknowledged.
struct MQTTUnansweredMessages: Sendable {
    private struct Entry: Sendable {
        let batch: MQTTBatch
        /// From the first to the last of its messages; there may be messages of other subscriptions between them.
        let deliveries: ClosedRange<UInt64>
    }

    /// A message that a subscription leaves behind.
    struct Message: Sendable {
        let batch: MQTTBatch
        /// Where it is in the batch.
        let place: Int
        let delivery: UInt64
        /// Whether a receiver has taken it out of its sequence.
        var isTaken: Bool
    }

    /// In the order of arrival, from `head` on.
    private var entries: [Entry?] = []
    private var head = 0

    /// A batch is about to be handed to a receiver; on the loop's thread.
    mutating func add(_ batch: MQTTBatch) {
        guard let deliveries = batch.deliveries else { return }
        entries.append(Entry(batch: batch, deliveries: deliveries))
    }

    /// Releases the oldest batches if all of their messages are acknowledged.
    mutating func removeAnswered(_ engine: borrowing MQTTEngine) {
        while head < entries.count, let entry = entries[head], !Self.isUnanswered(entry, engine) {
            entries[head] = nil
            head += 1
        }
        if head == entries.count {
            entries.removeAll(keepingCapacity: entries.capacity <= 64)
            head = 0
        } else if head >= 64, head * 2 >= entries.count {
            entries.removeFirst(head)
            head = 0
        }
    }

    private static func isUnanswered(_ entry: Entry, _ engine: borrowing MQTTEngine) -> Bool {
        if entry.deliveries.upperBound >= engine.firstUnanswered { return true }
        // Of QoS 2, over a lost connection.
        guard engine.holdsEarlierMessages else { return false }
        for delivery in entry.deliveries where engine.awaitsAnswer(delivery) { return true }
        return false
    }

    /// The connection has closed: what cannot be acknowledged any more is released.
    mutating func connectionClosed(_ engine: borrowing MQTTEngine) {
        entries = entries[head...].filter { entry in
            if let entry { Self.isUnanswered(entry, engine) } else { false }
        }
        head = 0
    }

    /// A subscription has ended: takes its messages without an acknowledgement out, in the order of arrival, except those
    /// that another subscription with manual acknowledgement has too.
    mutating func take(_ route: MQTTRoute, _ engine: borrowing MQTTEngine) -> [Message] {
        var taken: [UInt64: Message] = [:]
        var others: Set<UInt64> = []
        for case let entry? in entries[head...] {
            let isOwn = entry.batch.route === route
            for (place, record) in entry.batch.records.enumerated() where engine.awaitsAnswer(record.delivery) {
                guard isOwn else {
                    others.insert(record.delivery)
                    continue
                }
                // Several receivers of a subscription have batches of their own.
                let isTaken = place < entry.batch.takenCount || taken[record.delivery]?.isTaken ?? false
                taken[record.delivery] = Message(
                    batch: entry.batch, place: place, delivery: record.delivery, isTaken: isTaken)
            }
        }
        entries = entries[head...].filter { $0.map { $0.batch.route !== route } ?? false }
        head = 0
        return taken.filter { !others.contains($0.key) }.sorted { $0.key < $1.key }.map(\.value)
    }

    mutating func removeAll() {
        entries = []
        head = 0
    }
}
