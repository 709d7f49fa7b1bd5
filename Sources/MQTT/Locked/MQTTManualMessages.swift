import MQTTCore

/// Messages that subscriptions with manual acknowledgement received and have not acknowledged: when such a subscription
/// ends, another one may get them. Part of ``MQTTMachine``, under the link's lock.
///
/// Receive Maximum, or what the server has in flight before 5.0, bounds the messages. A batch is kept until all of its
/// messages are acknowledged.
struct MQTTManualMessages: Sendable {
    private struct Entry: Sendable {
        let batch: MQTTBatch
        /// From the first to the last of its messages; there may be messages of other subscriptions between them.
        let deliveries: ClosedRange<UInt64>
        /// Its messages, if messages of other subscriptions are between them.
        let scattered: [UInt64]?
        /// When it arrived; nanoseconds of the monotonic clock.
        let time: Int64
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
    /// Whether it was reported that they fill Receive Maximum, half of which has not become free since.
    private var isReported = false
    /// The second of the clock from which it may be reported again: workers that receive one or two messages at a time
    /// fill Receive Maximum all the time. A small type, because every idle client has this field.
    private var nextReport: UInt32 = 0
    private static let secondsBetweenReports: UInt32 = 10

    /// A batch is about to be handed to a receiver; on the loop's thread.
    mutating func add(_ batch: MQTTBatch, at now: Int64) {
        var (first, last, count) = (UInt64(0), UInt64(0), UInt64(0))
        for record in batch.records where record.delivery != 0 {
            if count == 0 { first = record.delivery }
            last = record.delivery
            count += 1
        }
        guard count > 0 else { return }
        // The batch cannot be asked later, on any thread: a full queue may be dropping messages of QoS 0 from it.
        let isScattered = last - first + 1 != count
        let scattered = isScattered ? batch.records.map(\.delivery).filter { $0 != 0 } : nil
        entries.append(Entry(batch: batch, deliveries: first...last, scattered: scattered, time: now))
    }

    /// The number of messages without an acknowledgement; on any thread. Several subscriptions may have the same ones.
    func count(_ engine: borrowing MQTTEngine) -> Int {
        var found: Set<UInt64> = []
        for case let entry? in entries[head...] {
            if let scattered = entry.scattered {
                for delivery in scattered where engine.awaitsAnswer(delivery) { found.insert(delivery) }
            } else {
                for delivery in entry.deliveries where engine.awaitsAnswer(delivery) { found.insert(delivery) }
            }
        }
        return found.count
    }

    /// Receive Maximum is reached: returns the message that everything else waits for, with its age in nanoseconds, if it is
    /// one of these and that has not been reported yet; on the loop's thread.
    mutating func reportFull(_ engine: borrowing MQTTEngine, at now: Int64) -> (topic: String, age: Int64)? {
        let second = UInt32(clamping: now / 1_000_000_000)
        guard !isReported, second >= nextReport, engine.isReceiveMaximumReached else { return nil }
        for case let entry? in entries[head...] {
            for (place, record) in entry.batch.records.enumerated() where engine.awaitsAnswer(record.delivery) {
                // Otherwise a buffer without room holds up the others.
                guard record.delivery <= engine.firstUnacknowledged else { return nil }
                isReported = true
                nextReport = second + Self.secondsBetweenReports
                return (entry.batch.topic(at: place), now - entry.time)
            }
        }
        return nil
    }

    /// Releases the oldest batches if all of their messages are acknowledged.
    mutating func removeAcknowledged(_ engine: borrowing MQTTEngine) {
        if isReported, engine.hasHalfOfReceiveMaximum { isReported = false }
        while head < entries.count, let entry = entries[head], !Self.isUnacknowledged(entry, engine) {
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

    private static func isUnacknowledged(_ entry: Entry, _ engine: borrowing MQTTEngine) -> Bool {
        if entry.deliveries.upperBound >= engine.firstUnacknowledged { return true }
        // QoS 2 messages of a lost connection may still await an answer.
        guard engine.holdsEarlierMessages else { return false }
        for delivery in entry.deliveries where engine.awaitsAnswer(delivery) { return true }
        return false
    }

    /// The connection has closed: what cannot be acknowledged any more is released.
    mutating func connectionClosed(_ engine: borrowing MQTTEngine) {
        isReported = false
        entries = entries[head...].filter { entry in
            if let entry { Self.isUnacknowledged(entry, engine) } else { false }
        }
        head = 0
    }

    /// A subscription has ended: takes its messages without an acknowledgement out, in the order of arrival, except those
    /// that another subscription with manual acknowledgement has too.
    mutating func take(_ route: MQTTRoute, _ engine: borrowing MQTTEngine) -> [Message] {
        var taken: [Message] = []
        var others: Set<UInt64> = []
        for case let entry? in entries[head...] {
            let isOwn = entry.batch.route === route
            for (place, record) in entry.batch.records.enumerated() where engine.awaitsAnswer(record.delivery) {
                guard isOwn else {
                    others.insert(record.delivery)
                    continue
                }
                taken.append(
                    Message(
                        batch: entry.batch, place: place, delivery: record.delivery,
                        isTaken: place < entry.batch.place.index))
            }
        }
        isReported = false
        entries = entries[head...].filter { $0.map { $0.batch.route !== route } ?? false }
        head = 0
        return taken.filter { !others.contains($0.delivery) }
    }

    mutating func removeAll() {
        entries = []
        head = 0
    }
}
